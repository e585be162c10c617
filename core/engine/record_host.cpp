// SPDX-License-Identifier: Apache-2.0
#include "engine/record_host.h"

#include <algorithm>
#include <limits>
#include <utility>
#include "base/text.h"
#include "base/wait.h"
#include "engine/answer_value.h"
#include "engine/foreign_face.h"
#include "engine/lock_keys.h"
#include "engine/script_reply.h"

namespace rlock::record {
namespace {

// A remembered state that is older is read again.
constexpr std::chrono::seconds remembered_for{10};

// Before members are asked again that have no leader, or that have closed the connection.
constexpr Millis pause_without_leader{100};

// The clock of a host may run faster than that of the store by this part.
constexpr int clock_drift_divisor = 500;

// The pause before the next try is random. With each conflict its limit grows by a step if a job waits for the answer: as many
// others want the record as there were conflicts. It grows fourfold if the caller only joins a queue, so that a crowd leaves the
// record to those that pass the lock on. Where a try takes long, all pause in proportion.
constexpr std::chrono::microseconds pause_step{1500};
constexpr int steps_in_try = 2;
constexpr std::chrono::microseconds longest_pause{20'000};
constexpr int longest_pause_in_tries = 4;
constexpr std::chrono::microseconds longest_pause_in_queue{1'000'000};
constexpr int longest_pause_in_queue_in_tries = 32;

std::chrono::microseconds limit_of_pause(int conflicts, bool only_joins_queue, std::chrono::microseconds try_time)
{
  constexpr int most_steps = 8;
  if (!only_joins_queue) {
    const auto longest = std::max(longest_pause, try_time * longest_pause_in_tries);
    return std::min<std::chrono::microseconds>(std::max(pause_step, try_time / steps_in_try) * conflicts, longest);
  }
  const auto longest = std::max(longest_pause_in_queue, try_time * longest_pause_in_queue_in_tries);
  return std::min(std::max(pause_step, try_time) * (1 << 2 * std::min(conflicts, most_steps)), longest);
}

Reply reply_of(const Value& value)
{
  Reply reply;
  switch (value.kind) {
    case Value::Kind::nil: break;
    case Value::Kind::integer:
      reply.kind = Reply::Kind::integer;
      reply.integer = value.integer;
      break;
    case Value::Kind::text:
    case Value::Kind::status:
      reply.kind = Reply::Kind::text;
      reply.text = value.text;
      break;
    case Value::Kind::error:
      reply.kind = Reply::Kind::error;
      reply.text = value.text;
      break;
    case Value::Kind::array:
      reply.kind = Reply::Kind::array;
      for (const Value& element : value.elements) {
        reply.elements.push_back(reply_of(element));
      }
  }
  return reply;
}

// A script fails on data that it does not expect, or by a defect.
Error script_failed(std::string_view lock, const std::string& text)
{
  const bool is_about_types = text.starts_with("WRONGTYPE");
  return {is_about_types ? ErrorCode::config : ErrorCode::internal,
          "the record of the lock " + printable(lock) + ": " + printable(text)};
}

Error busy_record(std::string_view lock)
{
  return {
      .code = ErrorCode::server_not_ready,
      .text = "the lock " + printable(lock) +
              " is changed by so many clients at once that no change of this one got through (raise --server-timeout)",
      .was_there = true};
}

// A conflict is an answer: then the server was there, and a waiter stays in line.
Error after_conflicts(int conflicts, Error error)
{
  error.answered = conflicts > 0;
  error.was_there = error.was_there || error.answered;
  return error;
}

}  // namespace

RecordHost::RecordHost(std::unique_ptr<Backend> backend, const Clock& clock, std::unique_ptr<Rng> rng)
    : m_backend(std::move(backend)), m_clock(clock), m_rng(std::move(rng))
{
  if (Presences* const presences = m_backend->presences()) {
    m_keeper.emplace(*presences, m_clock);
  }
  m_keys.count_subscribers = [this](const std::string& channel) {
    return static_cast<std::int64_t>(std::ranges::count(m_listeners, channel));
  };
  m_keys.on_publish = [this](const std::string& channel, const std::string& text) {
    const auto listeners = static_cast<std::int64_t>(std::ranges::count(m_listeners, channel));
    if (listeners > 0) {
      m_messages.push_back({channel, text});
    }
    return listeners;
  };
}

bool RecordHost::remembers(std::string_view lock) const
{
  return m_remembered && m_remembered->lock == lock && m_clock.now() - m_remembered->at < remembered_for;
}

// Its time is never later than the store's clock.
Snapshot RecordHost::remembered_state() const
{
  Snapshot state = m_remembered->state;
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(m_clock.now() - m_remembered->at);
  state.time_us += passed.count() - passed.count() / clock_drift_divisor;
  return state;
}

// An error is told by the reads that follow.
void RecordHost::read_ahead(std::span<const std::string_view> locks, bool with_logs, const CallLimits& limit)
{
  m_ahead.clear();
  if (locks.size() < 2) {
    return;
  }
  auto states = m_backend->read_each(locks, with_logs, limit);
  if (!states) {
    return;
  }
  m_ahead = *std::move(states);
  if (m_keeper) {
    m_keeper->ask_ahead(m_ahead, limit);
  }
}

Result<Snapshot> RecordHost::read(std::string_view lock, const CallLimits& limit)
{
  m_log_ahead.reset();
  const auto ahead = m_ahead.find(lock);
  if (ahead == m_ahead.end()) {
    return m_backend->read(lock, limit);
  }
  StateAndLog known = std::move(m_ahead.extract(ahead).mapped());
  m_log_ahead = std::move(known.log);
  return std::move(known.state);
}

Result<std::vector<std::string>> RecordHost::events_of(std::string_view lock, const CallLimits& limit)
{
  return m_log_ahead ? Result(*std::exchange(m_log_ahead, std::nullopt)) : m_backend->events(lock, limit);
}

Result<Snapshot> RecordHost::state_of(const Work& work, bool is_remembered, const CallLimits& limit)
{
  if (is_remembered) {
    Snapshot state = remembered_state();
    state.line.reset();
    const auto looked = m_line.look(work, state, limit);
    return looked ? Result(std::move(state)) : looked.error();
  }
  m_remembered.reset();
  auto read = this->read(work.lock.text(), limit);
  if (read && read->face) {
    ASSIGN_OR_RETURN(auto bytes, with_face(read->bytes, *read->face, LockKeys(work.lock), read->time_us));
    read->bytes = std::move(bytes);
  }
  if (read && m_keeper) {
    RETURN_IF_ERROR(m_keeper->complete(work.lock, *read, limit));
  }
  if (read) {
    RETURN_IF_ERROR(m_line.look(work, *read, limit));
    // The store's clock has moved on by at least what passes from now on.
    m_remembered = Remembered{.lock = work.lock.text(), .state = *read, .at = m_clock.now()};
  }
  return read;
}

// Runs a part of the work, or a command, on the key space of the record.
std::optional<Value> RecordHost::run_part(const Work& work, ScriptPart part, const Snapshot& state, KeySpace::Keys keys)
{
  m_keys.replace(std::move(keys));
  m_keys.set_time(state.time_us);
  m_listeners = state.listeners;
  m_messages.clear();
  return work.script == nullptr ? m_keys.command(work.words) : m_scripts.run(*work.script, part, work.keys, work.words);
}

Result<Started> RecordHost::start_from(const Work& work, const Snapshot& state)
{
  ASSIGN_OR_RETURN(auto record, decode(state.bytes));
  const bool must_prepare = m_keeper && m_keeper->prepare(work.asked, work.lock, record, state);
  Started start{.record = std::move(record),
                .log = {},
                .must_write = must_prepare || may_still_change(work.lock.text(), state.version)};
  m_line.begin(work, state, start);
  start.log = log_in(start.record, LockKeys(work.lock).events, state.time_us);
  return start;
}

// A release after which the line decides who is next.
std::optional<Value> RecordHost::release_to_none(const Work& work, const Snapshot& state, const Started& start)
{
  const auto alone = m_line.without_hand_over(work, state, start);
  auto answer = alone ? run_part(*alone, ScriptPart::whole, state, start.record.keys) : std::nullopt;
  if (answer && is_answer<answers::Released>(*answer)) {
    m_line.call_first_waiter(work, start);
  }
  return answer;
}

// Runs the work on the state. Changes no lock in the store; may make a presence there.
Result<Decision> RecordHost::decide(const Work& work, const Snapshot& state, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(auto start, start_from(work, state));
  RETURN_IF_ERROR(m_line.check_format(work, start));
  auto answer = release_to_none(work, state, start);
  const bool is_answered = answer.has_value();
  KeySpace::Keys keys = std::move(start.record.keys);
  if (work.reads_log() && !start.log.is_over) {
    ASSIGN_OR_RETURN(auto whole, events_of(work.lock.text(), limit));
    keys[LockKeys(work.lock).events].data = std::move(whole);
  }
  const bool has_first_part =
      work.script != nullptr && work.script->first_part < work.script->order.size() && !work.reads_log();
  if (!is_answered) {
    answer = run_part(work, has_first_part ? ScriptPart::first : ScriptPart::whole, state, std::move(keys));
  }
  if (!answer && has_first_part) {  // what it did is of no account
    answer = run_part(work, ScriptPart::whole, state, start_from(work, state)->record.keys);
  }
  Decision decision{.answer = std::move(answer).value_or(Value{}), .bytes = state.bytes, .face = {}, .log = {}};
  if (decision.answer.kind == Value::Kind::error) {
    return script_failed(work.lock.text(), decision.answer.text);
  }
  if (auto refusal = m_line.refusal(work, state, decision)) {
    decision.answer = *std::move(refusal);
    m_messages.clear();
    return decision;
  }
  m_line.tell(state, start, decision);
  if (start.native && work.line_use == LineUse::shows) {
    m_messages.clear();
    if (is_answer<answers::Broken>(decision.answer)) {
      RETURN_IF_ERROR(m_line.note_take(work, state, start, decision));
    }
  } else if (!work.reads_log()) {  // what reads the log changes nothing
    RETURN_IF_ERROR(note_change(work, state, start, decision, limit));
  }
  return decision;
}

// The native client that the script has seen holds no lock by the record.
void RecordHost::uncover(const LockName& lock, const Started& start, KeySpace::Keys& keys)
{
  if (start.native && start.covered) {
    keys[lock.text()] = *start.covered;
  } else if (start.native) {
    keys.erase(lock.text());
  }
}

// The time is another one.
bool RecordHost::is_changed_by(const Work& work, const Snapshot& state, const LockRecord& after)
{
  auto before = start_from(work, state);
  if (before) {
    uncover(work.lock, *before, before->record.keys);
  }
  return !before || is_changed(std::move(before->record.keys), after.keys, state.time_us);
}

// Adds to the decision what must be written after the script.
Result<Done> RecordHost::note_change(const Work& work, const Snapshot& state, const Started& start, Decision& decision,
                                     const CallLimits& limit)
{
  bool changes = start.must_write || m_keys.may_have_changed() || !m_messages.empty();
  if (!changes && !m_keeper) {
    return Done{};
  }
  LockRecord after{.keys = m_keys.take_keys(), .log_base = start.log.base};
  decision.is_written = start.must_write;
  if (m_keeper) {
    uncover(work.lock, start, after.keys);
    changes =
        start.must_write || !m_messages.empty() || (m_keys.may_have_changed() && is_changed_by(work, state, after));
    after.time_us = state.time_us;
    after.bindings = start.record.bindings;
    const auto& parts = decision.answer.elements;
    auto bound =
        m_keeper->bind(m_line.asked(work, after), work.lock, parts.empty() ? "" : parts.front().text, after, limit);
    if (!bound) {
      return bound.error();
    }
    decision.is_stale = bound->is_stale;
    decision.needed = std::move(bound->needed);
    decision.is_written = decision.is_written || bound->is_changed;
    m_line.note(work, state, start, after, decision);
    changes = changes || bound->is_changed || !decision.line.is_none();
  }
  if (changes) {
    m_line.call_waiter_in(work, after);
    const LockKeys names(work.lock);
    decision.log = change_of(start.log, after.keys, names.events);
    if (beside_of(after) != no_line) {
      LockLine::note_fences(state, after, decision);
    }
    shorten_log(after, names.events, m_logged);
    decision.face = face_of(after.keys, names);
    if (beside_of(after) != no_line && decision.face.holder.empty()) {
      decision.face.holder = "?";  // maybe a native client
    }
    decision.bytes = encode(after);
  }
  return Done{};
}

// Returns an Error when the time is over. A job's caller whose time, since `begun`, is half over pauses as after its first conflict,
// so that it is not always behind those that have just come.
Result<Done> RecordHost::pause_after_conflict(int conflicts, Instant begun, const Attempt& attempt,
                                              const CallLimits& limit)
{
  const Instant now = m_clock.now();
  const bool is_late = !attempt.only_joins_queue && now - begun > limit.deadline - now;
  const auto most = limit_of_pause(is_late ? 1 : conflicts, attempt.only_joins_queue, attempt.took);
  const Instant until = now + std::chrono::microseconds(below(*m_rng, static_cast<std::uint64_t>(most.count()) + 1));
  if (until >= limit.deadline) {
    return Error{ErrorCode::server_not_ready, {}};
  }
  return m_clock.sleep_until(until, limit.stop) == Wake::due ? Result(Done{}) : interrupted();
}

// A commit without an answer may still be on its way to the store. Only another commit on the same version keeps it from
// happening: without that, a caller that gives back what it may have taken would find nothing, and have it a moment later.
bool RecordHost::may_still_change(std::string_view lock, const Version& version) const
{
  const auto unanswered = m_unanswered.find(lock);
  return unanswered != m_unanswered.end() && unanswered->second == version;
}

Result<Commit> RecordHost::commit(const Work& work, const Snapshot& state, const Decision& decision,
                                  const CallLimits& limit)
{
  if (decision.bytes.size() > longest_record) {
    return Commit{TooLarge{{.code = ErrorCode::server_not_ready,
                            .text = "the record of the lock " + printable(work.lock.text()) +
                                    " would have more than 1 MiB (too many waiters)",
                            .no_room = true}}};
  }
  auto committed =
      m_backend->write_if(work.lock.text(), state.version,
                          {.bytes = decision.bytes,
                           .face = decision.face,
                           .log = decision.log,
                           .messages = m_messages,
                           .needed = decision.needed,
                           .ended = m_keeper ? std::span(m_keeper->ended()) : std::span<const PresenceId>(),
                           .line = m_line.is_known() ? &decision.line : nullptr},
                          limit);
  if (committed) {
    m_unanswered.erase(work.lock.text());
  } else {
    m_unanswered.insert_or_assign(work.lock.text(), state.version);
  }
  return committed;
}

// Scripts work with each part of the log that is there. All of it stands beside the record.
bool RecordHost::can_shorten_log()
{
  const bool can = m_logged > 1;
  m_logged = can ? m_logged / 2 : m_logged;
  return can;
}

Result<RecordHost::Attempt> RecordHost::finish(const Work& work, const Snapshot& state, std::int64_t order,
                                               Decision& decision, const CallLimits& limit)
{
  if (m_keeper) {
    m_keeper->settle(limit);
  }
  ASSIGN_OR_RETURN(const auto answered, m_line.answer(work, state, order, decision, limit));
  return answered ? Attempt{.reply = reply_of(decision.answer)} : Attempt{};
}

// A release whose commit the store refuses, because it has no room: the hold ends with its presence, and the store does not hear of
// the run. The hand-over has not happened.
std::optional<RecordHost::Attempt> RecordHost::release_without_commit(const Work& work, const Error& why,
                                                                      const Decision& decision, const CallLimits& limit)
{
  const bool was_held = is_answer<answers::Released>(decision.answer);
  if (!m_keeper || work.asked.verb != Asked::Verb::release || !why.no_room ||
      !(was_held || is_answer<answers::Left>(decision.answer)) || !m_keeper->end_without_commit(limit)) {
    return std::nullopt;
  }
  m_remembered.reset();
  return Attempt{.reply = reply_of(was_held ? reply_with(answers::Released{.untold = why.text}) : decision.answer)};
}

// A holder whose presence was asked for after the record may have released the lock in between, and another one may hold it now.
Result<bool> RecordHost::is_still_true(const Work& work, const Snapshot& state, const CallLimits& limit)
{
  if (!m_keeper || m_keeper->ended().empty()) {
    return true;
  }
  const auto now = m_backend->read(work.lock.text(), limit);
  return now ? Result(now->version == state.version) : now.error();
}

Result<RecordHost::Attempt> RecordHost::try_once(const Work& work, bool is_remembered, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto state, state_of(work, is_remembered, limit));
  ASSIGN_OR_RETURN(auto decision, decide(work, state, limit));
  const Attempt again{.reply = std::nullopt,
                      .only_joins_queue = is_answer<answers::Busy>(decision.answer) && m_messages.empty()};
  if (decision.is_stale) {
    return again;
  }
  if (!decision.is_written && decision.bytes == state.bytes && m_messages.empty()) {
    // What changes nothing must be true of a fresh state.
    if (is_remembered) {
      return try_once(work, false, limit);
    }
    ASSIGN_OR_RETURN(const auto is_true, is_still_true(work, state, limit));
    return is_true ? finish(work, state, 0, decision, limit) : Result(again);
  }
  auto committed = commit(work, state, decision, limit);
  if (!committed) {
    const auto released = release_without_commit(work, committed.error(), decision, limit);
    return released ? Result(*released) : committed.error();
  }
  if (auto* done = std::get_if<Committed>(&*committed)) {
    m_remembered->state.version = std::move(done->version);
    m_remembered->state.bytes = decision.bytes;
    if (m_keeper) {
      m_keeper->remove_unbound(limit);
    }
    return finish(work, state, done->order, decision, limit);
  }
  if (const auto* refused = std::get_if<TooLarge>(&*committed)) {
    return can_shorten_log() ? try_once(work, false, limit) : refused->why;
  }
  if (m_keeper && std::holds_alternative<PresenceGone>(*committed)) {
    m_keeper->lost(decision.needed);
  }
  return again;
}

// Asks what may be asked again. A member that does not answer in its share of the time is left for the next one. Where a member was
// there and ended the connection, or knows no leader, a leader is probably being elected, and the same is asked again.
template <typename Ask>
auto RecordHost::ask_members(const CallLimits& limit, Ask ask) -> decltype(ask(limit))
{
  for (std::size_t untried = m_backend->members();;) {
    const CallLimits share = share_of(limit, m_clock.now(), untried);
    auto answer = ask(share);
    if (answer || answer.error().code != ErrorCode::unreachable || m_backend->members() == 1) {
      return answer;
    }
    const Instant now = m_clock.now();
    if (now >= share.deadline && untried > 1) {
      --untried;
    } else if (!answer.error().was_there || now + pause_without_leader >= limit.deadline ||
               m_clock.sleep_until(now + pause_without_leader, limit.stop) != Wake::due) {
      return answer;
    }
  }
}

Result<Reply> RecordHost::execute(const Work& work, const CallLimits& limit)
{
  if (m_keeper) {
    RETURN_IF_ERROR(m_keeper->renew(work.asked, limit));
  }
  bool is_remembered = work.as<calls::Release>() != nullptr && remembers(work.lock.text());
  const Instant first = m_clock.now();
  for (int conflicts = 0;;) {
    const Instant begun = m_clock.now();
    auto attempt = ask_members(
        limit, [&](const CallLimits& share) { return try_once(work, std::exchange(is_remembered, false), share); });
    if (attempt && attempt->reply) {
      return *std::move(attempt->reply);
    }
    m_remembered.reset();
    if (!attempt) {
      return after_conflicts(conflicts, attempt.error());
    }
    attempt->took = std::chrono::duration_cast<std::chrono::microseconds>(m_clock.now() - begun);
    if (const auto paused = pause_after_conflict(++conflicts, first, *attempt, limit); !paused) {
      return paused.error().code == ErrorCode::interrupted ? paused.error() : busy_record(work.lock.text());
    }
  }
}

Result<Reply> RecordHost::run(const ScriptRequest& request, const CallLimits& limit)
{
  ScriptCall call = call_of(request, false);
  ASSIGN_OR_RETURN(const auto lock, LockName::parse(call.keys.front()));
  Work work{.lock = lock, .script = &call.script, .keys = std::move(call.keys), .words = std::move(call.args)};
  work.request = std::get_if<VerbRequest>(&request);
  if (work.request != nullptr) {
    RETURN_IF_ERROR(prepare(work));
  }
  return execute(work, limit);
}

// What the engine does for a verb beside its script.
Result<Done> RecordHost::prepare(Work& work)
{
  const VerbRequest& request = *work.request;
  const bool acquires = request.as<calls::Acquire>() != nullptr;
  if (m_backend->is_shared() && acquires && !std::holds_alternative<Plain>(request.kind)) {
    return Error{
        // another program knows exclusive locks only
        ErrorCode::config,
        "a table or collection of ShedLock has exclusive locks only (leave out --shared, --exclusive, --permits and "
        "--format)"};
  }
  ASSIGN_OR_RETURN(const auto beside, m_line.format_in(request));
  if (acquires) {
    m_backend->ask_for_rights();
  }
  work.asked = m_keeper ? asked_of(request) : Asked{};
  work.line_use = m_line.use_in(request);
  work.beside = beside;
  return Done{};
}

// A release sends messages, for which an adapter remembers who listened at its last read.
std::vector<Result<Reply>> RecordHost::run_each(std::span<const ScriptRequest> requests, const CallLimits& limit)
{
  std::vector<std::string> names;
  bool only_asks = true, reads_logs = false;
  for (const ScriptRequest& request : requests) {
    const auto* const verb = std::get_if<VerbRequest>(&request);
    const auto* const inspect = verb == nullptr ? nullptr : verb->as<calls::Inspect>();
    only_asks = only_asks && (verb == nullptr || verb->as<calls::Release>() == nullptr);
    reads_logs = reads_logs || (inspect != nullptr && inspect->log_from);
    names.push_back(verb == nullptr ? std::get<ScriptCall>(request).keys.front() : verb->lock.text());
  }
  if (only_asks) {
    read_ahead(std::vector<std::string_view>(names.begin(), names.end()), reads_logs, limit);
  }
  auto replies = ScriptHost::run_each(requests, limit);
  m_ahead.clear();
  return replies;
}

Result<Reply> RecordHost::command(const LockName& lock, std::span<const std::string_view> argv, const CallLimits& limit)
{
  return execute({.lock = lock, .words = Words(argv.begin(), argv.end())}, limit);
}

// The store does not know when a log is over; the record does.
Result<std::vector<std::string>> RecordHost::log_of(const LockName& lock, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto state,
                   ask_members(limit, [&](const CallLimits& share) { return read(lock.text(), share); }));
  ASSIGN_OR_RETURN(const auto record, decode(state.bytes));
  return log_in(record, LockKeys(lock).events, state.time_us).is_over
             ? Result(std::vector<std::string>())
             : ask_members(limit, [&](const CallLimits& share) { return events_of(lock.text(), share); });
}

