// SPDX-License-Identifier: Apache-2.0
#include "engine/lock_line.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include "base/text.h"
#include "engine/answer_value.h"
#include "engine/foreign_face.h"
#include "engine/lock_keys.h"
#include "engine/record_codec.h"
#include "engine/script_reply.h"
#include "lock/event_log.h"
#include "lock/schema.h"

namespace rlock::record {
namespace {

// A waiter that is not told yet when a native client is gone asks so often.
constexpr Millis poll_interval{200};

bool is_same(const std::optional<Contender>& one, const std::optional<Contender>& other)
{
  return one && other && one->name == other->name;
}

bool is_of_read_write_lock(const VerbRequest& request)
{
  return std::holds_alternative<Reader>(request.kind) || std::holds_alternative<Writer>(request.kind);
}

answers::Busy busy_behind(const Contender& first) { return {.ttl = first.lasts, .owner = first.name, .count = 1}; }

}  // namespace

LockLine::LockLine(Backend& backend, KeySpace& keys) : m_lines(backend.native_lines()), m_keys(keys) {}

Result<LineFormat> LockLine::format_in(const VerbRequest& request) const
{
  const LineFormat format(request.beside, knows_readers(request.beside) && is_of_read_write_lock(request));
  if (format != no_line && std::ranges::find(m_lines, format, &NativeLine::format) == m_lines.end()) {
    return Error{ErrorCode::config, "--format " + std::string(name_of(request.beside)) +
                                        ": this store has no such clients (leave out --format)"};
  }
  return format;
}

LineUse LockLine::use_in(const VerbRequest& request) const
{
  if (m_lines.empty()) {
    return LineUse::none;
  }
  if (const auto* acquire = request.as<calls::Acquire>()) {
    return acquire->wait_mode == calls::WaitMode::again ? LineUse::keeps : LineUse::takes;
  }
  if (request.as<calls::Release>() != nullptr) {
    return LineUse::leaves;
  }
  if (request.as<calls::Renew>() != nullptr) {
    return LineUse::keeps;
  }
  const bool is_for_people = request.as<calls::Inspect>() != nullptr || request.as<calls::Force>() != nullptr;
  return is_for_people ? LineUse::shows : LineUse::none;
}

// An acquire of a reader, or of a permit.
bool LockLine::asks_for_shared(const Work& work)
{
  return work.line_use == LineUse::takes && kind_of(work.request->kind).is_shared;
}

// The record keeps its format; else the caller chooses one.
void LockLine::choose_line(const Work& work, const LockRecord& record)
{
  const LineFormat noted = beside_of(record);
  const LineFormat format = noted != no_line ? noted : work.beside;
  const auto line = std::ranges::find(m_lines, format, &NativeLine::format);
  m_line = line != m_lines.end() ? *line : m_lines.front();
}

// A lock that has no holder by its record may have native clients only: the record may be the note of a run that was skipped.
Result<Done> LockLine::look(const Work& work, Snapshot& state, const CallLimits& limit)
{
  if (m_lines.empty()) {
    return Done{};
  }
  const bool is_shown = work.line_use == LineUse::shows;
  const bool looks = is_shown || (work.line_use == LineUse::takes && state.has_line);
  ASSIGN_OR_RETURN(const auto record, decode(looks || may_be_beside(state.bytes) ? state.bytes : std::string()));
  choose_line(work, record);
  const bool is_beside = may_be_beside(state.bytes) || work.beside != no_line;
  if (work.line_use == LineUse::none || !is_beside) {
    const bool may_be_native = looks && !record.keys.contains(work.lock.text());
    if (!may_be_native) {
      return Done{};
    }
    return is_shown ? look_for_native(work, state, limit) : check_no_native(work, state, limit);
  }
  if (const auto checked = m_line->check_name(work.lock); !checked) {
    return checked;
  }
  const std::string owner = is_shown ? exclusive_holder(record, work.lock) : work.owner();
  const bool is_of_holders = is_shown && m_line->has_readers();
  ASSIGN_OR_RETURN(auto view, m_line->look(work.lock,
                                           {.own = is_of_holders ? "" : contender_of(record, owner),
                                            .reads = asks_for_shared(work),
                                            .holders = is_of_holders,
                                            .waiting = is_shown},
                                           limit));
  state.line = std::move(view);
  return Done{};
}

// Sets the line in which a native client stands.
Result<Done> LockLine::look_for_native(const Work& work, Snapshot& state, const CallLimits& limit)
{
  for (NativeLine* const line : m_lines) {
    if (!line->check_name(work.lock)) {
      continue;
    }
    auto view = line->look(work.lock, {.holders = true, .waiting = true}, limit);
    if (!view && view.error().code != ErrorCode::refused) {
      return view.error();
    }
    const bool has_client = view && view->first && view->first->is_lock;
    if (view && (has_client || m_lines.size() == 1)) {
      m_line = line;
      state.line = *std::move(view);
      break;
    }
  }
  return Done{};
}

namespace {

std::string how_to_give(const LineFormat& format)
{
  return " (try --format " + std::string(name_of(format.clients)) +
         (format.has_readers ? " with --shared or --exclusive" : "") + "; rflock takes no --format, rlock run does)";
}

}  // namespace

// Of a caller that has left out the format, and would run beside native clients.
Result<Done> LockLine::check_no_native(const Work& work, const Snapshot& state, const CallLimits& limit)
{
  Snapshot shown = state;
  if (const auto looked = look_for_native(work, shown, limit); !looked) {
    return looked;
  }
  if (!shown.line || !shown.line->first || !shown.line->first->is_lock) {
    return Done{};
  }
  const std::string format(name_of(m_line->format().clients));
  return Error{ErrorCode::config, "a client of the format " + format + " has the lock " + printable(work.lock.text()) +
                                      ": " + printable(shown.line->first->name) + how_to_give(m_line->format())};
}

// Whether the lock may be taken as the caller asks.
Result<Done> LockLine::check_format(const Work& work, const Started& start) const
{
  const std::string format(name_of(start.beside.clients));
  const std::string has_format = "the lock " + printable(work.lock.text()) + " has the format " + format;
  if (start.beside == no_line) {
    return Done{};
  }
  const bool is_shared = start.beside.has_readers;
  if (is_shared && work.line_use == LineUse::takes && !is_of_read_write_lock(*work.request)) {
    return Error{ErrorCode::config, has_format + " of a read-write lock" + how_to_give(start.beside)};
  }
  if (!is_shared && asks_for_shared(work)) {
    return Error{ErrorCode::config,
                 has_format + ", in which it has one holder at a time (leave out --shared and --permits)"};
  }
  if (work.beside.has_readers && !is_shared && knows_readers(start.beside.clients)) {
    return Error{ErrorCode::config, has_format + " of a lock without readers (leave out --exclusive)"};
  }
  if (work.beside != no_line && work.beside != start.beside) {
    return Error{ErrorCode::config, has_format + how_to_give(start.beside)};
  }
  return Done{};
}

// A reader that took the lock without the format, so that it stands in no line: no native client may run beside it. Empty: there is none.
std::string LockLine::holder_without_contender(const Work& work, const LockRecord& record) const
{
  const bool may_be = m_line->has_readers() && work.line_use == LineUse::takes && work.beside != no_line &&
                      beside_of(record) == no_line && exclusive_holder(record, work.lock).empty();
  const auto holders = may_be ? holders_of(record, work.lock) : std::vector<std::string>();
  const auto other = std::ranges::find_if(holders, [&](const auto& each) { return each != work.owner(); });
  return other == holders.end() ? std::string() : *other;
}

void LockLine::begin(const Work& work, const Snapshot& state, Started& start) const
{
  if (!is_known()) {
    return;
  }
  LockRecord& record = start.record;
  start.must_write = end(work, state, record) || start.must_write;
  if (const auto own_key = record.keys.find(work.lock.text()); own_key != record.keys.end()) {
    start.covered = own_key->second;
  }
  if (state.line) {
    std::ranges::transform(state.line->waiting, std::back_inserter(start.in_line), [&](const Contender& each) {
      return Started::InLine{.owner = owner_of(record, each.name), .contender = each};
    });
  }
  start.native = show(work, state, record);
  start.beside = start.native ? m_line->format() : beside_of(record);
}

// Ends what is over by the line. True: this must be written, whatever the script does.
bool LockLine::end(const Work& work, const Snapshot& state, LockRecord& record) const
{
  end_without_contender(record, work.lock, state.gone);
  const bool is_shown_to_people = work.line_use == LineUse::shows;
  if (!state.line || work.line_use == LineUse::none || is_shown_to_people) {
    return false;
  }
  const LineView& view = *state.line;
  const bool is_first = is_same(view.first, view.own);
  const std::string& owner = work.owner();
  if (!contender_of(record, owner).empty()) {
    const bool must_be_first = work.line_use == LineUse::keeps;
    if (!view.own || (must_be_first && !is_first)) {
      lose_contender(record, work.lock, owner);
    } else if (!is_first && is_try(work) && m_line->binds_sessions()) {  // its contender came behind another one
      end_hold(record, work.lock, owner);
    }
  }
  // A lock that was handed over to a reader, which has not begun.
  const bool was_early =
      !holder_without_contender(work, record).empty() && standing_of(record.keys, work.lock, owner).holds;
  if (was_early) {
    end_hold(record, work.lock, owner);
  }
  return was_early;
}

// Returns the native client that is shown as the holder.
std::optional<Contender> LockLine::show(const Work& work, const Snapshot& state, LockRecord& record) const
{
  if (!state.line || work.line_use == LineUse::none) {
    return std::nullopt;
  }
  const bool is_shown_to_people = work.line_use == LineUse::shows;
  if (m_line->has_readers()) {
    return is_shown_to_people ? show_shared(work, state, record) : stop_before(work, state, record);
  }
  const LineView& view = *state.line;
  const bool is_native_first = view.first && !is_same(view.first, view.own) && is_native(record, *view.first);
  if (!is_native_first) {
    return std::nullopt;
  }
  const bool is_known = beside_of(record) != no_line || work.beside != no_line;
  const bool is_in_the_way = work.line_use == LineUse::takes && is_known && holders_of(record, work.lock).empty();
  if (!is_in_the_way && !(is_shown_to_people && (is_known || view.first->is_lock))) {
    return std::nullopt;
  }
  show_native(record, work.lock, *view.first, state.time_us);
  return view.first;
}

// The line of a read-write lock, for people. Returns the first native client, or the one that is to give the lock up.
std::optional<Contender> LockLine::show_shared(const Work& work, const Snapshot& state, LockRecord& record) const
{
  const bool is_forced = work.as<calls::Force>() != nullptr;
  const auto& holders = state.line->holders;
  const auto native = std::ranges::find_if(holders, [&](const Contender& each) {
    return is_native(record, each) && (!is_forced || each.name == work.owner());
  });
  if (native == holders.end() || (beside_of(record) == no_line && !native->is_lock)) {
    return std::nullopt;
  }
  show_holders(record, work.lock, *state.line);
  return *native;
}

// Lets no script give the lock to a caller that a native client excludes. Returns that client.
std::optional<Contender> LockLine::stop_before(const Work& work, const Snapshot& state, LockRecord& record) const
{
  const LineView& view = *state.line;
  const bool may_take = work.line_use == LineUse::takes && !standing_of(record.keys, work.lock, work.owner()).holds;
  std::optional<Contender> stop;
  if (const std::string other = holder_without_contender(work, record); !other.empty()) {
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

std::optional<Work> LockLine::without_hand_over(const Work& work, const Snapshot& state, const Started& start) const
{
  const bool is_held = work.line_use == LineUse::leaves && state.line && is_same(state.line->first, state.line->own);
  if (!is_held) {
    return std::nullopt;
  }
  const auto& next = state.line->next;
  const std::string waiter = first_waiter(start.record, work.lock);
  const bool is_native_next = next && is_native(start.record, *next) && !m_line->has_readers();
  const bool joins_later = m_line->binds_sessions() && !waiter.empty() &&
                           (m_line->has_readers() || !next || contender_of(start.record, waiter) != next->name);
  if (!is_native_next && !joins_later) {
    return std::nullopt;
  }
  VerbRequest to_none = *work.request;
  std::get<calls::Release>(to_none.verb).own_subscribers = calls::no_hand_over;
  Work alone = work;
  alone.words = call_of(to_none, false).args;
  return alone;
}

void LockLine::call_first_waiter(const Work& work, const Started& start) const
{
  if (const std::string waiter = first_waiter(start.record, work.lock); !waiter.empty()) {
    m_keys.on_publish(LockKeys(work.lock).owner_channel + waiter, "look 0");
  }
}

std::optional<Value> LockLine::refusal(const Work& work, const Snapshot& state, const Decision& decision)
{
  const bool must_leave = is_try(work) && is_answer<answers::Granted>(decision.answer) && state.line &&
                          state.line->first && !is_same(state.line->first, state.line->own);
  return must_leave ? std::optional(reply_with(busy_behind(*state.line->first))) : std::nullopt;
}

bool LockLine::is_try(const Work& work)
{
  return work.line_use == LineUse::takes && work.as<calls::Acquire>()->wait_mode == calls::WaitMode::attempt;
}

// A waiter whose contender cannot get another session waits with the presence of its hold.
Asked LockLine::asked(const Work& work, const LockRecord& after) const
{
  Asked asked = work.asked;
  asked.keeps_presence =
      is_known() && m_line->binds_sessions() && (work.beside != no_line || beside_of(after) != no_line);
  return asked;
}

// The first waiter joins the line behind the holder when it asks.
void LockLine::call_waiter_in(const Work& work, const LockRecord& after) const
{
  if (!is_known() || !m_line->binds_sessions() || beside_of(after) == no_line) {
    return;
  }
  const std::string waiter = first_waiter(after, work.lock);
  const bool is_missing = !waiter.empty() && contender_of(after, waiter).empty();
  const bool asks_now = work.request != nullptr && work.owner() == waiter;
  if (is_missing && !asks_now && !holders_of(after, work.lock).empty()) {
    m_keys.on_publish(LockKeys(work.lock).owner_channel + waiter, "look 0");
  }
}

// Adds to the decision what the change of the record needs in the line.
void LockLine::note(const Work& work, const Snapshot& state, const Started& start, LockRecord& after,
                    Decision& decision) const
{
  const bool is_granted = is_answer<answers::Granted>(decision.answer);
  const bool stands = work.line_use == LineUse::takes && after.bindings.contains(work.asked.owner);
  if (work.beside != no_line && stands && (is_granted || holders_of(after, work.lock).empty())) {
    put_beside(after, work.beside);
  }
  if (!is_known() || beside_of(after) == no_line) {
    return;
  }
  const bool may_join = work.line_use == LineUse::takes && !decision.needed.empty();
  const Committer committer{.owner = may_join ? work.asked.owner : "",
                            .presence = may_join ? decision.needed.front() : PresenceId()};
  decision.line = change_line(after, work.lock, *m_line, state.line, committer);
  const bool waits_behind_native =
      work.line_use == LineUse::takes && (start.native || holders_of(after, work.lock).empty());
  if (is_granted || waits_behind_native ||
      (work.line_use == LineUse::keeps && is_answer<answers::Kept>(decision.answer))) {
    decision.contender = contender_of(after, work.owner());
  }
  if (decision.contender.empty() || !state.line) {
    return;
  }
  const auto& stand = decision.line.stand;
  if (state.line->own && state.line->own->name == decision.contender) {
    decision.line.needed = state.line->own;
  } else if (stand && stand->name == decision.contender && !state.line->first && !m_line->binds_sessions()) {
    decision.line.none_came_since = state.line->state;
  }
}

// A script has the time for the fencing number of a grant. Here it is the order of the owner's contender.
void LockLine::note_fences(const Snapshot& state, const LockRecord& after, Decision& decision)
{
  const auto& stand = decision.line.stand;
  for (LoggedEvent& each : decision.log.written) {
    const auto taker = EventLogEntry::of(each.entry).taker;
    if (!taker) {
      continue;
    }
    const std::string contender = contender_of(after, *taker);
    std::string fence = "0";
    if (stand && stand->is_new && stand->name == contender) {
      fence = fence_of_commit;
    } else if (state.line) {
      for (const auto& known : {state.line->first, state.line->own, state.line->next}) {
        fence = known && known->name == contender ? std::to_string(known->order) : fence;
      }
    }
    const std::string_view word = word_of(event_words, EventWord::fence);
    each.entry.append(1, '\0').append(word).append(1, '\0').append(fence);
  }
}

// force-unlock of a native client: its contender goes, and the event log says so.
Result<Done> LockLine::note_take(const Work& work, const Snapshot& state, const Started& start, Decision& decision)
{
  ASSIGN_OR_RETURN(auto record, decode(state.bytes));
  const LockKeys names(work.lock);
  auto shown = m_keys.take_keys();
  record.keys.erase(names.events);
  if (const auto events = shown.find(names.events); events != shown.end()) {
    record.keys[names.events] = std::move(events->second);
  }
  record.log_base = start.log.base;
  record.time_us = state.time_us;
  decision.log = change_of(start.log, record.keys, names.events);
  shorten_log(record, names.events);
  decision.face = face_of(record.keys, names);
  decision.bytes = encode(record);
  decision.is_written = true;
  decision.line.format = m_line->format();
  decision.line.leaves = {start.native->name};
  return Done{};
}

// The record grants a lock beside native clients, but the line decides: the answer becomes that of a busy lock until the owner's
// contender is first. False: the state must be read again, because the contender is gone, or is first now.
Result<bool> LockLine::answer(const Work& work, const Snapshot& state, std::int64_t order, Decision& decision,
                              const CallLimits& limit)
{
  if (decision.contender.empty()) {
    return true;
  }
  LineView view = *state.line;
  const auto& stand = decision.line.stand;
  if (stand && stand->is_new && stand->name == decision.contender) {
    if (decision.line.none_came_since) {
      const Contender own{.name = stand->name, .order = order};
      view = {.first = own, .own = own, .next = {}, .state = order};
    } else {
      ASSIGN_OR_RETURN(auto looked, m_line->look(work.lock, {.own = decision.contender}, limit));
      view = std::move(looked);
    }
  }
  auto busy = answer_in<answers::Busy>(decision.answer);
  const bool is_busy_already = busy.has_value();
  const bool is_first = is_same(view.first, view.own);
  if (is_first && is_busy_already) {
    return is_same(state.line->first, state.line->own);  // then the script had another reason
  }
  const bool leaves_again = !is_first && is_try(work) && !is_busy_already && m_line->binds_sessions();
  if (!view.own || leaves_again) {
    return false;
  }
  const LockKeys names(work.lock);
  if (is_first) {
    if (auto granted = answer_in<answers::Granted>(decision.answer)) {
      granted->fence = static_cast<std::uint64_t>(view.own->order);
      decision.answer = reply_with(*granted);
    }
    m_line->tell_when_gone(work.lock, view.own->name, view.state, {.channel = names.taken_channel, .text = "taken"},
                           limit);
    return true;
  }
  const bool is_told = m_line->tell_when_gone(work.lock, view.first->name, view.state,
                                              {.channel = names.owner_channel + work.owner(), .text = "look 0"}, limit);
  if (!busy) {
    busy = busy_behind(*view.first);
  }
  busy->ttl = view.first->lasts;
  busy->owner = view.first->name;
  busy->again_in = is_told ? std::nullopt : std::optional(poll_interval);
  busy->tells_end = is_told;
  decision.answer = reply_with(*busy);
  return true;
}

// The waiters by the record, of which the first may stand in the line, and the native ones in their places.
std::vector<answers::WaiterRow> LockLine::with_native_waiters(const std::vector<answers::WaiterRow>& rows,
                                                              const Started& start)
{
  std::vector<answers::WaiterRow> all;
  auto next = rows.begin();
  for (const auto& [owner, contender] : start.in_line) {
    if (owner.empty()) {
      const std::string_view mode = contender.reads ? reader_mode : start.beside.has_readers ? writer_mode : "";
      all.push_back({.owner = contender.name, .mode = std::string(mode), .info = "", .is_connected = true});
      continue;
    }
    const auto row = std::find_if(next, rows.end(), [&name = owner](const auto& each) { return each.owner == name; });
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
void LockLine::tell(const Snapshot& state, const Started& start, Decision& decision) const
{
  auto known = answer_in<answers::Known>(decision.answer);
  if (!state.line || !known || start.beside == no_line) {
    return;
  }
  const auto& holder = start.native ? start.native : state.line->own;
  std::int64_t fence = holder ? holder->order : 0;
  for (const Contender& each : state.line->holders) {
    fence = std::max(fence, each.order);
  }
  known->fence = static_cast<std::uint64_t>(fence);
  known->waiters = with_native_waiters(known->waiters, start);
  if (start.native) {
    known->proven = start.native->is_lock;
  }
  known->format = name_of(start.beside.clients);
  decision.answer = reply_with(*known);
}

}  // namespace rlock::record
