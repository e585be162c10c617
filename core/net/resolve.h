// SPDX-License-Identifier: Apache-2.0
// A host's addresses within a Limit, of which getaddrinfo(3) knows nothing. Private to wire.
#pragma once

#include "base/result.h"
#include "base/stop.h"

#include <cstdint>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace rlock {

struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  [[nodiscard]] int family() const { return bytes.ss_family; }
};

// At least one address, in the order to try them. Errors say what is wrong with the name, not whose
// it is: "no such host".
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port, const Clock& clock,
                                     const CallLimits& limit);

}  // namespace rlock
