// SPDX-License-Identifier: Apache-2.0
// The name of this process in holder records and messages.
#pragma once

#include <string>

namespace rlock {

std::string host_name();
std::string user_name();  // of the effective user id; its number where the user database has no name

// "alice@web1 (pid 71)"
std::string own_identity();

}  // namespace rlock
