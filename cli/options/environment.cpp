// SPDX-License-Identifier: Apache-2.0
#include "cli/options/environment.h"

#include <algorithm>

#include <unistd.h>

namespace rlock::cli {

Environment Environment::current()
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

const Setting* Environment::setting(std::string_view option) const
{
  const auto found = std::find_if(m_settings.begin(), m_settings.end(),
                                  [&](const Setting& setting) { return setting.option == option; });
  return found == m_settings.end() ? nullptr : &*found;
}

}  // namespace rlock::cli
