// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor` asks a PostgreSQL server, and what the answers mean for locks. Private to stores/postgres.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "lock/finding.h"
#include "stores/postgres/postgres_schema.h"
#include "stores/postgres/postgres_url.h"

namespace rlock::postgres {

class Connection;

// What the server tells of itself, as text.
enum Column : std::uint8_t {
  version_number,
  version_text,
  in_recovery,
  fsync_setting,
  full_page_writes,
  synchronous_commit,
  standby_names,
  encoding,
  max_connections,
  connections_used,
  replica_count,
  asynchronous_replicas,
  hidden_replicas,
  uses_tls,
  is_on_this_host,
  server_time,
  tables_there,
  tables_permitted,
  may_create,
  schema_name,
  user_name,
  lock_table,            // "none", "rlock" (it has the columns of rlock) or "other"
  synchronous_replicas,  // that are connected
  unlogged_table,        // one of the tables; empty: none is
  makes_temporary,       // whether tables that are missing would be temporary
  column_count,
};

struct ServerFacts {
  std::array<std::string, column_count> columns;
  Tables tables;
  bool creates_tables = true;
  bool is_woken = true;        // a message of NOTIFY reached another connection
  std::int64_t ahead_ms = 0;   // of the server's clock
  std::int64_t unsure_ms = 0;  // the time of the round trip in which that was seen

  [[nodiscard]] const std::string& text(Column column) const { return columns[column]; }
  [[nodiscard]] bool is(Column column) const { return text(column) == "t"; }
  [[nodiscard]] std::int64_t number(Column column) const;
};

// A pure function.
std::vector<Finding> findings_of(const ServerFacts& facts);

// LockStore::check_server.
Result<std::vector<Finding>> check_server(Connection& connection, const ConnectionSpec& spec, const Tables& tables,
                                          const Clock& clock, const CallLimits& limit);

}  // namespace rlock::postgres
