// SPDX-License-Identifier: Apache-2.0
// A path as the address of a unix socket. Private to wire.
#pragma once

#include <cstring>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

namespace rlock {

// With its final zero byte, which some servers' getsockname needs.
inline bool fits_socket_address(std::string_view path) { return path.size() < sizeof(sockaddr_un::sun_path); }

// `path` must fit.
inline sockaddr_un socket_address(std::string_view path)
{
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace rlock
