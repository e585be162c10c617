// SPDX-License-Identifier: Apache-2.0
// The messages of a keeper.
#pragma once

#include <string>

namespace rlock {

// Logs an error of a keeper, which has no stderr, by syslog(3). Ignores an empty line. May wait for the syslog daemon, so call
// this when the locks are released.
void write_to_syslog(const std::string& line);

}  // namespace rlock
