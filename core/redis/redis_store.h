// SPDX-License-Identifier: Apache-2.0
// A Redis server, or a cluster, runs the scripts itself: EVALSHA over a Transport.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>
#include "engine/script_host.h"
#include "engine/script_store.h"
#include "redis/transport.h"

namespace rlock {

// Runs a script by EVALSHA, or by EVAL if the server does not know the script. `keys`: KEYS. `args`: ARGV.
Result<Reply> run_script(Transport& transport, const Script& script, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, const CallLimits& limit);

// The same for a script without KEYS, on the server of `route_key`.
Result<Reply> run_script_at(Transport& transport, std::string_view route_key, const Script& script,
                            std::span<const std::string_view> args, const CallLimits& limit);

std::vector<Result<Reply>> run_scripts(Transport& transport, std::span<const ScriptCall> calls,
                                       const CallLimits& limit);

// Whether an acquire first asks the server whether the user may also renew, release and hand over. The questions take a third of
// the server time of an uncontended acquire and release, and a connection that names no user is rarely restricted.
enum class RightsCheck { before_grant, none };

class RedisHost final : public ScriptHost {
 public:
  RedisHost(std::unique_ptr<Transport> transport, RightsCheck check)
      : m_transport(std::move(transport)), m_rights_check(check)
  {
  }

  Result<Reply> run(const ScriptRequest& request, const CallLimits& limit) override;
  std::vector<Result<Reply>> run_each(std::span<const ScriptRequest> requests, const CallLimits& limit) override;
  [[nodiscard]] bool runs_together() const override { return true; }
  Result<Reply> command(const LockName& lock, std::span<const std::string_view> argv, const CallLimits& limit) override;
  std::vector<Result<std::vector<std::string>>> logs(std::span<const LockName> locks, const CallLimits& limit) override;
  Result<std::unique_ptr<MessageSource>> subscribe(std::span<const LockChannel> channels,
                                                   const CallLimits& limit) override;
  Result<std::vector<std::string>> find_locks(std::string_view glob, const PerAnswer& limits) override;
  Result<std::vector<std::string>> find_logs(std::string_view glob, const PerAnswer& limits) override;
  Result<std::vector<std::string>> find_remembered(std::string_view glob, const PerAnswer& limits) override;
  Result<Done> await_replicas(const LockSpec& spec, const CallLimits& limit) override;
  void drop_connection() override { m_transport->drop_connection(); }
  [[nodiscard]] Traits traits() const override
  {
    return {.may_fail_over = m_transport->may_fail_over(),
            .is_cluster = m_transport->is_cluster(),
            .checks_rights = m_rights_check == RightsCheck::before_grant,
            .can_join_quorum = true};
  }

 private:
  std::unique_ptr<Transport> m_transport;
  RightsCheck m_rights_check;
};

// A LockStore on one Redis server, or on one cluster. `clock` must outlive it.
class RedisStore final : public ScriptStore {
 public:
  RedisStore(std::unique_ptr<Transport> transport, const Clock& clock, RightsCheck check = RightsCheck::before_grant)
      : ScriptStore(std::make_unique<RedisHost>(std::move(transport), check), clock)
  {
  }
};

}  // namespace rlock
