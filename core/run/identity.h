// SPDX-License-Identifier: Apache-2.0
// Who we are, as other people will read it.
#pragma once

#include <string>

namespace rlock {

std::string host_name();
std::string user_name();  // of the effective user id; its number where it has no name

// "alice@web1 (pid 71)"
std::string own_identity();

}  // namespace rlock
