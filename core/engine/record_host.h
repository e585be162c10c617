// SPDX-License-Identifier: Apache-2.0
// Runs the scripts of lua/ for a store that cannot run them: reads the record of the lock, runs the script on it, and writes the
// record back. If another client has written the record meanwhile, the host reads it again.
//
// Why this is safe:
// * A commit replaces exactly the state on which it was decided, however late it arrives, because a version never comes back.
// * The time of the script is that of the read: not later than the state, so a hold that is over at that time was over in that
//   state; and not earlier than the sending, so a lease ends no earlier than its client believes.
// * A request that is sent twice, or whose answer is lost, gets the same answer, as on Redis: the scripts see to that.
// * In a store with presences holds end with them instead: presence_stage.h.
// * Only a release is decided on a remembered state, whose time is an estimate that is too early: it grants its caller nothing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "engine/presence_stage.h"
#include "engine/record_backend.h"
#include "engine/record_rounds.h"
#include "engine/script_host.h"

namespace rlock::record {

// Its stages, in the order in which they act before the script: LinePlace, PresenceStage, LineLook. After the script and after the
// commit they act in reverse. LinePlace and LineLook are those of a store with native lines, PresenceStage that of one with
// presences.
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
  Result<Done> erase(const LockName& lock, const CallLimits& limit) override;
  Result<std::vector<Finding>> check_server(const CallLimits& limit) override { return m_backend->check_server(limit); }
  [[nodiscard]] std::optional<Millis> lasts_without_keeper() const override
  {
    return m_presences != nullptr ? m_backend->presences()->lasts_without_keeper() : std::nullopt;
  }
  bool keep_leases() override { return m_presences == nullptr || m_backend->presences()->keep_leases(); }
  // In a store that knows its clients, a waiter far back keeps its connection, with which its place in the queue ends; a waiter
  // without the store's exact clock cannot tell when a hand-over was, and asks, as after a fail-over. A table of ShedLock has a row for
  // each lock, and no place for another record.
  [[nodiscard]] Traits traits() const override
  {
    const bool knows_clients = m_presences != nullptr;
    const bool is_shared = m_backend->is_shared();
    return {.ends_holds_with_clients = knows_clients,
            .spares_connections = !knows_clients,
            .may_fail_over = knows_clients || time_behind() > Millis{0},
            .has_only_locks = is_shared,
            .can_keep_runs = !is_shared};
  }
  [[nodiscard]] std::optional<LeaseTerm> lease_of(const Owner& owner) const override
  {
    return m_presences != nullptr ? m_presences->lease_of(owner.text()) : std::nullopt;
  }
  [[nodiscard]] Millis time_behind() const override { return m_backend->time_behind(); }
  void drop_connection() override;

 private:
  Result<std::vector<std::string>> log_of(const LockName& lock, const CallLimits& limit);

  std::unique_ptr<Backend> m_backend;
  std::unique_ptr<Rng> m_rng;
  PresenceStage* m_presences = nullptr;  // one of the stages, in a store with presences
  RecordRounds m_rounds;
};

}  // namespace rlock::record
