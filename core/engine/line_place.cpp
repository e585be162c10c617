// SPDX-License-Identifier: Apache-2.0
// What requests do with the line, and the stage that gives owners their places in it.
#include "engine/line_stages.h"

#include <algorithm>
#include "engine/lock_keys.h"
#include "engine/script_reply.h"
#include "lock/event_log.h"
#include "lock/schema.h"

namespace rlock::record {
namespace {

// A waiter that is not told yet when a native client is gone asks so often.
constexpr Millis poll_interval{200};

// Whether the commit makes this contender.
bool makes(const Round& round, const std::string& contender)
{
  const auto& stand = round.line_change.stand;
  return stand && stand->is_new && stand->name == contender;
}

// The first waiter joins the line behind the holder when it asks.
void call_waiter_in(Round& round)
{
  const Work& work = round.work;
  const std::string waiter = first_waiter(round.after, work.lock);
  const bool is_missing = !waiter.empty() && contender_of(round.after, waiter).empty();
  const bool asks_now = work.request != nullptr && work.owner() == waiter;
  if (round.line->binds_sessions() && is_missing && !asks_now && !holders_of(round.after, work.lock).empty()) {
    call_first_waiter(round, round.after);
  }
}

// A script has the time for the fencing number of a grant. Here it is the order of the owner's contender.
void note_fences(Round& round)
{
  for (LoggedEvent& each : round.log_change.written) {
    const auto taker = EventLogEntry::of(each.entry).taker;
    if (!taker) {
      continue;
    }
    const std::string contender = contender_of(round.after, *taker);
    std::string fence = "0";
    if (makes(round, contender)) {
      fence = fence_of_commit;
    } else if (round.view) {
      for (const auto& known : {round.view->first, round.view->own, round.view->next}) {
        fence = known && known->name == contender ? std::to_string(known->order) : fence;
      }
    }
    const std::string_view word = word_of(event_words, EventWord::fence);
    each.entry.append(1, '\0').append(word).append(1, '\0').append(fence);
  }
}

}  // namespace

LineUse line_use(const Work& work)
{
  if (const auto* acquire = work.as<calls::Acquire>()) {
    return acquire->wait_mode == calls::WaitMode::again ? LineUse::keeps : LineUse::takes;
  }
  if (work.as<calls::Release>() != nullptr) {
    return LineUse::leaves;
  }
  if (work.as<calls::Renew>() != nullptr) {
    return LineUse::keeps;
  }
  const bool is_for_people = work.as<calls::Inspect>() != nullptr || work.as<calls::Force>() != nullptr;
  return is_for_people ? LineUse::shows : LineUse::none;
}

bool asks_for_shared(const Work& work)
{
  return line_use(work) == LineUse::takes && kind_of(work.request->kind).is_shared;
}

bool is_of_read_write_lock(const VerbRequest& request)
{
  return std::holds_alternative<Reader>(request.kind) || std::holds_alternative<Writer>(request.kind);
}

LineFormat line_wanted(const Work& work)
{
  if (work.request == nullptr) {
    return no_line;
  }
  const NativeFormat clients = work.request->beside;
  return {clients, knows_readers(clients) && is_of_read_write_lock(*work.request)};
}

bool is_try(const Work& work)
{
  return line_use(work) == LineUse::takes && work.as<calls::Acquire>()->wait_mode == calls::WaitMode::attempt;
}

Result<Done> check_has_line(const std::vector<NativeLine*>& lines, const Work& work)
{
  const LineFormat format = line_wanted(work);
  if (format == no_line || std::ranges::find(lines, format, &NativeLine::format) != lines.end()) {
    return Done{};
  }
  return Error{ErrorCode::config, "--format " + std::string(name_of(format.clients)) +
                                      ": this store has no such clients (leave out --format)"};
}

bool is_same(const std::optional<Contender>& one, const std::optional<Contender>& other)
{
  return one && other && one->name == other->name;
}

answers::Busy busy_behind(const Contender& first) { return {.ttl = first.lasts, .owner = first.name, .count = 1}; }

void call_first_waiter(Round& round, const LockRecord& record)
{
  if (const std::string waiter = first_waiter(record, round.work.lock); !waiter.empty()) {
    round.publish(LockKeys(round.work.lock).owner_channel + waiter, "look 0");
  }
}

Result<bool> LinePlace::before_script(Round& round, const CallLimits&)
{
  m_contender.clear();
  return line_wanted(round.work) != no_line || beside_of(round.before) != no_line;
}

void LinePlace::take_places(Round& round)
{
  const Work& work = round.work;
  LockRecord& after = round.after;
  const LineUse use = line_use(work);
  const bool takes = use == LineUse::takes;
  const bool is_granted = is_answer<answers::Granted>(round.answer);
  const bool is_free = holders_of(after, work.lock).empty();
  if (takes && after.bindings.contains(work.owner()) && (is_granted || is_free)) {
    put_beside(after, line_wanted(work));
  }
  if (beside_of(after) == no_line) {
    return;
  }
  const bool may_join = takes && !round.needed.empty();
  const Committer committer{.owner = may_join ? work.owner() : "",
                            .presence = may_join ? round.needed.front() : PresenceId()};
  round.line_change = change_line(after, work.lock, *round.line, round.view, committer);
  round.must_write = round.must_write || !round.line_change.is_none();
  const bool waits_behind_native = takes && (round.native || is_free);
  const bool is_kept = use == LineUse::keeps && is_answer<answers::Kept>(round.answer);
  if (is_granted || waits_behind_native || is_kept) {
    m_contender = contender_of(after, work.owner());
  }
  if (m_contender.empty() || !round.view) {
    return;
  }
  const auto& stand = round.line_change.stand;
  if (round.view->own && round.view->own->name == m_contender) {
    round.line_change.needed = round.view->own;
  } else if (stand && stand->name == m_contender && !round.view->first && !round.line->binds_sessions()) {
    round.line_change.none_came_since = round.view->state;
  }
}

Result<Done> LinePlace::after_script(Round& round, const CallLimits&)
{
  take_places(round);
  if (round.changes() && beside_of(round.after) != no_line) {
    call_waiter_in(round);
    note_fences(round);
    round.free_holder = "?";  // maybe a native client
  }
  return Done{};
}

// The line after the commit.
Result<LineView> LinePlace::view_after(const Round& round, const CallLimits& limit) const
{
  if (!makes(round, m_contender)) {
    return *round.view;
  }
  if (!round.line_change.none_came_since) {
    return round.line->look(round.work.lock, {.own = m_contender}, limit);
  }
  const Committed* const done = round.committed();
  const Contender own{.name = m_contender, .order = done != nullptr ? done->order : 0};
  return LineView{.first = own, .own = own, .next = {}, .state = own.order};
}

// The record grants a lock beside native clients, but the line decides. The answer becomes that of a busy lock until the owner's
// contender is first. The state must be read again where the contender is gone, or is first now.
Result<Done> LinePlace::after_commit(Round& round, const CallLimits& limit)
{
  if (!round.is_done() || m_contender.empty()) {
    return Done{};
  }
  const Work& work = round.work;
  ASSIGN_OR_RETURN(const LineView view, view_after(round, limit));
  auto busy = answer_in<answers::Busy>(round.answer);
  const bool is_busy_already = busy.has_value();
  const bool is_first = is_same(view.first, view.own);
  if (is_first && is_busy_already) {
    round.is_stale = !is_same(round.view->first, round.view->own);  // else the script had another reason
    return Done{};
  }
  const bool leaves_again = !is_first && is_try(work) && !is_busy_already && round.line->binds_sessions();
  if (!view.own || leaves_again) {
    round.is_stale = true;
    return Done{};
  }
  const LockKeys names(work.lock);
  if (is_first) {
    if (auto granted = answer_in<answers::Granted>(round.answer)) {
      granted->fence = static_cast<std::uint64_t>(view.own->order);
      round.answer = reply_with(*granted);
    }
    round.line->tell_when_gone(work.lock, view.own->name, view.state, {.channel = names.taken_channel, .text = "taken"},
                               limit);
    return Done{};
  }
  const bool is_told =
      round.line->tell_when_gone(work.lock, view.first->name, view.state,
                                 {.channel = names.owner_channel + work.owner(), .text = "look 0"}, limit);
  if (!busy) {
    busy = busy_behind(*view.first);
  }
  busy->ttl = view.first->lasts;
  busy->owner = view.first->name;
  busy->again_in = is_told ? std::nullopt : std::optional(poll_interval);
  busy->tells_end = is_told;
  round.answer = reply_with(*busy);
  return Done{};
}

}  // namespace rlock::record
