// SPDX-License-Identifier: Apache-2.0
// One socket to one server, with a deadline for each operation instead of for each system call.
//
// Not thread-safe; may move between threads. hiredis is used as the codec only (reader and
// formatter): its context API raises SIGPIPE, loses a connect to a signal, leaks its socket into
// the job and bounds reads, not answers. After any Error the connection is useless and must be
// dropped: a late answer would be taken for the answer to the next request.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "base/stop.h"
#include "net/endpoint.h"
#include "net/reply.h"

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rlock {

class Connection {
 public:
  // Connects, in TLS where the URL says so, and where a password or a db asks for it authenticates
  // and selects in one further round trip. `clock` must outlive it. `local:` and sentinel endpoints are
  // refused here (ErrorCode::internal): local_server.h and sentinel.h turn them into others.
  //   unreachable  no answer by the deadline, refused, no such socket or host, connection lost
  //   unfit        loading, too many clients, a certificate that is no good, a replica where a master was meant
  //   refused      wrong password, or one is needed; the same of a certificate of ours
  //   config       no such db; a file for TLS that is no good
  //   interrupted  the stop became readable
  static Result<Connection> open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit);

  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();

  // One request, its one reply, an error reply too. Faults: unreachable, interrupted.
  Result<Reply> call(std::span<const std::string_view> argv, const CallLimits& limit);

  // The two halves of call, for subscriptions. receive: nullopt when the limit's deadline passed
  // with no complete reply; the connection is still good then, and only then.
  Result<Done> send(std::span<const std::string_view> argv, const CallLimits& limit);
  Result<std::optional<Reply>> receive(const CallLimits& limit);

  // receive for who has asked something: no reply by the deadline is ErrorCode::unreachable.
  Result<Reply> answer(const CallLimits& limit);

  // Readable when receive might have something (poll it with other descriptors). Replies that are
  // already buffered do not make it readable: receive until nullopt before polling.
  [[nodiscard]] int fd() const;

  // Whole days until the server's certificate expires; missing without TLS.
  [[nodiscard]] std::optional<std::chrono::days> certificate_left() const;

  [[nodiscard]] const std::string& where() const;  // the server, as Endpoint::shown

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state);
  std::unique_ptr<State> m_state;
};

}  // namespace rlock
