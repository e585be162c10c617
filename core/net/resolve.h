// SPDX-License-Identifier: Apache-2.0
// Looks up the addresses of a host by a deadline, which getaddrinfo(3) does not have. Private to net.
#pragma once

#include "base/defaults.h"
#include "base/result.h"

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

// Returns at least one address, in the order in which to try them. Where the system has no thread left for the lookup, returns
// the addresses of an earlier lookup. The text of an Error lacks the host: "no such host".
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port, const Clock& clock,
                                     const CallLimits& limit);

}  // namespace rlock
