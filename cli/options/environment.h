// SPDX-License-Identifier: Apache-2.0
// One line of the config file, and where a setting comes from.
// The environment as a value, so that tests can pass one.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rlock::cli {

struct Setting {
  std::string option;               // "--wait"; "@prod": a server of the table [servers]
  std::vector<std::string> values;  // empty: a flag
  std::string where;                // "/etc/rlock.toml:3"
};

struct Origin {
  enum class Kind { option, variable, file, fallback };
  Kind kind;
  std::string name;  // "--server", "RLOCK_SERVER", "/etc/rlock.toml:3", "default"
};

class Environment {
 public:
  explicit Environment(std::vector<std::string> all) : m_all(std::move(all)) {}
  static Environment current();  // that of this process

  // Empty when the variable is unset. Callers treat an empty variable as unset.
  [[nodiscard]] std::string_view value(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& all() const { return m_all; }  // NAME=value

  // The settings of the config file. For an option that also has a variable, the variable comes first.
  void configure(std::vector<Setting> settings) { m_settings = std::move(settings); }
  [[nodiscard]] const Setting* setting(std::string_view option) const;  // by "--server" or "@prod"; nullptr: none
  [[nodiscard]] const std::vector<Setting>& settings() const { return m_settings; }

 private:
  std::vector<std::string> m_all;
  std::vector<Setting> m_settings;
};

}  // namespace rlock::cli
