// SPDX-License-Identifier: Apache-2.0
// A port of 127.0.0.1 at which connecting gets no answer at all, as at a host that is off or behind a firewall that drops packets.
#pragma once

#include "base/fd.h"

#include <cstdint>
#include <vector>

namespace rlock::test {

class DeafPort {
 public:
  DeafPort();
  [[nodiscard]] std::uint16_t port() const { return m_port; }

 private:
  std::uint16_t m_port = 0;
  Fd m_listener;
  std::vector<Fd> m_waiting;  // connections that nobody accepts: the kernel answers no further one
};

}  // namespace rlock::test
