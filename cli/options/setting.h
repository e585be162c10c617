// SPDX-License-Identifier: Apache-2.0
// One line of the config file.
#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

struct Setting {
  std::string option;               // "--wait"
  std::vector<std::string> values;  // empty: a flag
  std::string where;                // "/etc/rlock.toml:3"
};

}  // namespace rlock::cli
