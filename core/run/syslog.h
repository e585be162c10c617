// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace rlock {

// For a keeper, which has no stderr: one line for operators, as an error of rlock (syslog(3)). Nothing for an empty line.
// May wait for the syslog daemon: to be called when the locks are released.
void write_to_syslog(const std::string& line);

}  // namespace rlock
