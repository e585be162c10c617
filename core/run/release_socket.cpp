// SPDX-License-Identifier: Apache-2.0
#include "run/release_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

namespace rlock {
namespace {

struct Address {
  sockaddr_un bytes{};
  socklen_t length = 0;
};

// A name that begins with a zero byte is abstract: no file. nullopt: the token is too long to be one of rlock.
std::optional<Address> address_of(const Hold& hold)
{
  const std::string name = '\0' + ("rlock-keeper/" + hold.id);
  Address address;
  if (name.size() > sizeof address.bytes.sun_path) {
    return std::nullopt;
  }
  address.bytes.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.bytes.sun_path);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return address;
}

Fd unix_socket() { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

const sockaddr* generic(const Address& address) { return reinterpret_cast<const sockaddr*>(&address.bytes); }

bool is_same_user_or_root(const Fd& connection)
{
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

}  // namespace

Result<ReleaseSocket> ReleaseSocket::open(const Hold& hold)
{
  constexpr int backlog = 8;
  const auto address = address_of(hold);
  Fd socket = unix_socket();
  if (!address || !socket || ::bind(socket.get(), generic(*address), address->length) != 0 ||
      ::listen(socket.get(), backlog) != 0) {
    return Error{ErrorCode::os, "cannot open the keeper's socket: " + std::generic_category().message(errno)};
  }
  return ReleaseSocket(std::move(socket));
}

std::optional<Fd> ReleaseSocket::accept() const
{
  for (;;) {
    Fd connection(::accept4(m_socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      return std::nullopt;
    }
    if (is_same_user_or_root(connection)) {
      return connection;
    }
  }
}

void announce_exit_code(const Fd& announced, int code)
{
  const auto byte = static_cast<unsigned char>(code);
  [[maybe_unused]] const auto sent = ::send(announced.get(), &byte, 1, MSG_NOSIGNAL);
}

Fd announce_release(const Hold& hold)
{
  const auto address = address_of(hold);
  Fd socket = unix_socket();
  const bool has_keeper = address && socket && ::connect(socket.get(), generic(*address), address->length) == 0;
  return has_keeper ? std::move(socket) : Fd();
}

}  // namespace rlock
