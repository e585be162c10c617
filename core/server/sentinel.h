// SPDX-License-Identifier: Apache-2.0
// A Transport to whoever is the master: asks the sentinels before each connection, connects only to who says himself that he is
// one, and asks again from time to time whether he still is.
#pragma once

#include "server/direct.h"
#include "server/transport.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace rlock {

class Discovery;

class Sentinel final : public Transport {
 public:
  // `endpoint` is of Kind::sentinel; `clock` must outlive it.
  Sentinel(const Endpoint& endpoint, const Clock& clock);
  ~Sentinel() override;

  // While a fail-over is under way, nothing has been sent and there is time left, the sentinels are asked again.
  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const CallLimits& limit) override;
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override;
  std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit) override;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;
  void forget() override;

 private:
  using Attempt = std::function<Result<Done>(const Endpoint& master, Connection sentinel, const CallLimits& limit)>;

  Result<Done> connect(const CallLimits& limit);
  Result<Done> reach_the_master(const CallLimits& limit, const Attempt& attempt);
  void check_the_master(const CallLimits& limit);
  void forget_unless(const Endpoint& master);

  const std::string m_name;
  const Clock& m_clock;
  std::unique_ptr<Discovery> m_discovery;
  std::optional<Direct> m_master;
  Endpoint m_address;  // of m_master
  Instant m_checked_at;
  std::shared_ptr<std::atomic<bool>> m_moved = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace rlock
