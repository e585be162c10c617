// SPDX-License-Identifier: Apache-2.0
// The names of this process in holder records and messages.
#pragma once

#include <string>

namespace rlock {

std::string host_name();
std::string user_name();  // the name of the effective user id; the number, if the user database has no name

// "alice@web1 (pid 71)"
std::string own_identity();

}  // namespace rlock
