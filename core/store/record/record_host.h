// SPDX-License-Identifier: Apache-2.0
// Runs the scripts of lua/ for a store that cannot run them: reads the record of the lock, runs the script on it, and writes the
// record back. If another client has written the record meanwhile, the host reads it again.
//
// Why this is safe:
// * A commit replaces exactly the state on which it was decided, however late it arrives, because a version never comes back.
// * The time of the script is that of the read: not later than the state, so a hold that is over at that time was over in that
//   state; and not earlier than the sending, so a lease ends no earlier than its client believes.
// * A request that is sent twice, or whose answer is lost, gets the same answer, as on Redis: the scripts see to that.
// * Only a release is decided on a remembered state, whose time is an estimate that is too early: it grants its caller nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "store/record/key_space.h"
#include "store/record/record_backend.h"
#include "store/record/record_codec.h"
#include "store/record/script_interpreter.h"
#include "store/script/script_host.h"

namespace rlock::record {

// A record that would become larger is not written. 1 000 waiters need about a third.
inline constexpr std::size_t longest_record = std::size_t{1} << 20;

// The entries of the event log that stay in the record, because scripts look for the last hand-over of an owner. Each adds some
// 250 bytes to every commit.
inline constexpr std::size_t entries_in_record = 24;

// Threads and ownership: as ScriptHost says. `clock` must outlive it.
class RecordHost final : public ScriptHost, public StoreChecks {
 public:
  RecordHost(std::unique_ptr<Backend> backend, const Clock& clock, std::unique_ptr<Rng> rng);

  Result<Reply> run(const ScriptRequest& request, const CallLimits& limit) override;
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
  StoreChecks* store_checks() override { return this; }
  [[nodiscard]] bool spares_connections() const override { return true; }
  [[nodiscard]] bool has_only_locks() const override { return m_backend->is_shared(); }
  void drop_connection() override;

 private:
  // A script, or a command, for one lock.
  struct Work {
    const LockName& lock;
    const Script* script;  // nullptr: a command
    Words keys;
    Words words;  // ARGV, or the command
    bool reads_log = false;
    bool may_use_remembered = false;
  };
  // The state of a lock after the last read or commit of this host.
  struct Remembered {
    std::string lock;
    Snapshot state;
    Instant at;  // when the state was read
  };
  struct Decision {
    Value answer;
    std::string bytes;
    Face face;
    LogChange log;
  };

  Result<Reply> execute(const Work& work, const CallLimits& limit);
  [[nodiscard]] bool remembers(std::string_view lock) const;
  [[nodiscard]] Snapshot remembered_state() const;
  Result<Snapshot> state_of(const Work& work, bool is_remembered, const CallLimits& limit);
  Result<Decision> decide(const Work& work, const Snapshot& state, const CallLimits& limit);
  std::optional<Value> run_part(const Work& work, ScriptPart part, const Snapshot& state, LockRecord record);
  Result<Commit> commit(const Work& work, const Snapshot& state, const Decision& decision, const CallLimits& limit);
  Result<std::vector<std::string>> log_of(const LockName& lock, const CallLimits& limit);
  Result<Done> pause_after_conflict(int conflicts, const Decision& decision, const CallLimits& limit);

  std::unique_ptr<Backend> m_backend;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  KeySpace m_keys;
  ScriptInterpreter m_scripts{m_keys};
  std::vector<std::string> m_listeners;  // of the state on which a script runs
  std::vector<Message> m_messages;       // that the script has published
  std::optional<Remembered> m_remembered;
};

}  // namespace rlock::record
