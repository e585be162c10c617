// SPDX-License-Identifier: Apache-2.0
// The tables in which the locks are, and the rights on them that a user needs. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlock::mysql {

inline constexpr std::size_t longest_name = 255;        // of a lock, in characters
inline constexpr std::size_t longest_shared_name = 64;  // in the table of ShedLock that rlock makes

// The names of the tables, as SQL has them.
struct Tables {
  std::string lock = "rlock_lock";
  std::string event = "rlock_event";
  std::string listener = "rlock_listener";
  std::string message = "rlock_message";
  bool are_shared = false;  // `lock` is ShedLock's
};

// `table`: of ShedLock; empty: rlock's own tables.
Tables tables_for(std::string_view table);

// The SQL with the names in place of {lock}, {event}, {listener}, {message}; with {version} and {record}, columns of {lock}; and with
// {schema}, {lock_name}, {event_name}, {listener_name} and {message_name} as texts.
std::string on_tables(std::string_view sql, const Tables& tables);

// Makes the tables, and the columns of rlock in ShedLock's. MySQL has no word for columns that may be there: what makes them stands
// last, and may fail (1060) when they are there.
std::string create_sql(const Tables& tables);

// The rights on one table that a user needs.
std::string grant_sql(const std::string& table, std::string_view user);

// Those of the tables that an error of the server names: "`app`.`rlock_lock`", or, in MySQL, "'rlock_lock'".
std::string grants_for(std::string_view error, const Tables& tables, std::string_view user);

// What an administrator runs in the database, so that `user` needs no right to create tables. `user`: "deploy", which means from any
// host, or "deploy@10.0.0.%".
std::string rights_sql(const Tables& tables, std::string_view user);

}  // namespace rlock::mysql
