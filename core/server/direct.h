// SPDX-License-Identifier: Apache-2.0
// A Transport over one connection to one server: connects at the first call, and again after a failure. The subclasses Local and
// Sentinel look for their server before each connection.
#pragma once

#include "net/connection.h"
#include "server/transport.h"

#include <optional>

namespace rlock {

class Direct : public Transport {
 public:
  // `clock` must outlive the transport.
  Direct(Endpoint endpoint, const Clock& clock);

  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv, const CallLimits& limit) final;
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) final;
  // After a failed request the replies to the later requests are unknown: each of them is an Error.
  std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit) final;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;
  void forget() final;

  // Connects, unless there is a connection. If this fails, nothing but the handshake has been sent.
  virtual Result<Done> connect(const CallLimits& limit);

 protected:
  // Whether an answer that took so long still counts. False: the next call connects again.
  virtual bool believes(Instant::duration took, const CallLimits& limit);
  Result<Done> connect_to(Endpoint endpoint, const CallLimits& limit);
  [[nodiscard]] bool is_connected() const { return m_connection.has_value(); }
  [[nodiscard]] const Endpoint& server() const { return m_server; }  // the server of the present or last connection
  [[nodiscard]] const Clock& clock() const { return m_clock; }

 private:
  Result<Reply> checked(Result<Reply> reply) const;
  Result<Reply> exchange(std::span<const std::string_view> argv, const CallLimits& limit);
  Result<Done> check_answer(Instant sent, const CallLimits& limit);

  Endpoint m_server;
  const Clock& m_clock;
  std::optional<Connection> m_connection;
};

}  // namespace rlock
