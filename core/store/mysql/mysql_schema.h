// SPDX-License-Identifier: Apache-2.0
// The tables in which the locks are, and the rights on them that a user needs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace rlock::mysql {

inline constexpr std::size_t longest_name = 255;  // of a lock, in characters

inline constexpr std::array<std::string_view, 4> tables{"rlock_lock", "rlock_event", "rlock_listener", "rlock_message"};

// utf8mb4_bin, because the default collation takes 'JOB' for 'job'. DATETIME in UTC, never TIMESTAMP, which fails in one hour of
// the year.
inline constexpr std::string_view create_tables_sql =
    R"(create table if not exists rlock_lock (name varchar(255) not null primary key, version bigint not null,
  record longblob not null, locked_by text, lock_until datetime(6), forget_at datetime(6), key (forget_at))
  engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
create table if not exists rlock_event (name varchar(255) not null, id bigint not null, entry longblob not null,
  primary key (name, id)) engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
create table if not exists rlock_listener (id bigint not null auto_increment primary key, listener bigint not null,
  name varchar(255) not null, channel text not null, started datetime(6) not null, key (name))
  engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
create table if not exists rlock_message (id bigint not null auto_increment primary key, listener bigint not null,
  channel text not null, body text not null, sent datetime(6) not null, key (listener))
  engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
)";

// `text` as a part of a literal of SQL.
inline std::string quoted(std::string_view text)
{
  std::string all = "'";
  for (const char byte : text) {
    all += byte == '\'' || byte == '\\' ? std::string{'\\', byte} : std::string(1, byte);
  }
  return all + "'";
}

// `user`: "deploy", which means from any host, or "deploy@10.0.0.%".
inline std::string grant_sql(std::string_view user)
{
  const auto at = std::min(user.find('@'), user.size());
  const std::string_view host = at == user.size() ? "%" : user.substr(at + 1);
  std::string all;
  for (const std::string_view table : tables) {
    all += "grant select, insert, update, delete on " + std::string(table) + " to " + quoted(user.substr(0, at)) + "@" +
           quoted(host) + ";\n";
  }
  return all;
}

// What an administrator runs in the database, so that `user` needs no right to create tables.
inline std::string rights_sql(std::string_view user) { return std::string(create_tables_sql) + grant_sql(user); }

}  // namespace rlock::mysql
