// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

struct Setting {
  std::string option;               // "--wait", as the file has it
  std::vector<std::string> values;  // none: a flag
  std::string where;                // "/etc/rlock.toml:3"
};

}  // namespace rlock::cli
