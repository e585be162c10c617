// SPDX-License-Identifier: Apache-2.0
// A LockStore whose decisions are the scripts of lua/: turns requests into scripts of the kind of lock, and their replies into
// answers. A ScriptHost runs the scripts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include "base/stop.h"
#include "engine/script_host.h"
#include "lock/lock_kind.h"
#include "lock/store.h"

namespace rlock {

// How many listeners of a store subscribe to the releases of each lock: the release script does not count them as foreign clients.
// Thread-safe.
class ReleaseSubscriptions {
 public:
  void add(const std::string& lock, int listeners)
  {
    const MutexLock guard(m_mutex);
    m_listeners[lock] += listeners;
  }
  [[nodiscard]] int of(const std::string& lock)
  {
    const MutexLock guard(m_mutex);
    const auto found = m_listeners.find(lock);
    return found == m_listeners.end() ? 0 : found->second;
  }

 private:
  Mutex m_mutex;
  std::map<std::string, int> m_listeners GUARDED_BY(m_mutex);
};

class ScriptStore : public LockStore {
 public:
  // `clock` must outlive it.
  ScriptStore(std::unique_ptr<ScriptHost> host, const Clock& clock) : m_host(std::move(host)), m_clock(clock) {}

  Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& options,
                          const CallLimits& limit) override;
  Result<Done> await_replicas(const LockSpec& spec, const CallLimits& limit) override;
  Result<ReentryResult> reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit) override;
  Result<bool> is_queued(const LockSpec& spec, const Owner& owner, const CallLimits& limit) override;
  Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const RenewOptions& options,
                        const CallLimits& limit) override;
  Result<Renewal> renew_hold(const LockSpec& spec, const Hold& hold, const RenewOptions& options,
                             const CallLimits& limit) override;
  std::vector<Result<Renewal>> renew_each(std::span<const RenewalCall> calls, const CallLimits& limit) override;
  Result<Release> release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& options,
                          const CallLimits& limit) override;
  std::vector<Result<Release>> release_each(std::span<const LockSpec* const> specs, const Owner& owner,
                                            const CallLimits& limit) override;
  Result<LockState> inspect(const LockName& name, const CallLimits& limit) override;
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner& owner,
                                           const CallLimits& limit) override;
  void drop_connection() override { m_host->drop_connection(); }
  [[nodiscard]] Traits traits() const override { return m_host->traits(); }
  [[nodiscard]] std::optional<Millis> lasts_without_keeper() const override { return m_host->lasts_without_keeper(); }
  bool keep_leases() override { return m_host->keep_leases(); }
  Result<std::vector<Finding>> check_server(const CallLimits& limit) override { return m_host->check_server(limit); }

  Result<std::vector<LockName>> find_logs(std::string_view pattern, const PerAnswer& limits) override;
  Result<std::vector<std::vector<EventLogEntry>>> read_logs(std::span<const EventLogQuery> queries,
                                                            const CallLimits& limit) override;
  Result<bool> raise_fence(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                           const CallLimits& limit) override;
  Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) override;
  Result<Done> erase(const LockName& name, const CallLimits& limit) override { return m_host->erase(name, limit); }
  Result<std::vector<LockState>> list(std::string_view pattern, const PerAnswer& limits) override;
  Result<std::vector<LockState>> list_held(std::span<const LockName> names, const PerAnswer& limits) override;
  Result<std::vector<LockState>> states_of(std::span<const LockName> names, const PerAnswer& limits) override;
  Result<bool> forget_success(const LockName& name, const CallLimits& limit) override;
  Result<DataAge> marker(const MarkerNews& news, const CallLimits& limit) override;
  Result<std::vector<LockName>> find_known(std::string_view pattern, const PerAnswer& limits) override;
  Result<std::vector<LockHistory>> past_runs(std::span<const LockName> names, LogPart part,
                                             const PerAnswer& limits) override;
  Result<Done> keep_runs(const LockName& name, Millis history, const PerAnswer& limits) override;
  Result<Forgotten> forget_runs(const LockName& name, const CallLimits& limit) override;
  Result<Done> note_skipped(const LockSpec& spec, const Owner& owner, const SkippedRun& run,
                            const CallLimits& limit) override;

 private:
  // The chunks of the list of kept runs from the index `from` on, the oldest first (lock/kept_runs.h).
  Result<std::vector<std::string>> kept_chunks(const LockName& name, std::int64_t from, const CallLimits& limit);
  Result<Done> add_kept_runs(std::span<const LockName> names, const std::vector<bool>& may_be_kept,
                             std::vector<LockHistory>& histories, const PerAnswer& limits);
  Result<Done> compact_kept_runs(const LockName& name, Millis history, const CallLimits& limit);
  Result<Renewal> renew_as(const RenewalCall& call, std::string_view hold, const CallLimits& limit);
  [[nodiscard]] Result<Renewal> renewal_in(const VerbRequest& request, const Result<Reply>& reply,
                                           const RenewalCall& call, Instant sent_at) const;
  [[nodiscard]] LeaseTerm lease_of(const Owner& owner, Instant sent_at, Millis ttl) const;
  [[nodiscard]] std::optional<Millis> watch_in(const Owner& owner, const answers::Busy& busy) const;
  [[nodiscard]] std::string rights_check() const;  // calls::Acquire::rights
  // The answer of the inspect script, and the kind in the request.
  struct Inspected {
    LockKind kind;
    answers::Known known;
  };
  using LogFrom = calls::Tail<std::string>;
  Result<Inspected> ask(const LockName& name, const LogFrom& log_from, const CallLimits& limit);
  [[nodiscard]] LockState state_in(const LockName& name, const Inspected& answer) const;
  std::vector<Result<Inspected>> ask_batch(std::span<const LockName> names, const LogFrom& log_from,
                                           const PerAnswer& limits);
  // The same for several locks at once. Hands each answer to `take`, in the order of the names, and keeps none of them. Ends
  // with the first error that `take` returns.
  using TakeAnswer = std::function<Result<Done>(const LockName& name, const Result<Inspected>& answer)>;
  Result<Done> ask_each(std::span<const LockName> names, const LogFrom& log_from, const PerAnswer& limits,
                        const TakeAnswer& take);

  std::unique_ptr<ScriptHost> m_host;
  const Clock& m_clock;
  std::shared_ptr<ReleaseSubscriptions> m_release_subscriptions = std::make_shared<ReleaseSubscriptions>();
};

}  // namespace rlock
