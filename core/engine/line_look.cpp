// SPDX-License-Identifier: Apache-2.0
// The stage that looks at the line.
#include "engine/line_stages.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include "base/text.h"
#include "engine/bound_owners.h"
#include "engine/lock_keys.h"
#include "engine/script_reply.h"
#include "lock/lock_kind.h"

namespace rlock::record {
namespace {

std::string how_to_give(const LineFormat& format)
{
  return " (try --format " + std::string(name_of(format.clients)) +
         (format.has_readers ? " with --shared or --exclusive" : "") + "; rflock takes no --format, rlock run does)";
}

bool is_native_lock(const std::optional<Contender>& contender) { return contender && contender->is_lock; }

// A reader that took the lock without the format, so that it stands in no line: no native client may run beside it. Empty: there is none.
std::string holder_without_contender(const Round& round)
{
  const Work& work = round.work;
  const LockRecord& record = round.before;
  const bool may_be = round.line->has_readers() && line_use(work) == LineUse::takes && line_wanted(work) != no_line &&
                      beside_of(record) == no_line && exclusive_holder(record, work.lock).empty();
  const auto holders = may_be ? holders_of(record, work.lock) : std::vector<std::string>();
  const auto other = std::ranges::find_if(holders, [&](const auto& each) { return each != work.owner(); });
  return other == holders.end() ? std::string() : *other;
}

// Ends what is over by the line.
void end_by_line(Round& round)
{
  const Work& work = round.work;
  LockRecord& record = round.before;
  const LineUse use = line_use(work);
  end_without_contender(record, work.lock, round.state.gone);
  if (!round.view || use == LineUse::none || use == LineUse::shows) {
    return;
  }
  const LineView& view = *round.view;
  const bool is_first = is_same(view.first, view.own);
  const std::string& owner = work.owner();
  if (!contender_of(record, owner).empty()) {
    const bool must_be_first = use == LineUse::keeps;
    if (!view.own || (must_be_first && !is_first)) {
      lose_contender(record, work.lock, owner);
    } else if (!is_first && is_try(work) && round.line->binds_sessions()) {  // its contender came behind another one
      end_hold(record, work.lock, owner);
    }
  }
  // A lock that was handed over to a reader, which has not begun.
  if (!holder_without_contender(round).empty() && standing_of(record.keys, work.lock, owner).holds) {
    end_hold(record, work.lock, owner);
    round.must_write = true;
  }
}

// The line of a read-write lock, for people. Returns the first native client, or the one that is to give the lock up.
std::optional<Contender> show_shared(Round& round)
{
  const Work& work = round.work;
  LockRecord& record = round.before;
  const bool is_forced = work.as<calls::Force>() != nullptr;
  const auto& holders = round.view->holders;
  const auto native = std::ranges::find_if(holders, [&](const Contender& each) {
    return is_native(record, each) && (!is_forced || each.name == work.owner());
  });
  if (native == holders.end() || (beside_of(record) == no_line && !native->is_lock)) {
    return std::nullopt;
  }
  show_holders(record, work.lock, *round.view);
  return *native;
}

// Lets no script give the lock to a caller that a native client excludes. Returns that client.
std::optional<Contender> stop_before(Round& round)
{
  const Work& work = round.work;
  LockRecord& record = round.before;
  const LineView& view = *round.view;
  const bool may_take = line_use(work) == LineUse::takes && !standing_of(record.keys, work.lock, work.owner()).holds;
  std::optional<Contender> stop;
  if (const std::string other = holder_without_contender(round); !other.empty()) {
    stop = Contender{.name = other};
  } else if (may_take && view.first && !is_same(view.first, view.own)) {
    // Behind a writer of rlock that waits, a reader is told for whom that one waits.
    stop = is_native(record, *view.first) || view.holders.empty() ? *view.first : view.holders.front();
    stop = is_native(record, *stop) ? stop : std::nullopt;
  }
  if (stop) {
    show_writer(record, work.lock, stop->name);
  }
  return stop;
}

// Returns the native client that is shown as the holder.
std::optional<Contender> show(Round& round)
{
  const Work& work = round.work;
  LockRecord& record = round.before;
  const LineUse use = line_use(work);
  if (!round.view || use == LineUse::none) {
    return std::nullopt;
  }
  const bool is_shown_to_people = use == LineUse::shows;
  if (round.line->has_readers()) {
    return is_shown_to_people ? show_shared(round) : stop_before(round);
  }
  const LineView& view = *round.view;
  const bool is_native_first = view.first && !is_same(view.first, view.own) && is_native(record, *view.first);
  if (!is_native_first) {
    return std::nullopt;
  }
  const bool is_known = beside_of(record) != no_line || line_wanted(work) != no_line;
  const bool is_in_the_way = use == LineUse::takes && is_known && holders_of(record, work.lock).empty();
  if (!is_in_the_way && !(is_shown_to_people && (is_known || view.first->is_lock))) {
    return std::nullopt;
  }
  show_native(record, work.lock, *view.first, round.time_us);
  return view.first;
}

// The native client that the script has seen holds no lock by the record.
void uncover(Round& round, const std::optional<Entry>& covered)
{
  KeySpace::Keys& keys = round.after.keys;
  if (round.native && covered) {
    keys[round.work.lock.text()] = *covered;
  } else if (round.native) {
    keys.erase(round.work.lock.text());
  }
}

// force-unlock of a native client: its contender goes, and the event log says so.
void take_from_native(Round& round)
{
  const std::string events = LockKeys(round.work.lock).events;
  LockRecord record = round.state.record;
  record.keys.erase(events);
  if (const auto logged = round.after.keys.find(events); logged != round.after.keys.end()) {
    record.keys[events] = std::move(logged->second);
  }
  record.log_base = round.after.log_base;
  record.time_us = round.after.time_us;
  round.after = std::move(record);
  round.must_write = true;
  round.line_change = {.format = round.line->format(), .leaves = {round.native->name}};
}

// The waiters by the record, of which the first may stand in the line, and the native ones in their places.
std::vector<answers::WaiterRow> with_native_waiters(const std::vector<answers::WaiterRow>& rows, const Round& round,
                                                    const LineFormat& format)
{
  std::vector<answers::WaiterRow> all;
  auto next = rows.begin();
  for (const Contender& contender : round.view->waiting) {
    const std::string owner = owner_of(round.before, contender.name);
    if (owner.empty()) {
      const std::string_view mode = contender.reads ? reader_mode : format.has_readers ? writer_mode : "";
      all.push_back({.owner = contender.name, .mode = std::string(mode), .info = "", .is_connected = true});
      continue;
    }
    const auto row = std::find_if(next, rows.end(), [&](const auto& each) { return each.owner == owner; });
    if (row == rows.end()) {
      continue;  // a holder
    }
    all.insert(all.end(), next, std::next(row));
    next = std::next(row);
  }
  all.insert(all.end(), next, rows.end());
  return all;
}

// What inspect cannot know of a lock beside native clients.
void tell(Round& round, const LineFormat& format)
{
  auto known = answer_in<answers::Known>(round.answer);
  if (!round.view || !known || format == no_line) {
    return;
  }
  const auto& holder = round.native ? round.native : round.view->own;
  std::int64_t fence = holder ? holder->order : 0;
  for (const Contender& each : round.view->holders) {
    fence = std::max(fence, each.order);
  }
  known->fence = static_cast<std::uint64_t>(fence);
  known->waiters = with_native_waiters(known->waiters, round, format);
  if (round.native) {
    known->proven = round.native->is_lock;
  }
  known->format = name_of(format.clients);
  round.answer = reply_with(*known);
}

}  // namespace

NativeLine* LineLook::line_of(LineFormat format) const
{
  const auto line = std::ranges::find(m_lines, format, &NativeLine::format);
  return line != m_lines.end() ? *line : m_lines.front();
}

// The record keeps its format; else the caller chooses one. A lock that has no holder by its record may have native clients only: the
// record may be the note of a run that was skipped.
Result<Done> LineLook::look(Round& round, const CallLimits& limit) const
{
  const Work& work = round.work;
  const LockRecord& record = round.before;
  const LineUse use = line_use(work);
  const LineFormat noted = beside_of(record);
  const LineFormat format = noted != no_line ? noted : line_wanted(work);
  round.line = line_of(format);
  const bool is_shown = use == LineUse::shows;
  if (use == LineUse::none || format == no_line) {
    const bool looks = is_shown || (use == LineUse::takes && round.state.read.has_line);
    if (!looks || record.keys.contains(work.lock.text())) {
      return Done{};
    }
    return is_shown ? look_for_native(round, limit) : check_no_native(round, limit);
  }
  RETURN_IF_ERROR(round.line->check_name(work.lock));
  const std::string owner = is_shown ? exclusive_holder(record, work.lock) : work.owner();
  const bool is_of_holders = is_shown && round.line->has_readers();
  ASSIGN_OR_RETURN(round.view, round.line->look(work.lock,
                                                {.own = is_of_holders ? "" : contender_of(record, owner),
                                                 .reads = asks_for_shared(work),
                                                 .holders = is_of_holders,
                                                 .waiting = is_shown},
                                                limit));
  return Done{};
}

// Sets the line in which a native client stands.
Result<Done> LineLook::look_for_native(Round& round, const CallLimits& limit) const
{
  for (NativeLine* const line : m_lines) {
    if (!line->check_name(round.work.lock)) {
      continue;
    }
    auto view = line->look(round.work.lock, {.holders = true, .waiting = true}, limit);
    if (!view && view.error().code != ErrorCode::refused) {
      return view.error();
    }
    if (view && (is_native_lock(view->first) || m_lines.size() == 1)) {
      round.line = line;
      round.view = *std::move(view);
      break;
    }
  }
  return Done{};
}

// Of a caller that has left out the format, and would run beside native clients.
Result<Done> LineLook::check_no_native(Round& round, const CallLimits& limit) const
{
  RETURN_IF_ERROR(look_for_native(round, limit));
  const auto view = std::exchange(round.view, std::nullopt);
  if (!view || !is_native_lock(view->first)) {
    return Done{};
  }
  const LineFormat format = round.line->format();
  return Error{ErrorCode::config, "a client of the format " + std::string(name_of(format.clients)) + " has the lock " +
                                      printable(round.work.lock.text()) + ": " + printable(view->first->name) +
                                      how_to_give(format)};
}

// Whether the lock may be taken as the caller asks.
Result<Done> LineLook::check_format(const Work& work) const
{
  if (m_format == no_line) {
    return Done{};
  }
  const LineFormat wanted = line_wanted(work);
  const std::string has_format =
      "the lock " + printable(work.lock.text()) + " has the format " + std::string(name_of(m_format.clients));
  const bool is_shared = m_format.has_readers;
  if (is_shared && line_use(work) == LineUse::takes && !is_of_read_write_lock(*work.request)) {
    return Error{ErrorCode::config, has_format + " of a read-write lock" + how_to_give(m_format)};
  }
  if (!is_shared && asks_for_shared(work)) {
    return Error{ErrorCode::config,
                 has_format + ", in which it has one holder at a time (leave out --shared and --permits)"};
  }
  if (wanted.has_readers && !is_shared && knows_readers(m_format.clients)) {
    return Error{ErrorCode::config, has_format + " of a lock without readers (leave out --exclusive)"};
  }
  if (wanted != no_line && wanted != m_format) {
    return Error{ErrorCode::config, has_format + how_to_give(m_format)};
  }
  return Done{};
}

// A release behind which a native client is next, or a waiter that is not in the line yet, hands the lock over to no waiter. With
// readers, the first waiter looks who stands in front of it.
void LineLook::release_to_line(Round& round)
{
  const Work& work = round.work;
  const bool is_held = line_use(work) == LineUse::leaves && round.view && is_same(round.view->first, round.view->own);
  if (!is_held) {
    return;
  }
  const auto& next = round.view->next;
  const std::string waiter = first_waiter(round.before, work.lock);
  const bool is_native_next = next && is_native(round.before, *next) && !round.line->has_readers();
  const bool joins_later = round.line->binds_sessions() && !waiter.empty() &&
                           (round.line->has_readers() || !next || contender_of(round.before, waiter) != next->name);
  if (!is_native_next && !joins_later) {
    return;
  }
  VerbRequest to_none = *work.request;
  std::get<calls::Release>(to_none.verb).own_subscribers = calls::no_hand_over;
  round.words = call_of(to_none, false).args;
  m_calls_waiter = true;
}

Result<bool> LineLook::before_script(Round& round, const CallLimits& limit)
{
  m_covered.reset();
  m_calls_waiter = false;
  RETURN_IF_ERROR(look(round, limit));
  const bool is_beside = beside_of(round.before) != no_line || line_wanted(round.work) != no_line;
  if (!is_beside && !round.view) {
    return false;
  }
  end_by_line(round);
  if (const auto own_key = round.before.keys.find(round.work.lock.text()); own_key != round.before.keys.end()) {
    m_covered = own_key->second;
  }
  round.native = show(round);
  m_format = round.native ? round.line->format() : beside_of(round.before);
  RETURN_IF_ERROR(check_format(round.work));
  release_to_line(round);
  return true;
}

Result<Done> LineLook::after_script(Round& round, const CallLimits&)
{
  if (m_calls_waiter && is_answer<answers::Released>(round.answer)) {
    call_first_waiter(round, round.before);
  }
  // A caller that does not wait stands in no line.
  const bool must_leave = is_try(round.work) && is_answer<answers::Granted>(round.answer) && round.view &&
                          round.view->first && !is_same(round.view->first, round.view->own);
  if (must_leave) {
    round.answer = reply_with(busy_behind(*round.view->first));
    round.settle();
    return Done{};
  }
  tell(round, m_format);
  if (round.native && line_use(round.work) == LineUse::shows) {
    round.settle();
    if (is_answer<answers::Broken>(round.answer)) {
      take_from_native(round);
    }
    return Done{};
  }
  uncover(round, m_covered);
  round.keeps_presence =
      round.line->binds_sessions() && (line_wanted(round.work) != no_line || beside_of(round.after) != no_line);
  return Done{};
}

}  // namespace rlock::record