std::vector<Result<std::vector<std::string>>> RecordHost::logs(std::span<const LockName> locks, const CallLimits& limit)
{
  constexpr std::size_t batch = 32;
  std::vector<Result<std::vector<std::string>>> all;
  while (!locks.empty()) {
    const auto some = locks.first(std::min(batch, locks.size()));
    locks = locks.subspan(some.size());
    std::vector<std::string_view> names;
    for (const LockName& lock : some) {
      names.emplace_back(lock.text());
    }
    read_ahead(names, true, limit);
    for (const LockName& lock : some) {
      all.push_back(log_of(lock, limit));
    }
  }
  m_ahead.clear();
  return all;
}

Result<std::unique_ptr<MessageSource>> RecordHost::subscribe(std::span<const LockChannel> channels,
                                                             const CallLimits& limit)
{
  // The version changes, also for an owner that is in no queue and only looks at the lock: a commit that was decided before would
  // send it no message, and what it asks after this (is_queued, inspect) writes nothing that could refuse that commit.
  m_remembered.reset();
  return m_backend->listen(channels, limit);
}

Result<std::vector<std::string>> RecordHost::find_locks(std::string_view glob, const PerAnswer& limits)
{
  return ask_members(limits.next(),
                     [&](const CallLimits& share) { return m_backend->list(glob, Backend::Which::held, share); });
}

Result<std::vector<std::string>> RecordHost::find_logs(std::string_view glob, const PerAnswer& limits)
{
  return ask_members(limits.next(), [&](const CallLimits& share) {
    return m_backend->list(glob, Backend::Which::with_events, share);
  });
}

Result<Done> RecordHost::await_replicas(const LockRequest& request, const CallLimits& limit)
{
  return m_backend->await_replicas(request, limit);
}

Result<Done> RecordHost::erase(const LockName& lock, const CallLimits& limit)
{
  m_remembered.reset();
  return m_backend->erase(lock.text(), limit);
}

void RecordHost::drop_connection()
{
  m_remembered.reset();
  m_backend->drop_connection();
}

}  // namespace rlock::record
