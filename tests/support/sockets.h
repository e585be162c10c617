// SPDX-License-Identifier: Apache-2.0
// The sockets of the servers, relays and proxies of tests. The functions throw std::system_error if the system refuses a socket.
#pragma once

#include "base/fd.h"

#include <cstdint>
#include <filesystem>
#include <vector>

#include <sys/socket.h>

namespace rlock::test {

// `flags`: SOCK_NONBLOCK or 0.
Fd unix_listener(const std::filesystem::path& path, int flags = 0);
Fd tcp_listener(std::uint16_t& port, int flags = 0);  // listens on 127.0.0.1; sets `port` to a free port

// A port of 127.0.0.1 for a server that starts later, or again after a kill. The kernel gives such a port to no client, so that the
// clients of other tests do not take it meanwhile (ip_local_port_range, ip(7)).
std::uint16_t free_port();

// Connects. No descriptor: no process listens.
Fd connect_to(const std::filesystem::path& path, int flags = 0);
Fd connect_to(std::uint16_t port, int flags = 0);  // of 127.0.0.1

// A port of 127.0.0.1 that answers no client, as a host without power: its queue of connections is full, so the kernel drops each
// request for another one.
class SilentPort {
 public:
  SilentPort();
  [[nodiscard]] std::uint16_t number() const { return m_number; }

 private:
  std::uint16_t m_number = 0;
  Fd m_listener;
  std::vector<Fd> m_waiting;
};

}  // namespace rlock::test
