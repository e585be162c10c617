// SPDX-License-Identifier: Apache-2.0
// The server's side of RESP2, for servers that tests have in place of redis-server.
#pragma once

#include "base/reply.h"

#include <string>
#include <vector>

namespace rlock::test {

// The words of the first whole request, which is taken off the bytes. Empty: it is incomplete.
std::vector<std::string> take_request(std::string& bytes);

std::string encoded(const Reply& reply);

}  // namespace rlock::test
