// SPDX-License-Identifier: Apache-2.0
// Runs the scripts of lua/ for a store that cannot run them: reads the record of the lock, runs the script on it, and writes the
// record back. If another client has written the record meanwhile, the host reads it again.
//
// Why this is safe:
// * A commit replaces exactly the state on which it was decided, however late it arrives, because a version never comes back.
// * The time of the script is that of the read: not later than the state, so a hold that is over at that time was over in that
//   state; and not earlier than the sending, so a lease ends no earlier than its client believes.
// * A request that is sent twice, or whose answer is lost, gets the same answer, as on Redis: the scripts see to that.
// * In a store with presences holds end with them instead: presence_keeper.h.
// * Only a release is decided on a remembered state, whose time is an estimate that is too early: it grants its caller nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "engine/key_space.h"
#include "engine/lock_line.h"
#include "engine/presence_keeper.h"
#include "engine/record_backend.h"
#include "engine/record_codec.h"
#include "engine/record_work.h"
#include "engine/script_host.h"
#include "engine/script_interpreter.h"

namespace rlock::record {

// A record that would become larger is not written. 1 000 waiters need about a third.
inline constexpr std::size_t longest_record = std::size_t{1} << 20;

// Threads and ownership: as ScriptHost says. `clock` must outlive it.
class RecordHost final : public ScriptHost {
 public:
  RecordHost(std::unique_ptr<Backend> backend, const Clock& clock, std::unique_ptr<Rng> rng);

  Result<Reply> run(const ScriptRequest& request, const CallLimits& limit) override;
  std::vector<Result<Reply>> run_each(std::span<const ScriptRequest> requests, const CallLimits& limit) override;
  Result<Reply> command(const LockName& lock, std::span<const std::string_view> argv, const CallLimits& limit) override;
  std::vector<Result<std::vector<std::string>>> logs(std::span<const LockName> locks, const CallLimits& limit) override;
  Result<std::unique_ptr<MessageSource>> subscribe(std::span<const LockChannel> channels,
                                                   const CallLimits& limit) override;
  Result<std::vector<std::string>> find_locks(std::string_view glob, const PerAnswer& limits) override;
  Result<std::vector<std::string>> find_logs(std::string_view glob, const PerAnswer& limits) override;
  Result<Done> await_replicas(const LockRequest& request, const CallLimits& limit) override;
  [[nodiscard]] bool is_about_one_lock(const Error&) const override { return false; }
  Result<Done> erase(const LockName& lock, const CallLimits& limit) override;
  Result<std::vector<Finding>> check_server(const CallLimits& limit) override { return m_backend->check_server(limit); }
  LeaseKeeping* lease_keeping() override
  {
    Presences* const presences = m_backend->presences();
    return presences != nullptr ? presences->lease_keeping() : nullptr;
  }
  // In a store that knows its clients, a waiter far back keeps its connection, with which its place in the queue ends; a waiter
  // without the store's clock cannot tell when a hand-over was, and asks, as after a fail-over. A table of ShedLock has a row for
  // each lock, and no place for another record.
  [[nodiscard]] Traits traits() const override
  {
    const bool knows_clients = m_keeper.has_value();
    const bool is_shared = m_backend->is_shared();
    return {.ends_holds_with_clients = knows_clients,
            .spares_connections = !knows_clients,
            .may_fail_over = knows_clients,
            .has_only_locks = is_shared,
            .can_keep_runs = !is_shared,
            .can_check_server = true};
  }
  [[nodiscard]] std::optional<LeaseTerm> lease_of(const Owner& owner) const override
  {
    return m_keeper ? m_keeper->lease_of(owner.text()) : std::nullopt;
  }
  void drop_connection() override;

 private:
  // The state of a lock after the last read or commit of this host.
  struct Remembered {
    std::string lock;
    Snapshot state;
    Instant at;  // when the state was read
  };
  // What came of one state. No reply: the state was not, or is no longer, that of the store.
  struct Attempt {
    std::optional<Reply> reply;
    bool only_joins_queue = false;      // no job waits for the reply
    std::chrono::microseconds took{0};  // from the read to the answer to the commit
  };

  void read_ahead(std::span<const std::string_view> locks, bool with_logs, const CallLimits& limit);
  Result<Snapshot> read(std::string_view lock, const CallLimits& limit);
  Result<std::vector<std::string>> events_of(std::string_view lock, const CallLimits& limit);
  Result<Done> prepare(Work& work);
  Result<Reply> execute(const Work& work, const CallLimits& limit);
  template <typename Ask>
  auto ask_members(const CallLimits& limit, Ask ask) -> decltype(ask(limit));
  [[nodiscard]] bool remembers(std::string_view lock) const;
  [[nodiscard]] Snapshot remembered_state() const;
  Result<Snapshot> state_of(const Work& work, bool is_remembered, const CallLimits& limit);
  Result<Started> start_from(const Work& work, const Snapshot& state);
  Result<Decision> decide(const Work& work, const Snapshot& state, const CallLimits& limit);
  Result<Done> note_change(const Work& work, const Snapshot& state, const Started& start, Decision& decision,
                           const CallLimits& limit);
  static void uncover(const LockName& lock, const Started& start, KeySpace::Keys& keys);
  bool is_changed_by(const Work& work, const Snapshot& state, const LockRecord& after);
  std::optional<Value> run_part(const Work& work, ScriptPart part, const Snapshot& state, KeySpace::Keys keys);
  std::optional<Value> release_to_none(const Work& work, const Snapshot& state, const Started& start);
  [[nodiscard]] bool may_still_change(std::string_view lock, const Version& version) const;
  Result<Commit> commit(const Work& work, const Snapshot& state, const Decision& decision, const CallLimits& limit);
  bool can_shorten_log();
  Result<std::vector<std::string>> log_of(const LockName& lock, const CallLimits& limit);
  Result<bool> is_still_true(const Work& work, const Snapshot& state, const CallLimits& limit);
  Result<Attempt> try_once(const Work& work, bool is_remembered, const CallLimits& limit);
  std::optional<Attempt> release_without_commit(const Work& work, const Error& why, const Decision& decision,
                                                const CallLimits& limit);
  Result<Attempt> finish(const Work& work, const Snapshot& state, std::int64_t order, Decision& decision,
                         const CallLimits& limit);
  Result<Done> pause_after_conflict(int conflicts, Instant begun, const Attempt& attempt, const CallLimits& limit);

  std::unique_ptr<Backend> m_backend;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  std::optional<PresenceKeeper> m_keeper;  // for a store with presences
  KeySpace m_keys;
  LockLine m_line{*m_backend, m_keys};
  ScriptInterpreter m_scripts{m_keys};
  std::vector<std::string> m_listeners;  // of the state on which a script runs
  std::vector<Message> m_messages;       // that the script has published
  std::optional<Remembered> m_remembered;
  StatesAndLogs m_ahead;                                // each is used once
  std::optional<std::vector<std::string>> m_log_ahead;  // of the state that was read last
  std::size_t m_logged =
      entries_in_record;  // the entries of the event log that the records keep; fewer where they are too large
  std::map<std::string, Version, std::less<>>
      m_unanswered;  // of each lock the version that the last commit was to replace
};

}  // namespace rlock::record
