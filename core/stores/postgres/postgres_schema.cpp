// SPDX-License-Identifier: Apache-2.0
#include "stores/postgres/postgres_schema.h"

#include <algorithm>
#include <array>
#include "engine/shared_table.h"

namespace rlock::postgres {
namespace {

using record::quoted_name;
using record::quoted_table;

// The server hides backend_start of other users from users without rights; their listeners count as alive.
constexpr std::string_view alive =
    "(case when l.until is null then exists (select from pg_stat_get_activity(l.pid) a where a.backend_start = "
    "l.started or "
    "a.backend_start is null) else l.until > statement_timestamp() end)";

// ShedLock stores UTC in columns without a time zone.
constexpr std::string_view now = "(statement_timestamp() at time zone 'UTC')";

constexpr char quote = '"';

// The schema of the tables, where it stands in their names.
std::string schema_of(const Tables& tables)
{
  const auto dot = tables.lock.find('.');
  return dot == std::string::npos ? "quote_ident(current_schema())" : "'" + tables.lock.substr(0, dot) + "'";
}

// `name`: that of the lock, as SQL, in a row of `from`. statement_timestamp() is the time at which the server got the statement: not
// before the sending, and not after the snapshot.
std::string read_from(const Tables& tables, const std::string& more_columns, const std::string& from,
                      const std::string& name)
{
  const std::string own = "r.version, r.record";
  const std::string shared = "coalesce(r.rlock_version, case when r.name is not null then 0 end), r.rlock_record";
  const std::string face =
      ", (extract(epoch from r.lock_until at time zone 'UTC') * 1000000)::bigint, r.locked_by::text, "
      "(select format_type(a.atttypid, a.atttypmod) from pg_attribute a where a.attrelid = '{lock}'::regclass and "
      "a.attname = 'lock_until')";
  return on_tables("select (extract(epoch from statement_timestamp()) * 1000000)::bigint, " +
                       (tables.are_shared ? shared : own) +
                       ", (select string_agg(l.channel, E'\\n' order by l.channel collate \"C\") from {listener} l "
                       "where l.name = " +
                       name + " and {alive})" + (tables.are_shared ? face : "") + more_columns + " from " + from +
                       " left join {lock} r on r.name = " + name,
                   tables);
}

}  // namespace

Tables tables_for(std::string_view table)
{
  return table.empty() ? Tables{}
                       : Tables{.lock = quoted_table(table, "", quote),
                                .event = quoted_table(table, "_rlock_event", quote),
                                .listener = quoted_table(table, "_rlock_listener", quote),
                                .are_shared = true};
}

std::string on_tables(std::string_view sql, const Tables& tables)
{
  const std::string schema = schema_of(tables);
  const std::array<record::SqlWord, 8> words{{
      {"{lock}", tables.lock},
      {"{event}", tables.event},
      {"{listener}", tables.listener},
      {"{alive}", alive},
      {"{now}", now},
      {"{version}", tables.are_shared ? "rlock_version" : "version"},
      {"{record}", tables.are_shared ? "rlock_record" : "record"},
      {"{schema}", schema},
  }};
  return record::with_words(sql, words);
}

std::string read_sql(const Tables& tables, const std::string& more_columns)
{
  return read_from(tables, more_columns, "(select 1) one", "$1");
}

std::string read_each_sql(const Tables& tables)
{
  return read_from(tables, ", wanted.name", "unnest($1::text[]) wanted(name)", "wanted.name");
}

// A right on columns alone may be enough. rlock deletes no row of a shared table of locks.
std::string rights_columns_sql(const Tables& tables)
{
  std::string missing;
  for (const std::string* table : {&tables.lock, &tables.event, &tables.listener}) {
    for (const std::string_view right : {"select", "insert", "update", "delete"}) {
      const bool is_of_rows = right == "delete";
      if (is_of_rows && tables.are_shared && table == &tables.lock) {
        continue;
      }
      missing += std::string(", case when not ") +
                 (is_of_rows ? "has_table_privilege('" : "has_any_column_privilege('") + *table + "', '" +
                 std::string(right) + "') then '" + std::string(right) + " on " + *table + "' end";
    }
  }
  return ", concat_ws(', '" + missing + "), current_user::text";
}

bool keeps_milliseconds(std::string_view type)
{
  constexpr auto kept = std::to_array<std::string_view>(
      {"timestamp without time zone", "timestamp(3) without time zone", "timestamp(4) without time zone",
       "timestamp(5) without time zone", "timestamp(6) without time zone"});
  return std::ranges::find(kept, type) != kept.end();
}

std::string insert_sql(const Tables& tables)
{
  return on_tables(tables.are_shared ? R"(
with w as (insert into {lock} (name, rlock_version, rlock_record, locked_by, lock_until, locked_at)
  values ($1, $2::bigint, $3, coalesce($4::text, ''), coalesce(to_timestamp($5::float8) at time zone 'UTC', {now}), {now})
  on conflict (name) do nothing returning name))"
                                     : R"(
with w as (insert into {lock} (name, version, record, locked_by, lock_until, forget_at)
  values ($1, $2::bigint, $3, $4, to_timestamp($5::float8), to_timestamp($6::float8))
  on conflict (name) do nothing returning name))",
                   tables);
}

