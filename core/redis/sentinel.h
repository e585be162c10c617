// SPDX-License-Identifier: Apache-2.0
// A Transport to the master of a group of servers that sentinels watch. The transport asks the sentinels before each connection,
// connects only to a server that says that it is a master, and asks a sentinel from time to time, and after a late answer,
// whether that server is still the master.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include "redis/codec.h"
#include "redis/transport.h"
#include "redis/url.h"

namespace rlock {

class Discovery;

class Sentinel final : public Direct {
 public:
  // `endpoint` is of Kind::sentinel; `clock` must outlive the transport.
  Sentinel(const Endpoint& endpoint, const Clock& clock);
  ~Sentinel() override;

  // During a fail-over, asks the sentinels again while there is time left.
  Result<Done> connect(const CallLimits& limit) override;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;
  [[nodiscard]] bool may_fail_over() const override { return true; }

 protected:
  bool believes(Instant::duration took, const CallLimits& limit) override;

 private:
  using Attempt = std::function<Result<Done>(const Endpoint& master, Connection sentinel, const CallLimits& limit)>;

  Result<Done> reach_the_master(const CallLimits& limit, const Attempt& attempt);
  void check_the_master(const CallLimits& limit);
  void forget_unless(const Endpoint& master);

  const std::string m_name;
  std::unique_ptr<Discovery> m_discovery;
  Instant m_checked_at;
  std::shared_ptr<std::atomic<bool>> m_moved = std::make_shared<std::atomic<bool>>(false);  // set by the MasterWatch
};

// The single servers behind an endpoint that leads to several.

// The address in the answer {host, port} of a sentinel; nullopt: the sentinel knows no master of that name, or
// names no valid host.
std::optional<HostPort> master_address_in(const Reply& reply);

// One sentinel of `group`, which is of Kind::sentinel, with the user, password and TLS of the sentinels.
Endpoint sentinel_at(const Endpoint& group, const HostPort& at);

// The server at `at`: a node of a cluster, or the master that sentinels name, which must say that it is a master.
Endpoint server_at(const Endpoint& group, const HostPort& at);

}  // namespace rlock
