// SPDX-License-Identifier: Apache-2.0
// The sockets of the servers, relays and proxies of tests. Where the system refuses one, std::system_error is thrown.
#pragma once

#include "base/fd.h"

#include <cstdint>
#include <filesystem>

#include <sys/socket.h>

namespace rlock::test {

// `flags`: SOCK_NONBLOCK or 0.
Fd unix_listener(const std::filesystem::path& path, int flags = 0);
Fd tcp_listener(std::uint16_t& port, int flags = 0);  // of 127.0.0.1; `port` becomes a free one

// Has no descriptor when there is no listener.
Fd connect_to(const std::filesystem::path& path, int flags = 0);

}  // namespace rlock::test
