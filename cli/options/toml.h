// SPDX-License-Identifier: Apache-2.0
// Reads the settings of a TOML file, with toml++: `key = value`, above all tables or in a [table]. A value is a string, a number, true
// or false, or an array of these.
#pragma once

#include "base/result.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

struct TomlValue {
  enum class Kind { boolean, text, array };  // a number is text
  Kind kind;
  std::vector<std::string> texts;  // one element, unless it is an array
};

struct TomlEntry {
  std::string table;  // empty: above all tables
  std::string key;
  TomlValue value;
  std::size_t line;            // from 1
  std::size_t table_line = 0;  // of [table]
};

// The name of a setting or table as errors quote it; "..." for a name that no option or verb can have, because it may be a URL with
// a password.
std::string shown_name(std::string_view name);

// In the order of the file. ErrorCode::config, "LINE: what is wrong". The text quotes no value, which may be a secret.
Result<std::vector<TomlEntry>> parse_toml(std::string_view text);

}  // namespace rlock::cli
