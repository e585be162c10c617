// SPDX-License-Identifier: Apache-2.0
#include "cli/environment.h"

#include <unistd.h>

namespace rlock::cli {

Environment Environment::ours()
{
  std::vector<std::string> all;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    all.emplace_back(*variable);
  }
  return Environment(std::move(all));
}

std::string_view Environment::value(std::string_view name) const
{
  for (const std::string_view variable : m_all) {
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) {
      return variable.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace rlock::cli
