// SPDX-License-Identifier: Apache-2.0
// What an SQLSTATE means to a lock client (PostgreSQL's manual, appendix A). Private to stores/postgres.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include "base/result.h"

namespace rlock::postgres {

// What the server refused, where the adapter tells cases apart.
enum class Refusal { none, no_such_table, no_such_column, conflict, other };

// The first row counts whose state is the beginning of the server's.
struct StateRow {
  std::string_view state;
  ErrorCode code;
  Refusal refusal;
  std::string_view advice;
};
inline constexpr std::string_view name_the_primary =
    " (name the primary server; if it is, turn default_transaction_read_only off for this user, database or server)";
inline constexpr auto states = std::to_array<StateRow>({
    {"42P01", ErrorCode::config, Refusal::no_such_table, ""},
    {"3F000", ErrorCode::config, Refusal::other, " (create the schema, or set search_path)"},
    {"42501", ErrorCode::refused, Refusal::other, " (rlock acl prints the GRANT that rlock needs)"},
    {"42703", ErrorCode::config, Refusal::no_such_column,
     ": a table of this name is not rlock's (use another schema or database)"},
    {"40001", ErrorCode::server_not_ready, Refusal::conflict, ""},
    {"40P01", ErrorCode::server_not_ready, Refusal::conflict, ""},
    {"55P03", ErrorCode::server_not_ready, Refusal::conflict, ""},
    {"25P02", ErrorCode::unreachable, Refusal::other, ""},
    {"54000", ErrorCode::config, Refusal::other, " (the name of the lock is too long)"},
    {"22001", ErrorCode::config, Refusal::other, " (the name of the lock is longer than its column)"},
    {"22021", ErrorCode::config, Refusal::other, " (the name of the lock is no text of the database's encoding)"},
    {"22P05", ErrorCode::config, Refusal::other, " (the name of the lock is no text of the database's encoding)"},
    {"25006", ErrorCode::server_not_ready, Refusal::other, name_the_primary},
    {"28", ErrorCode::refused, Refusal::other, ""},
    {"53", ErrorCode::server_not_ready, Refusal::other, ""},
    {"57", ErrorCode::server_not_ready, Refusal::other, ""},
    {"08", ErrorCode::unreachable, Refusal::other, ""},
    {"42", ErrorCode::config, Refusal::other, ""},
});

// One client that listens in a long transaction is enough to keep the queue full.
inline constexpr StateRow full_queue{
    "54000", ErrorCode::server_not_ready, Refusal::other,
    " (pg_notification_queue_usage() is 1: end the oldest transaction of pg_stat_activity that listens)"};

// `file`: of the server's source, from which the error comes; unlike its message, it is not translated.
inline const StateRow& meaning_of(std::string_view state, std::string_view file)
{
  static constexpr StateRow unknown{"", ErrorCode::unreachable, Refusal::other, ""};
  if (state == full_queue.state && file == "async.c") {
    return full_queue;
  }
  const auto* const row =
      std::find_if(states.begin(), states.end(), [&](const StateRow& each) { return state.starts_with(each.state); });
  return row == states.end() ? unknown : *row;
}

// The server ends the connection, or a transaction that has failed was left open in it.
inline bool ends_connection(std::string_view state)
{
  return state.starts_with("57P") || state.starts_with("08") || state == "25P02";
}

}  // namespace rlock::postgres
