// SPDX-License-Identifier: Apache-2.0
// A Transport to one server at a fixed place: connects at the first call and again after a failure.
#pragma once

#include "net/connection.h"
#include "server/transport.h"

#include <optional>
#include <string>

namespace rlock {

class Direct final : public Transport {
 public:
  // `clock` must outlive it.
  Direct(Endpoint endpoint, const Clock& clock);

  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const CallLimits& limit) override;
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override;
  std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit) override;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;
  void forget() override;

  // Unless it is: what else the first request would do. Nothing but the handshake has been sent when this fails.
  Result<Done> connect(const CallLimits& limit);

 private:
  Result<Reply> meant(Result<Reply> reply);

  Endpoint m_endpoint;
  const Clock& m_clock;
  std::optional<Connection> m_connection;
};

}  // namespace rlock
