// SPDX-License-Identifier: Apache-2.0
// Does a request to the record engine in rounds. A round reads the record, runs the script on it and commits. Another round follows when
// another client has written the record meanwhile. Private to engine.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/clock.h"
#include "base/reply.h"
#include "base/result.h"
#include "engine/key_space.h"
#include "engine/record_backend.h"
#include "engine/record_round.h"
#include "engine/script_interpreter.h"

namespace rlock::record {

// A record that would become larger is not written. 1 000 waiters need about a third.
inline constexpr std::size_t longest_record = std::size_t{1} << 20;

// Not thread-safe.
class RecordRounds {
 public:
  // All must outlive it.
  RecordRounds(Backend& backend, const Clock& clock, Rng& rng);
  // Behind the stages that are there.
  void add(std::unique_ptr<Stage> stage) { m_stages.push_back(std::move(stage)); }

  Result<Reply> execute(const Work& work, const CallLimits& limit);
  // The next request reads the record, whatever it is.
  void forget() { m_remembered.reset(); }

  Result<State> read(const LockName& lock, const CallLimits& limit);
  // Reads several locks together, each of which is then read once without a request. An error is told by those reads.
  void read_ahead(std::span<const LockName> locks, bool with_logs, const CallLimits& limit);
  void forget_ahead() { m_ahead.clear(); }
  // The whole event log, as it was read with the state, or is read now.
  Result<std::vector<std::string>> log_of(const State& state, const CallLimits& limit);

  // Asks what may be asked again. A member that does not answer in its share of the time is left for the next one. Where a member was
  // there and ended the connection, or knows no leader, a leader is probably being elected, and the same is asked again.
  template <typename Ask>
  auto ask_members(const CallLimits& limit, Ask ask) -> decltype(ask(limit))
  {
    constexpr Millis pause_without_leader{100};
    for (std::size_t untried = m_backend.members();;) {
      const CallLimits share = share_of(limit, m_clock.now(), untried);
      auto answer = ask(share);
      if (answer || answer.error().code != ErrorCode::unreachable || m_backend.members() == 1) {
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

 private:
  // What came of one round. No reply: its state was not, or is no longer, that of the store.
  struct Attempt {
    std::optional<Reply> reply = std::nullopt;
    bool only_joins_queue = false;      // no job waits for the reply
    std::chrono::microseconds took{0};  // from the read to the answer to the commit
  };

  Result<State> decoded(const LockName& lock, Snapshot read) const;
  Result<Done> complete(std::span<State> states, const CallLimits& limit) const;
  Result<Round> begin_round(const Work& work, bool is_remembered, const CallLimits& limit);
  std::optional<Reply> run_part(Round& round, ScriptPart part);
  Result<Done> run_script(Round& round);
  Result<Done> decide(Round& round, const CallLimits& limit);
  Result<bool> is_still_true(const Round& round, const CallLimits& limit);
  Result<Commit> commit(Round& round, const CallLimits& limit);
  Result<Attempt> finish(Round& round, const CallLimits& limit);
  Result<Attempt> try_once(const Work& work, bool is_remembered, const CallLimits& limit);
  Result<Done> pause_after_conflict(int conflicts, Instant begun, const Attempt& attempt, const CallLimits& limit);

  Backend& m_backend;
  const Clock& m_clock;
  Rng& m_rng;
  Stages m_stages;
  KeySpace m_keys;
  ScriptInterpreter m_scripts{m_keys};
  Round* m_round = nullptr;  // whose script runs
  std::map<std::string, State, std::less<>> m_ahead;
  std::optional<State> m_remembered;  // of a lock, after the last read or commit of this host
  // The entries of the event log that the records keep; fewer where they are too large.
  std::size_t m_logged = entries_in_record;
  // Of each lock the version that the last commit was to replace, if that got no answer.
  std::map<std::string, Version, std::less<>> m_unanswered;
};

}  // namespace rlock::record
