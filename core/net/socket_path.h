// SPDX-License-Identifier: Apache-2.0
// A path as the address of a unix socket. Private to net and server.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

namespace rlock {

// In bytes. One byte of the address stays free, because the getsockname of some servers needs a final zero byte.
constexpr std::size_t longest_socket_path = sizeof(sockaddr_un::sun_path) - 1;

inline bool fits_socket_address(std::string_view path) { return path.size() <= longest_socket_path; }

inline std::string socket_path_too_long()
{
  return "the path of a unix socket can have " + std::to_string(longest_socket_path) + " bytes at most";
}

// `path` must fit.
inline sockaddr_un socket_address(std::string_view path)
{
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

}  // namespace rlock
