// SPDX-License-Identifier: Apache-2.0
// What an error number means to a lock client (MySQL's "Server Error Message Reference"; from 2000 on they are libmariadb's).
// Private to stores/mysql.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include "base/result.h"
#include "net/endpoint.h"
#include "stores/mysql/mysql_connection.h"

namespace rlock::mysql {

struct NumberRow {
  unsigned number;
  ErrorCode code;
  Refusal refusal;
  std::string_view advice;
};
inline constexpr std::string_view needs_rights = " (rlock acl prints the GRANT that rlock needs)";
inline constexpr std::string_view unlock_account = " (alter user ... account unlock, or name another user)";
inline constexpr std::string_view new_password =
    " (give the user a new password there: alter user ... identified by, and then to rlock)";
inline constexpr std::string_view unknown_plugin = " (name a user with another authentication plugin)";
inline constexpr std::string_view unwritable_name =
    " (the table cannot write the name of the lock; convert it to utf8mb4)";
inline constexpr std::string_view too_large_advice =
    " (raise max_allowed_packet; there are too many waiters, or a value is too long)";
inline constexpr auto numbers = std::to_array<NumberRow>({
    {1153, ErrorCode::config, Refusal::too_large, too_large_advice},
    {2020, ErrorCode::config, Refusal::too_large, too_large_advice},
    {1146, ErrorCode::config, Refusal::no_such_table, ""},
    {1205, ErrorCode::server_not_ready, Refusal::conflict, ""},
    {1213, ErrorCode::server_not_ready, Refusal::conflict, ""},
    {1317, ErrorCode::server_not_ready, Refusal::killed, ""},
    {1094, ErrorCode::server_not_ready, Refusal::not_killed, ""},
    {1095, ErrorCode::refused, Refusal::not_killed, ""},
    {1044, ErrorCode::refused, Refusal::other, needs_rights},
    {1045, ErrorCode::refused, Refusal::other, check_login},
    {1142, ErrorCode::refused, Refusal::other, needs_rights},
    {1143, ErrorCode::refused, Refusal::other, needs_rights},
    {1227, ErrorCode::refused, Refusal::other, needs_rights},
    {1370, ErrorCode::refused, Refusal::other, needs_rights},
    {1698, ErrorCode::refused, Refusal::other, check_login},
    {1251, ErrorCode::refused, Refusal::other, unknown_plugin},
    {1275, ErrorCode::refused, Refusal::other, unknown_plugin},
    {1524, ErrorCode::refused, Refusal::other, unknown_plugin},
    {2059, ErrorCode::refused, Refusal::other, unknown_plugin},
    {3118, ErrorCode::refused, Refusal::other, unlock_account},
    {3955, ErrorCode::refused, Refusal::other, unlock_account},
    {4150, ErrorCode::refused, Refusal::other, unlock_account},
    {4151, ErrorCode::refused, Refusal::other, unlock_account},
    {1820, ErrorCode::refused, Refusal::other, new_password},
    {1862, ErrorCode::refused, Refusal::other, new_password},
    {3159, ErrorCode::config, Refusal::other, " (add ssl-mode=required to the URL)"},
    {1026, ErrorCode::server_not_ready, Refusal::other, ""},
    {1030, ErrorCode::server_not_ready, Refusal::other, ""},
    {1037, ErrorCode::server_not_ready, Refusal::other, ""},
    {1041, ErrorCode::server_not_ready, Refusal::other, ""},
    {1206, ErrorCode::server_not_ready, Refusal::other, ""},
    {1021, ErrorCode::server_not_ready, Refusal::other, ""},
    {1114, ErrorCode::server_not_ready, Refusal::other, ""},
    {1290, ErrorCode::server_not_ready, Refusal::other, " (name the primary server, or change this option)"},
    {1792, ErrorCode::server_not_ready, Refusal::other, " (name the primary server)"},
    {1836, ErrorCode::server_not_ready, Refusal::other, " (name the primary server)"},
    {1047, ErrorCode::server_not_ready, Refusal::other, ""},
    {1969, ErrorCode::server_not_ready, Refusal::other, ""},
    {3024, ErrorCode::server_not_ready, Refusal::other, ""},
    {3032, ErrorCode::server_not_ready, Refusal::other, ""},
    {1193, ErrorCode::config, Refusal::other, " (rlock needs InnoDB)"},
    {1665, ErrorCode::config, Refusal::other, " (set binlog_format = ROW or MIXED)"},
    {1040, ErrorCode::unreachable, Refusal::other, " (raise max_connections, or end other clients)"},
    {1049, ErrorCode::config, Refusal::other, " (create the database, or name another one)"},
    {1053, ErrorCode::unreachable, Refusal::other, ""},
    {1129, ErrorCode::unreachable, Refusal::other, " (flush hosts there)"},
    {1130, ErrorCode::refused, Refusal::other, " (create the user for this host)"},
    {2002, ErrorCode::unreachable, Refusal::other, is_it_running},
    {2003, ErrorCode::unreachable, Refusal::other, is_it_running},
    {2005, ErrorCode::unreachable, Refusal::other, " (-S names another server)"},
    {1203, ErrorCode::unreachable, Refusal::other, " (raise max_user_connections, or end other clients)"},
    {1226, ErrorCode::unreachable, Refusal::other, ""},
    {1927, ErrorCode::unreachable, Refusal::other, ""},
    {3169, ErrorCode::unreachable, Refusal::other, ""},
    {4031, ErrorCode::unreachable, Refusal::other, ""},
    {1054, ErrorCode::config, Refusal::no_such_column, ": a table of this name is not rlock's (use another database)"},
    {1136, ErrorCode::config, Refusal::other, ": a table of this name is not rlock's (use another database)"},
    {1364, ErrorCode::config, Refusal::other, ": a table of this name is not rlock's (use another database)"},
    {1267, ErrorCode::config, Refusal::other, unwritable_name},
    {3988, ErrorCode::config, Refusal::other, unwritable_name},
    {1300, ErrorCode::config, Refusal::other, " (the name of the lock is no UTF-8)"},
    {1366, ErrorCode::config, Refusal::other, " (the name of the lock is no UTF-8)"},
    {1406, ErrorCode::config, Refusal::other, ""},
});

inline const NumberRow& meaning_of(unsigned number)
{
  static constexpr NumberRow unknown{0, ErrorCode::unreachable, Refusal::other, ""};
  const auto* const row = std::ranges::find(numbers, number, &NumberRow::number);
  return row == numbers.end() ? unknown : *row;
}

// Whether the server had answered on the connection that is lost.
constexpr bool is_loss(unsigned number)
{
  return number == 2006 || number == 2013 || number == 1927 || number == 3169 || number == 4031;
}

}  // namespace rlock::mysql
