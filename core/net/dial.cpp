// SPDX-License-Identifier: Apache-2.0
#include "net/dial.h"

#include "base/os_error.h"
#include "net/resolve.h"
#include "net/socket_path.h"
#include "net/wait.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace rlock {
namespace {

// How an attempt to connect ended, as an errno: 0: connected, ETIMEDOUT: by the deadline, ECANCELED: by the stop.
struct Attempt {
  Fd socket;
  int error = 0;
};

// A keepalive notices that the server's host is gone while no request is under way.
void tune_tcp(int fd)
{
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  // A host that is gone is noticed after idle + count * interval seconds.
  const int idle = 10;
  const int interval = 5;
  const int count = 3;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

int outcome_of_connect(int fd)
{
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

// Retries connect(2): while the backlog of a unix socket is full, connect(2) fails with EAGAIN, and poll(2) cannot wait for room.
int connect_when_there_is_room(int fd, const Address& address, const Clock& clock, const CallLimits& limit)
{
  constexpr Millis pause{5};
  for (;;) {
    if (::connect(fd, address.get(), address.length) == 0) {
      return 0;
    }
    if (errno != EAGAIN) {
      return errno;
    }
    const Instant now = clock.now();
    if (now >= limit.deadline) {
      return ETIMEDOUT;
    }
    if (clock.sleep_until(std::min(now + pause, limit.deadline), limit.stop) == Wake::stopped) {
      return ECANCELED;
    }
  }
}

Attempt connect_to(const Address& address, const Clock& clock, const CallLimits& limit)
{
  Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) {
    return {Fd(), errno};
  }
  if (address.family() != AF_UNIX) {
    tune_tcp(socket.get());
  }
  int error = connect_when_there_is_room(socket.get(), address, clock, limit);
  if (error == EINPROGRESS || error == EINTR) {  // interrupted or not, connect(2) goes on by itself
    switch (wait_for(socket.get(), POLLOUT, clock, limit)) {
      case Waited::ready: error = outcome_of_connect(socket.get()); break;
      case Waited::late: error = ETIMEDOUT; break;
      case Waited::stopped: error = ECANCELED; break;
    }
  }
  return {std::move(socket), error};
}

Attempt connect_to_any(const std::vector<Address>& addresses, const Clock& clock, const CallLimits& limit)
{
  Attempt attempt;
  auto untried = static_cast<std::int64_t>(addresses.size());
  for (const Address& address : addresses) {
    const Instant now = clock.now();
    const Instant share = now + (limit.deadline - now) / untried--;
    attempt = connect_to(address, clock, CallLimits{share, limit.stop});
    if (attempt.error == 0 || attempt.error == ECANCELED) {
      return attempt;
    }
  }
  return attempt;
}

Error cannot_reach(const Endpoint& endpoint, int error, const std::string& after)
{
  const std::string text = "cannot reach " + endpoint.shown() + ": ";
  if (is_shortage(error)) {
    return {ErrorCode::os, text + os_text(error)};
  }
  switch (error) {
    case ECANCELED: return interrupted();
    case ETIMEDOUT: return {ErrorCode::unreachable, text + "no answer within " + after + raise_timeout};
    case ENOENT:
    case ECONNREFUSED:
      return {ErrorCode::unreachable, text + (error == ENOENT ? "no such socket" : "connection refused") +
                                          " (is redis-server running? -S names another server, -S local: "
                                          "starts a private one)"};
    case EACCES: return {ErrorCode::unreachable, text + "permission denied (its unixsocketperm must let you in)"};
    default: return {ErrorCode::unreachable, text + os_text(error) + " (-S names another server)"};
  }
}

Result<std::vector<Address>> addresses_of(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  if (endpoint.kind == Endpoint::Kind::tcp) {
    return resolve(endpoint.host, endpoint.port, clock, limit);
  }
  if (endpoint.kind != Endpoint::Kind::unix_socket) {
    return Error{ErrorCode::internal, "this endpoint only leads to a server"};
  }
  if (endpoint.kind == Endpoint::Kind::sentinel) {
    return Error{ErrorCode::internal, "sentinels have to be asked before their master is connected to"};
  }
  if (!fits_socket_address(endpoint.path)) {
    return Error{ErrorCode::config, socket_path_too_long()};
  }
  const sockaddr_un unix_address = socket_address(endpoint.path);
  Address address{.length = sizeof unix_address};
  std::memcpy(&address.bytes, &unix_address, sizeof unix_address);
  return std::vector{address};
}

}  // namespace

Result<Fd> dial(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  const Instant start = clock.now();
  const auto addresses = addresses_of(endpoint, clock, limit);
  if (!addresses) {
    const Error& why = addresses.error();
    return why.code == ErrorCode::interrupted ? why
                                              : Error{why.code, "cannot reach " + endpoint.shown() + ": " + why.text};
  }
  Attempt attempt = connect_to_any(*addresses, clock, limit);
  if (attempt.error != 0) {
    return cannot_reach(endpoint, attempt.error, elapsed(clock, start, limit));
  }
  return std::move(attempt.socket);
}

}  // namespace rlock
