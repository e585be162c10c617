// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/mysql_schema.h"

#include <algorithm>
#include <array>
#include "engine/shared_table.h"

namespace rlock::mysql {
namespace {

// utf8mb4_bin, because the default collation takes 'JOB' for 'job'. DATETIME in UTC, never TIMESTAMP, which fails in one hour of
// the year.
constexpr std::string_view own_table =
    R"(create table if not exists {lock} (name varchar(255) not null primary key, version bigint not null,
  record longblob not null, locked_by text, lock_until datetime(6), forget_at datetime(6), key (forget_at))
  engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
)";

constexpr std::string_view shared_table =
    R"(create table if not exists {lock} (name varchar(64) not null, lock_until datetime(3) not null,
  locked_at datetime(3) not null, locked_by varchar(255) not null, primary key (name))
  engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
)";

constexpr std::string_view further_tables =
    R"(create table if not exists {event} (name varchar(255) not null, id bigint not null, entry longblob not null,
  primary key (name, id)) engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
create table if not exists {listener} (id bigint not null auto_increment primary key, listener bigint not null,
  name varchar(255) not null, channel text not null, started datetime(6) not null, key (name))
  engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
create table if not exists {message} (id bigint not null auto_increment primary key, listener bigint not null,
  channel text not null, body text not null, sent datetime(6) not null, key (listener))
  engine=InnoDB default charset=utf8mb4 collate=utf8mb4_bin;
)";

// Only MariaDB reads the comment.
constexpr std::string_view further_columns =
    "alter table {lock} add column /*M!100500 if not exists */ rlock_version bigint,\n"
    "  add column /*M!100500 if not exists */ rlock_record longblob;\n";

// `text` as a part of a literal of SQL.
std::string schema_text(std::string_view text)
{
  std::string all = "'";
  for (const char byte : text) {
    all += byte == '\'' || byte == '\\' ? std::string{'\\', byte} : std::string(1, byte);
  }
  return all + "'";
}

// "`jobs`.`shedlock`" → "shedlock"
std::string_view last_part(std::string_view table)
{
  table.remove_prefix(table.find('.') == std::string_view::npos ? 0 : table.find('.') + 1);
  return table.starts_with('`') ? table.substr(1, table.size() - 2) : table;
}

std::string schema_of(std::string_view table)
{
  const auto dot = table.find('.');
  return dot == std::string_view::npos ? "database()" : schema_text(table.substr(1, dot - 2));
}

std::string create_tables(const Tables& tables)
{
  return on_tables(std::string(tables.are_shared ? shared_table : own_table) + std::string(further_tables), tables);
}

std::string add_columns(const Tables& tables) { return tables.are_shared ? on_tables(further_columns, tables) : ""; }

}  // namespace

Tables tables_for(std::string_view table)
{
  constexpr char quote = '`';
  return table.empty() ? Tables{}
                       : Tables{.lock = record::quoted_table(table, "", quote),
                                .event = record::quoted_table(table, "_rlock_event", quote),
                                .listener = record::quoted_table(table, "_rlock_listener", quote),
                                .message = record::quoted_table(table, "_rlock_message", quote),
                                .are_shared = true};
}

std::string on_tables(std::string_view sql, const Tables& tables)
{
  const std::string schema = schema_of(tables.lock);
  const std::array names{schema_text(last_part(tables.lock)), schema_text(last_part(tables.event)),
                         schema_text(last_part(tables.listener)), schema_text(last_part(tables.message))};
  const std::array<record::SqlWord, 11> words{{
      {"{lock}", tables.lock},
      {"{event}", tables.event},
      {"{listener}", tables.listener},
      {"{message}", tables.message},
      {"{version}", tables.are_shared ? "rlock_version" : "version"},
      {"{record}", tables.are_shared ? "rlock_record" : "record"},
      {"{schema}", schema},
      {"{lock_name}", names[0]},
      {"{event_name}", names[1]},
      {"{listener_name}", names[2]},
      {"{message_name}", names[3]},
  }};
  return record::with_words(sql, words);
}

std::string grant_sql(const std::string& table, std::string_view user)
{
  const auto at = std::min(user.find('@'), user.size());
  const std::string_view host = at == user.size() ? "%" : user.substr(at + 1);
  return "grant select, insert, update, delete on " + table + " to " + schema_text(user.substr(0, at)) + "@" +
         schema_text(host) + ";";
}

std::string grants_for(std::string_view error, const Tables& tables, std::string_view user)
{
  std::string all;
  for (const std::string* table : {&tables.lock, &tables.event, &tables.listener, &tables.message}) {
    const std::string name(last_part(*table));
    if (error.find(name + "`") != std::string_view::npos || error.find(name + "'") != std::string_view::npos) {
      all += (all.empty() ? "" : " ") + grant_sql(*table, user);
    }
  }
  return all;
}

std::string create_sql(const Tables& tables) { return create_tables(tables) + add_columns(tables); }

std::string rights_sql(const Tables& tables, std::string_view user)
{
  std::string grants;
  for (const std::string* table : {&tables.lock, &tables.event, &tables.listener, &tables.message}) {
    grants += grant_sql(*table, user) + "\n";
  }
  return create_tables(tables) + grants + add_columns(tables);
}

}  // namespace rlock::mysql
