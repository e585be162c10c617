// SPDX-License-Identifier: Apache-2.0
#include "engine/record_rounds.h"

#include <algorithm>
#include <utility>
#include "base/text.h"
#include "base/wait.h"
#include "engine/bound_owners.h"
#include "engine/foreign_face.h"
#include "engine/lock_keys.h"
#include "engine/script_reply.h"

namespace rlock::record {
namespace {

// A remembered state that is older is read again.
constexpr std::chrono::seconds remembered_for{10};

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

RecordRounds::RecordRounds(Backend& backend, const Clock& clock, Rng& rng)
    : m_backend(backend), m_clock(clock), m_rng(rng)
{
  m_keys.count_subscribers = [this](const std::string& channel) {
    return static_cast<std::int64_t>(std::ranges::count(m_round->state.read.listeners, channel));
  };
  m_keys.on_publish = [this](const std::string& channel, const std::string& text) {
    return m_round->publish(channel, text);
  };
}

// The store's clock has moved on by at least what passes from now on.
Result<State> RecordRounds::decoded(const LockName& lock, Snapshot read) const
{
  ASSIGN_OR_RETURN(auto record, decode(std::exchange(read.bytes, {})));
  if (read.face) {
    fit_to_face(record, *read.face, LockKeys(lock), read.time_us);
  }
  return State{.lock = lock, .read = std::move(read), .at = m_clock.now(), .record = std::move(record)};
}

Result<Done> RecordRounds::complete(std::span<State> states, const CallLimits& limit) const
{
  for (const auto& stage : m_stages) {
    RETURN_IF_ERROR(stage->after_read(states, limit));
  }
  return Done{};
}

void RecordRounds::read_ahead(std::span<const LockName> locks, bool with_logs, const CallLimits& limit)
{
  m_ahead.clear();
  if (locks.size() < 2) {
    return;
  }
  std::vector<std::string_view> names;
  for (const LockName& lock : locks) {
    names.emplace_back(lock.text());
  }
  auto read = m_backend.read_each(names, with_logs, limit);
  if (!read) {
    return;
  }
  std::vector<State> states;
  for (auto& [name, known] : *read) {
    const auto lock = LockName::parse(name);
    auto state = lock ? decoded(*lock, std::move(known.state)) : Result<State>(lock.error());
    if (state) {
      state->whole_log = std::move(known.log);
      states.push_back(*std::move(state));
    }
  }
  if (!complete(states, limit)) {
    return;
  }
  for (State& state : states) {
    m_ahead.emplace(std::string(state.lock.text()), std::move(state));
  }
}

Result<State> RecordRounds::read(const LockName& lock, const CallLimits& limit)
{
  if (auto ahead = m_ahead.extract(lock.text())) {
    return Result<State>(std::move(ahead.mapped()));
  }
  ASSIGN_OR_RETURN(auto read, m_backend.read(lock.text(), limit));
  ASSIGN_OR_RETURN(auto state, decoded(lock, std::move(read)));
  RETURN_IF_ERROR(complete({&state, 1}, limit));
  return state;
}

Result<std::vector<std::string>> RecordRounds::log_of(const State& state, const CallLimits& limit)
{
  return state.whole_log ? Result(*state.whole_log) : m_backend.events(state.lock.text(), limit);
}

// The time of a remembered state is never later than the store's clock.
Result<Round> RecordRounds::begin_round(const Work& work, bool is_remembered, const CallLimits& limit)
{
  std::optional<State> state = std::exchange(m_remembered, std::nullopt);
  std::chrono::microseconds passed{0};
  if (is_remembered) {
    passed = std::chrono::duration_cast<std::chrono::microseconds>(m_clock.now() - state->at);
  } else {
    ASSIGN_OR_RETURN(state, read(work.lock, limit));
  }
  const std::int64_t time_us = state->read.time_us + passed.count() - passed.count() / clock_drift_divisor;
  Round round{.work = work, .state = *std::move(state), .time_us = time_us, .before = {}};
  round.before = round.state.record;
  // A commit without an answer may still be on its way to the store. Only another commit on the same version keeps it from happening:
  // without that, a caller that gives back what it may have taken would find nothing, and have it a moment later.
  const auto unanswered = m_unanswered.find(work.lock.text());
  round.must_write = unanswered != m_unanswered.end() && unanswered->second == round.state.read.version;
  return round;
}

std::optional<Reply> RecordRounds::run_part(Round& round, ScriptPart part)
{
  const Work& work = round.work;
  KeySpace::Keys keys = round.before.keys;
  if (round.state.whole_log && work.reads_log() && !round.log.is_over) {
    keys[LockKeys(work.lock).events].data = *round.state.whole_log;
  }
  m_keys.replace(std::move(keys));
  m_keys.set_time(round.time_us);
  round.messages.clear();
  const Words& words = round.words ? *round.words : work.words;
  return work.script == nullptr ? m_keys.command(words) : m_scripts.run(*work.script, part, work.keys, words);
}

// What a first part without an answer did is of no account.
Result<Done> RecordRounds::run_script(Round& round)
{
  m_round = &round;
  const Work& work = round.work;
  const bool has_first_part =
      work.script != nullptr && work.script->first_part < work.script->order.size() && !work.reads_log();
  std::optional<Reply> answer;
  if (has_first_part) {
    answer = run_part(round, ScriptPart::first);
  }
  if (!answer) {
    answer = run_part(round, ScriptPart::whole);
  }
  round.answer = std::move(answer).value_or(Reply{});
  if (round.answer.is_error()) {
    return script_failed(work.lock.text(), round.answer.text);
  }
  if (work.reads_log()) {  // and changes nothing
    m_keys.replace(round.before.keys);
  }
  const bool may_have_changed = m_keys.may_have_changed();
  round.after = {.keys = m_keys.take_keys(),
                 .log_base = round.log.base,
                 .time_us = round.before.time_us,
                 .bindings = round.before.bindings};
  round.is_changed = may_have_changed && is_changed(round.before.keys, round.after.keys, round.time_us);
  round.log_change = change_of(round.log, round.after.keys, LockKeys(work.lock).events);
  return Done{};
}

// Changes no lock in the store; may make a presence there.
Result<Done> RecordRounds::decide(Round& round, const CallLimits& limit)
{
  for (const auto& stage : m_stages) {
    ASSIGN_OR_RETURN(const bool takes_part, stage->before_script(round, limit));
    if (takes_part) {
      round.stages.insert(round.stages.begin(), stage.get());
    }
  }
  round.log = log_in(round.before, LockKeys(round.work.lock).events, round.time_us);
  if (round.work.reads_log() && !round.log.is_over) {
    ASSIGN_OR_RETURN(round.state.whole_log, log_of(round.state, limit));
  }
  RETURN_IF_ERROR(run_script(round));
  for (Stage* const stage : round.stages) {
    if (!round.is_settled && !round.is_stale) {
      RETURN_IF_ERROR(stage->after_script(round, limit));
    }
  }
  return Done{};
}

// A holder whose presence was asked for after the record may have released the lock in between, and another one may hold it now.
Result<bool> RecordRounds::is_still_true(const Round& round, const CallLimits& limit)
{
  if (round.ended.empty()) {
    return true;
  }
  const auto now = m_backend.read(round.work.lock.text(), limit);
  return now ? Result(now->version == round.state.read.version) : now.error();
}

Result<Commit> RecordRounds::commit(Round& round, const CallLimits& limit)
{
  const LockKeys names(round.work.lock);
  shorten_log(round.after, names.events, m_logged);
  Face face = face_of(round.after.keys, names);
  face.holder = face.holder.empty() ? round.free_holder : face.holder;
  const std::string bytes = encode(round.after);
  if (bytes.size() > longest_record) {
    return Commit{TooLarge{
        {.code = ErrorCode::server_not_ready,
         .text = "the record of the lock " + printable(names.lock) + " would have more than 1 MiB (too many waiters)",
         .no_room = true}}};
  }
  auto committed = m_backend.write_if(names.lock, round.state.read.version,
                                      {.bytes = bytes,
                                       .face = face,
                                       .log = round.log_change,
                                       .messages = round.messages,
                                       .needed = round.needed,
                                       .ended = round.ended,
                                       .line = &round.line_change},
                                      limit);
  if (committed) {
    m_unanswered.erase(names.lock);
  } else {
    m_unanswered.insert_or_assign(names.lock, round.state.read.version);
  }
  return committed;
}

// A stage may do without a commit that was refused.
Result<RecordRounds::Attempt> RecordRounds::finish(Round& round, const CallLimits& limit)
{
  const bool is_known = round.is_done();
  for (Stage* const stage : round.stages) {
    RETURN_IF_ERROR(stage->after_commit(round, limit));
  }
  if (round.is_stale || !round.is_done()) {
    return round.commit && !*round.commit ? Result<Attempt>(round.commit->error()) : Attempt{};
  }
  if (is_known) {
    m_remembered = std::move(round.state);
  }
  if (const Committed* const done = round.committed(); done != nullptr) {
    m_remembered->read.version = done->version;
    m_remembered->record = std::move(round.after);
  }
  return Attempt{.reply = std::move(round.answer)};
}

Result<RecordRounds::Attempt> RecordRounds::try_once(const Work& work, bool is_remembered, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(auto round, begin_round(work, is_remembered, limit));
  RETURN_IF_ERROR(decide(round, limit));
  const Attempt again{.only_joins_queue = is_answer<answers::Busy>(round.answer) && round.messages.empty()};
  if (round.is_stale) {
    return again;
  }
  if (round.changes()) {
    round.commit = commit(round, limit);
  } else if (is_remembered) {  // what changes nothing must be true of a fresh state
    return try_once(work, false, limit);
  } else {
    ASSIGN_OR_RETURN(const bool is_true, is_still_true(round, limit));
    if (!is_true) {
      return again;
    }
  }
  ASSIGN_OR_RETURN(auto attempt, finish(round, limit));
  if (const auto* refused = round.commit && *round.commit ? std::get_if<TooLarge>(&**round.commit) : nullptr) {
    // Scripts work with each part of the log that is there. All of it stands beside the record.
    if (m_logged == 1) {
      return refused->why;
    }
    m_logged /= 2;
    return try_once(work, false, limit);
  }
  attempt.only_joins_queue = !round.is_done() && again.only_joins_queue;
  return attempt;
}

// Returns an Error when the time is over. A job's caller whose time, since `begun`, is half over pauses as after its first conflict,
// so that it is not always behind those that have just come.
Result<Done> RecordRounds::pause_after_conflict(int conflicts, Instant begun, const Attempt& attempt,
                                                const CallLimits& limit)
{
  const Instant now = m_clock.now();
  const bool is_late = !attempt.only_joins_queue && now - begun > limit.deadline - now;
  const auto most = limit_of_pause(is_late ? 1 : conflicts, attempt.only_joins_queue, attempt.took);
  const Instant until = now + std::chrono::microseconds(below(m_rng, static_cast<std::uint64_t>(most.count()) + 1));
  if (until >= limit.deadline) {
    return Error{ErrorCode::server_not_ready, {}};
  }
  return m_clock.sleep_until(until, limit.stop) == Wake::due ? Result(Done{}) : interrupted();
}

Result<Reply> RecordRounds::execute(const Work& work, const CallLimits& limit)
{
  for (const auto& stage : m_stages) {
    RETURN_IF_ERROR(stage->begin(work, limit));
  }
  bool is_remembered = work.as<calls::Release>() != nullptr && m_remembered && m_remembered->lock == work.lock &&
                       m_clock.now() - m_remembered->at < remembered_for;
  const Instant first = m_clock.now();
  for (int conflicts = 0;;) {
    const Instant begun = m_clock.now();
    auto attempt = ask_members(
        limit, [&](const CallLimits& share) { return try_once(work, std::exchange(is_remembered, false), share); });
    if (!attempt) {
      return after_conflicts(conflicts, attempt.error());
    }
    if (attempt->reply) {
      return *std::move(attempt->reply);
    }
    attempt->took = std::chrono::duration_cast<std::chrono::microseconds>(m_clock.now() - begun);
    if (const auto paused = pause_after_conflict(++conflicts, first, *attempt, limit); !paused) {
      return paused.error().code == ErrorCode::interrupted ? paused.error() : busy_record(work.lock.text());
    }
  }
}

}  // namespace rlock::record