// A lock that is free keeps the name of its last holder, as ShedLock leaves it.
std::string update_sql(const Tables& tables)
{
  return on_tables(tables.are_shared ? R"(
with w as (update {lock} set rlock_version = $2::bigint, rlock_record = $3,
  locked_at = case when $4::text is null or (locked_by = $4::text and lock_until >= {now}) then locked_at else {now} end,
  locked_by = coalesce($4::text, locked_by),
  lock_until = coalesce(to_timestamp($5::float8) at time zone 'UTC', least(lock_until, {now}))
  where name = $1 and coalesce(rlock_version, 0) = $6::bigint
    and (extract(epoch from lock_until at time zone 'UTC') * 1000000)::bigint = $7::bigint and locked_by = $8::text
  returning name))"
                                     : R"(
with w as (update {lock} set version = $2::bigint, record = $3, locked_by = $4, lock_until = to_timestamp($5::float8),
  forget_at = to_timestamp($6::float8) where name = $1 and version = $7::bigint returning name))",
                   tables);
}

// rlock's column stands there so that a table without it is refused, as by a read.
std::string held_sql(const Tables& tables)
{
  return on_tables(tables.are_shared
                       ? "select name::text, rlock_version from {lock} where lock_until > {now} order by 1"
                       : "select name from {lock} where locked_by is not null and (lock_until is null or "
                         "lock_until > statement_timestamp()) order by name",
                   tables);
}

std::string forget_sql(const Tables& tables)
{
  return on_tables(tables.are_shared ? "delete from {listener} l where not {alive}" : R"(
with dead as (delete from {listener} l where not {alive}),
  gone as (delete from {lock} where name in (select name from {lock}
    where forget_at < statement_timestamp() - interval '1 hour' limit 100 for update skip locked) returning name)
delete from {event} e using gone where e.name = gone.name)",
                   tables);
}

std::string makes_temporary_sql(const Tables& tables)
{
  return on_tables("select starts_with(ltrim({schema}, '\"'), 'pg_temp')", tables);
}

// fillfactor: an update finds room on the page of the row. A listener is alive while the server process of its connection is; a
// listener that polls, because a pooler keeps messages from it, is alive until `until` and finds its messages in `inbox`.
std::string create_sql(const Tables& tables)
{
  const std::string own =
      R"(create table if not exists {lock} (name text collate "C" primary key, version bigint not null, record bytea not null,
  locked_by text, lock_until timestamptz, forget_at timestamptz) with (fillfactor = 50);
create index if not exists rlock_lock_held on {lock} (name) where locked_by is not null;
create index if not exists rlock_lock_forgotten on {lock} (forget_at) where forget_at is not null;
)";
  const std::string shared =
      R"(create table if not exists {lock} (name varchar(64) not null, lock_until timestamp not null,
  locked_at timestamp not null, locked_by varchar(255) not null, primary key (name));
alter table {lock} add column if not exists rlock_version bigint, add column if not exists rlock_record bytea;
)";
  return on_tables(
      (tables.are_shared ? shared : own) +
          R"(create table if not exists {event} (name text collate "C" not null, id bigint not null, entry bytea not null,
  primary key (name, id));
create table if not exists {listener} (name text collate "C" not null, channel text not null, pid int not null,
  started timestamptz not null, until timestamptz, inbox text[] not null default '{}', primary key (name, channel, pid));
)",
      tables);
}

std::string grant_sql(const Tables& tables, std::string_view user)
{
  return on_tables("grant select, insert, update, delete on {lock}, {event}, {listener} to ", tables) +
         quoted_name(user, quote) + ";";
}

std::string rights_sql(const Tables& tables, std::string_view user)
{
  return create_sql(tables) + grant_sql(tables, user) + "\n";
}

}  // namespace rlock::postgres
