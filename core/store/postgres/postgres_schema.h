// SPDX-License-Identifier: Apache-2.0
// The tables in which the locks are, and the rights on them that a user needs.
#pragma once

#include <string>
#include <string_view>

namespace rlock::postgres {

// fillfactor: an update finds room on the page of the row. A listener is alive while the server process of its connection is.
inline constexpr std::string_view create_tables_sql =
    R"(create table if not exists rlock_lock (name text collate "C" primary key, version bigint not null, record bytea not null,
  locked_by text, lock_until timestamptz, forget_at timestamptz) with (fillfactor = 50);
create index if not exists rlock_lock_held on rlock_lock (name) where locked_by is not null;
create table if not exists rlock_event (name text collate "C" not null, id bigint not null, entry bytea not null,
  primary key (name, id));
create table if not exists rlock_listener (name text collate "C" not null, channel text not null, pid int not null,
  started timestamptz not null, primary key (name, channel, pid));
)";

// `user`: a name as it stands in SQL, without quotes.
inline std::string grant_sql(std::string_view user)
{
  std::string quoted;
  for (const char byte : user) {
    quoted += byte == '"' ? "\"\"" : std::string(1, byte);
  }
  return "grant select, insert, update, delete on rlock_lock, rlock_event, rlock_listener to \"" + quoted + "\";";
}

// What an administrator runs, so that `user` needs no right to create tables.
inline std::string rights_sql(std::string_view user) { return std::string(create_tables_sql) + grant_sql(user) + "\n"; }

}  // namespace rlock::postgres
