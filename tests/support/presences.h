// SPDX-License-Identifier: Apache-2.0
// Test cases on a store that ends what a client holds with the presence of that client (engine/presence.h).
#pragma once

#include <string>

namespace rlock::test {

// Whether the topology has such a store. There a ttl is a bound, and a claim or a place in line ends with the presence of the waiter.
bool ends_holds_with_clients();

// The lease of a waiter that the test makes silent. Where it ends with a presence, the others wait for as long, so it is `briefly`.
inline std::string ttl_of_silent(const std::string& briefly = "2s")
{
  return ends_holds_with_clients() ? briefly : "30s";
}

}  // namespace rlock::test
