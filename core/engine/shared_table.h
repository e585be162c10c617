// SPDX-License-Identifier: Apache-2.0
// What the adapters for a table that rlock shares with another program (ShedLock) have in common: its name in the URL, the SQL on it,
// and the version of a row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include "base/result.h"
#include "engine/record_backend.h"

namespace rlock::record {

// The parameter of a URL that names the table.
inline constexpr std::string_view table_parameter = "table";

// "shedlock", "jobs.shedlock", and short enough for the names of rlock's tables beside it.
bool is_table_name(std::string_view name);
inline constexpr std::string_view no_table_name =
    "table is the name of ShedLock's table, such as shedlock or jobs.shedlock";

// "jobs.shedlock" → "\"jobs\".\"shedlock_rlock_event\"". `quote`: that of the database.
std::string quoted_name(std::string_view name, char quote);
std::string quoted_table(std::string_view table, std::string_view suffix, char quote);

// The SQL with other texts in place of words such as "{lock}".
using SqlWord = std::pair<std::string_view, std::string_view>;
std::string with_words(std::string_view sql, std::span<const SqlWord> words);

// The tables, or the columns of rlock in that of another program, are missing. `where`: the URL; `table`: empty: rlock's own tables.
Error not_prepared(std::string_view where, std::string_view table);

// The number in the version of a row that has no record.
inline constexpr std::string_view no_record = "0";

// The other program changes the face alone. So the version of a row is that of the record and the face.
struct SharedVersion {
  std::string number;
  std::int64_t until_us = 0;
  std::string holder;

  static SharedVersion of(const Version& version);
  [[nodiscard]] Version text() const { return number + " " + std::to_string(until_us) + " " + holder; }
};

}  // namespace rlock::record
