// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor` asks a MySQL or MariaDB server, and what the answers mean for locks. Private to stores/mysql.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "lock/finding.h"
#include "stores/mysql/mysql_connection.h"
#include "stores/mysql/mysql_schema.h"

namespace rlock::mysql {

struct ColumnFacts {
  std::string type;       // "datetime(6)"
  std::string collation;  // empty: it has none
};

// Of the table of the locks.
struct TableLayout {
  std::string name;                                         // as SQL has it
  std::map<std::string, ColumnFacts, std::less<>> columns;  // empty: there is none, or the user may not see it
  bool is_zone_utc = true;                                  // the time zone that the server gives to a session
};

struct ServerFacts {
  std::map<std::string, std::string, std::less<>> settings;  // SHOW GLOBAL VARIABLES
  std::map<std::string, std::string, std::less<>> status;    // SHOW GLOBAL STATUS, and Ssl_cipher of this session
  std::map<std::string, std::string, std::less<>> tables;    // rlock's: the name, and the storage engine
  TableLayout layout;
  bool are_shared = false;  // the locks are in a table of ShedLock
  std::string version;      // "10.11.6-MariaDB"
  std::string database;
  std::int64_t replicas = 0;  // that this user may see
  bool creates_tables = true;
  bool is_on_this_host = true;
  bool is_woken = true;        // KILL QUERY ended the wait of another connection
  std::int64_t ahead_ms = 0;   // of the server's clock
  std::int64_t unsure_ms = 0;  // the time of the round trip in which that was seen

  [[nodiscard]] std::string_view setting(std::string_view name) const;  // empty: the server has none of this name
  [[nodiscard]] std::string_view state(std::string_view name) const;    // of `status`
};

// A pure function.
std::vector<Finding> findings_of(const ServerFacts& facts);

// Asks for the layout of the table of the locks.
extern const std::string columns_sql;
TableLayout layout_in(const Answer& answer, const Tables& tables, std::size_t first_set = 0);

// Whether the four columns of ShedLock are as rlock needs them: the check `columns`. A pure function.
Finding shared_columns(const TableLayout& layout);
// How many characters the column `name` takes.
std::size_t longest_name_in(const TableLayout& layout);

// LockStore::check_server.
Result<std::vector<Finding>> check_server(Connection& connection, const ConnectionSpec& spec, const Tables& tables,
                                          const Clock& clock, const CallLimits& limit);

}  // namespace rlock::mysql
