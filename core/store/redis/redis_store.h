// SPDX-License-Identifier: Apache-2.0
// Locks on one Redis: the scripts of each kind over a Transport.
#pragma once

#include "lock/data_age.h"
#include "lock/store.h"
#include "server/transport.h"

#include <atomic>
#include <initializer_list>
#include <memory>

namespace rlock {

class RedisStore final : public LockStore {
 public:
  explicit RedisStore(std::unique_ptr<Transport> transport) : m_transport(std::move(transport)) {}

  Result<Attempt> acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& manner,
                          const CallLimits& limit) override;
  Result<Done> await_replicas(const LockSpec& spec, const CallLimits& limit) override;
  Result<ReentryResult> reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit) override;
  Result<bool> is_queued(const LockSpec& spec, const Owner& owner, const CallLimits& limit) override;
  Result<Renewal> renew(const LockSpec& spec, const Owner& owner, const CallLimits& limit) override;
  Result<Renewal> renew_hold(const LockSpec& spec, const Hold& hold, const CallLimits& limit) override;
  Result<bool> raise_fence(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                           const CallLimits& limit) override;
  Result<Release> release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& release_options,
                          const CallLimits& limit) override;
  std::vector<Result<Release>> release_each(std::span<const LockSpec* const> specs, const Owner& owner,
                                            const CallLimits& limit) override;
  Result<LockState> inspect(const LockName& name, const CallLimits& limit) override;
  Result<std::vector<LockState>> list(std::string_view pattern, const PerAnswer& limits) override;
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner& owner,
                                           const CallLimits& limit) override;
  Result<bool> forget_success(const LockName& name, const CallLimits& limit) override;
  Result<ForceAnswer> force(ForceStep step, const ForceCall& call, const CallLimits& limit) override;
  // For a server of a quorum.
  Result<DataAge> marker(const MarkerNews& news, const CallLimits& limit);
  void forget() override { m_transport->forget(); }

 private:
  Result<Renewal> renew_as(const LockSpec& spec, const Owner& owner, std::string_view hold, const CallLimits& limit);
  [[nodiscard]] std::string_view among() const;  // what the scripts call AMONG
  Result<Reply> call(const Script& script, const LockName& name, const Mode& mode, const Owner& owner,
                     std::initializer_list<std::string_view> args, const CallLimits& limit);

  std::unique_ptr<Transport> m_transport;
  std::shared_ptr<std::atomic<int>> m_ears =
      std::make_shared<std::atomic<int>>(0);  // listeners of ours that hear releases
};

}  // namespace rlock
