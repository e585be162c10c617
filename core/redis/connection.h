// SPDX-License-Identifier: Apache-2.0
// One connection to one server. A deadline bounds each operation, not each system call. hiredis is only the codec, because its
// connections raise SIGPIPE, fail when a signal interrupts connect(2), leak their socket into the job, and limit each read
// instead of the answer.
//
// Threads: not thread-safe; may move between threads.
// Errors: after any Error the caller must drop the connection, because a late answer would be taken for the answer to the next
// request.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"
#include "net/endpoint.h"
#include "redis/codec.h"

namespace rlock {

class Connection {
 public:
  // Connects, with TLS if the URL says so. A password or a db takes one more round trip. `clock` must outlive the connection. An
  // endpoint that only leads to a server (`local:`, sentinels, a cluster) is ErrorCode::internal, because open_transport turns such
  // an endpoint into a TCP or unix endpoint.
  //   unreachable  no answer by the deadline, refused, no such socket or host, connection lost
  //   server_not_ready  loading, too many clients, an invalid certificate, a replica instead of a master
  //   refused      a wrong or missing password or client certificate
  //   config       no such db; an invalid file for TLS
  //   interrupted  the stop was requested
  static Result<Connection> open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit);

  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // Sends one request and returns its reply, which may be an error reply. Errors: unreachable, interrupted.
  Result<Reply> call(std::span<const std::string_view> argv, const CallLimits& limit);

  // The two halves of call, for subscriptions. receive returns nullopt if the deadline passes without a complete reply; the
  // connection is still usable then.
  Result<Done> send(std::span<const std::string_view> argv, const CallLimits& limit);
  Result<std::optional<Reply>> receive(const CallLimits& limit);

  // Like receive. ErrorCode::unreachable: there was no reply by the deadline.
  Result<Reply> answer(const CallLimits& limit);

  // Readable when receive may return a reply. Buffered replies do not make the descriptor readable, so call receive until it
  // returns nullopt before polling.
  [[nodiscard]] int fd() const;

  // Whole days until the server's certificate expires; nullopt without TLS.
  [[nodiscard]] std::optional<std::chrono::days> certificate_left() const;

  [[nodiscard]] const std::string& where() const;  // the server, as Endpoint::shown

 private:
  struct State;
  std::optional<Result<Reply>> checked_for_role(Reply reply);
  explicit Connection(std::unique_ptr<State> state);
  std::unique_ptr<State> m_state;
};

}  // namespace rlock
