// SPDX-License-Identifier: Apache-2.0
// A Transport to the private server of `local:`. Before each connection it looks for that server, and starts it where it does
// not run: after a crash the server comes back with the locks of its append-only file.
#pragma once

#include "server/direct.h"
#include "server/local_server.h"
#include "server/transport.h"

#include <optional>

namespace rlock {

class Local final : public Transport {
 public:
  // `clock` must outlive it.
  Local(LocalPlace place, const Clock& clock);

  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const CallLimits& limit) override;
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) override;
  std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit) override;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;
  void forget() override;

  // Unless it is connected: what else the first request would do. The faults are those of local_server.
  Result<Done> connect(const CallLimits& limit);

 private:
  const LocalPlace m_place;
  const Clock& m_clock;
  std::optional<Direct> m_server;
};

}  // namespace rlock
