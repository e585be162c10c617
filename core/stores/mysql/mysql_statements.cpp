// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/mysql_statements.h"

#include <algorithm>
#include <cstdint>
#include "base/text.h"
#include "engine/shared_table.h"
#include "stores/mysql/mysql_connection.h"
#include "stores/mysql/mysql_listener.h"

namespace rlock::mysql {
namespace {

using record::Change;
using record::SharedVersion;
using record::Version;

// In milliseconds, which is what the columns of ShedLock have.
constexpr const char* shared_now = "utc_timestamp(3)";
constexpr const char* shared_end = "timestampdiff(microsecond, '1970-01-01', lock_until)";

constexpr const char* read_time_sql = "select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))";

// Of the row r of {lock}, from read_version on.
std::string state_columns(const Tables& tables)
{
  return tables.are_shared ? "coalesce(r.{version}, if(r.name is null, null, 0)), r.{record}, null, "
                             "@@global.read_only, r.name, " +
                                 std::string(shared_end) + ", r.locked_by"
                           : "r.{version}, r.{record}, null, @@global.read_only";
}

// NULL for 0; at most the end of the year 9999, which is the last that DATETIME has.
std::string time_literal(std::int64_t micros)
{
  constexpr std::int64_t last = 253'402'300'799'000'000;
  return micros == 0 ? "null"
                     : "date_add('1970-01-01', interval " + std::to_string(std::min(micros, last)) + " microsecond)";
}

// The row of the lock, if it has this version.
std::string has_version(std::string_view name, const std::string& version)
{
  return "name = " + sql_text(name) + " and {version} = " + version;
}

// A name that is there is no error, which would leave a transaction open until the client ends it.
std::string own_record(std::string_view name, const Version& version, const std::string& next, const Change& change)
{
  const std::string record = sql_bytes(change.bytes);
  const std::string holder = change.face.holder.empty() ? "null" : sql_text(change.face.holder);
  const std::string until = time_literal(change.face.until_us);
  const std::string forget = time_literal(change.face.forget_us);
  if (version.empty()) {
    return "insert into {lock} (name, {version}, {record}, locked_by, lock_until, forget_at) values (" +
           sql_text(name) + ", " + next + ", " + record + ", " + holder + ", " + until + ", " + forget +
           ") on duplicate key update {version} = {version};";
  }
  return "update {lock} set {version} = " + next + ", {record} = " + record + ", locked_by = " + holder +
         ", lock_until = " + until + ", forget_at = " + forget + " where " + has_version(name, version) + ";";
}

// Whatever the collation of the column.
std::string is_holder(std::string_view holder)
{
  return "cast(convert(locked_by using utf8mb4) as binary) = " + sql_bytes(holder);
}

// A lock that is free keeps the name of its last holder, as ShedLock leaves it. Each statement on a row of ShedLock assigns
// lock_until: the server may have made that column with ON UPDATE CURRENT_TIMESTAMP (explicit_defaults_for_timestamp). Assignments
// happen in their order.
std::string shared_record(std::string_view name, const Version& version, const std::string& next, const Change& change)
{
  const std::string now = shared_now;
  const std::string record = sql_bytes(change.bytes);
  const std::string holder = sql_text(change.face.holder);
  const bool is_free = change.face.holder.empty();
  const bool ends = change.face.until_us != 0;
  const std::string until = time_literal(change.face.until_us);
  if (version.empty()) {
    return "insert into {lock} (name, {version}, {record}, locked_by, lock_until, locked_at) values (" +
           sql_text(name) + ", " + next + ", " + record + ", " + holder + ", " + (ends ? until : now) + ", " + now +
           ") on duplicate key update {version} = {version}, lock_until = lock_until;";
  }
  const auto seen = SharedVersion::of(version);
  const std::string taken = "locked_at = if(" + is_holder(change.face.holder) + " and lock_until >= " + now +
                            ", locked_at, " + now + "), locked_by = " + holder;
  return "update {lock} set {version} = " + next + ", {record} = " + record + ", " +
         (is_free ? "locked_at = locked_at" : taken) +
         ", lock_until = " + (ends ? until : "least(lock_until, " + now + ")") + " where name = " + sql_text(name) +
         " and coalesce({version}, 0) = " + seen.number + " and " + shared_end + " = " + std::to_string(seen.until_us) +
         " and " + is_holder(seen.holder) + ";";
}

// `is_mine` is true if this commit has written the record.
std::string write_log(std::string_view name, const record::LogChange& log, const std::string& is_mine)
{
  std::string sql;
  std::string rows;
  for (const record::LoggedEvent& event : log.written) {
    rows += (rows.empty() ? "select " : " union all select ") + std::to_string(event.id) + " as id, " +
            sql_bytes(event.entry) + " as entry";
  }
  if (!rows.empty()) {
    sql += "insert into {event} (name, id, entry) select " + sql_text(name) + ", t.id, t.entry from (" + rows +
           ") t where " + is_mine + " on duplicate key update entry = values(entry);";
  }
  const std::string delete_of_lock = "delete from {event} where name = " + sql_text(name) + " and id ";
  if (log.first_kept) {
    sql += delete_of_lock + "< " + std::to_string(*log.first_kept) + " and " + is_mine + ";";
  }
  if (log.last_kept) {
    sql += delete_of_lock + "> " + std::to_string(*log.last_kept) + " and " + is_mine + ";";
  }
  return sql;
}

std::string write_messages(std::string_view name, const Change& change, const std::string& is_mine)
{
  std::string rows;
  int place = 0;
  for (const Message& each : change.messages) {
    rows += (rows.empty() ? "select " : " union all select ") + std::to_string(++place) + " as place, " +
            sql_text(each.channel) + " as channel, " + sql_text(each.text) + " as body";
  }
  return rows.empty() ? ""
                      : "insert into {message} (listener, channel, body, sent) select l.listener, t.channel, t.body, "
                        "utc_timestamp(6) from {listener} l join (" +
                            rows + ") t on l.channel = t.channel where l.name = " + sql_text(name) + " and " + is_mine +
                            " order by t.place;";
}

// The listeners to wake.
std::string heard_by(std::string_view name, const Change& change)
{
  std::string channels = joined(change.messages, ", ", [](const Message& each) { return sql_text(each.channel); });
  return channels.empty() ? ""
                          : ";select distinct listener from {listener} where name = " + sql_text(name) +
                                " and channel in (" + channels + ") and " + is_alive("listener");
}

}  // namespace

// utc_timestamp() is the time at which the server began with the statement: not before the sending, and not after the snapshot,
// which is one for all tables of the statement.
std::string read_sql(std::string_view name, const Tables& tables)
{
  return std::string(read_time_sql) + ", " + state_columns(tables) +
         " from (select 1 as one) one left join {lock} r on r.name = " + sql_text(name) +
         " union all select null, null, null, l.channel, null" + (tables.are_shared ? ", null, null, null" : "") +
         " from {listener} l where l.name = " + sql_text(name) + " and " + is_alive("l.listener");
}

// The time is that of a statement before: not after the states.
std::string read_each_sql(std::span<const std::string_view> names, bool with_logs, const Tables& tables)
{
  std::string list = joined(names, ", ", sql_text);
  const std::string is_wanted = "name in (" + list + ")";
  return std::string(read_time_sql) + ", null, null, null, @@global.read_only;select r.name, " + state_columns(tables) +
         " from {lock} r where r." + is_wanted + ";select l.name, l.channel from {listener} l where l." + is_wanted +
         " and " + is_alive("l.listener") +
         (with_logs ? ";select name, entry from {event} where " + is_wanted + " order by name, id" : "");
}

// rlock deletes no row of a shared table of locks. Each INSERT has the columns that have no default.
std::string try_rights_sql(const Tables& tables)
{
  const std::string faces = tables.are_shared ? ", locked_by, lock_until, locked_at" : "";
  const std::string face_values = tables.are_shared ? ", '', utc_timestamp(3), utc_timestamp(3)" : "";
  const std::string nowhere = " from dual where false;";
  return "update {lock} l, {event} e, {listener} n, {message} m set l.{version} = l.{version}, e.entry = e.entry, "
         "n.name = n.name, m.body = m.body where false;"
         "delete " +
         std::string(tables.are_shared ? "" : "l, ") +
         "e, n, m from {lock} l, {event} e, {listener} n, {message} m where false;"
         "insert into {lock} (name, {version}, {record}" +
         faces + ") select '', 0, ''" + face_values + nowhere +
         "insert into {event} (name, id, entry) select '', 0, ''" + nowhere +
         "insert into {listener} (listener, name, channel, started) select 0, '', '', utc_timestamp(6)" + nowhere +
         "insert into {message} (listener, channel, body, sent) select 0, '', '', utc_timestamp(6)" + nowhere;
}

std::string commit_sql(std::string_view name, const Version& version, const std::string& next, const Change& change,
                       const Tables& tables)
{
  const std::string is_mine = "exists (select 1 from {lock} where " + has_version(name, next) + ")";
  return "begin;" +
         (tables.are_shared ? shared_record(name, version, next, change) : own_record(name, version, next, change)) +
         write_log(name, change.log, is_mine) + write_messages(name, change, is_mine) + "select " + is_mine +
         ";commit" + heard_by(name, change);
}

std::string touch_sql(std::string_view name, const std::string& version, const Tables& tables)
{
  const std::string now = shared_now;
  const std::string values = sql_text(name) + ", " + version + ", ''";
  return tables.are_shared
             ? "insert into {lock} (name, {version}, {record}, locked_by, lock_until, locked_at) values (" + values +
                   ", '', " + now + ", " + now +
                   ") on duplicate key update {version} = values({version}), lock_until = lock_until;"
             : "insert into {lock} (name, {version}, {record}) values (" + values +
                   ") on duplicate key update {version} = values({version});";
}

// rlock's column stands there so that a table without it is refused, as by a read.
std::string held_sql(const Tables& tables)
{
  return tables.are_shared ? "select name, {version} from {lock} where lock_until > utc_timestamp(6) order by name"
                           : "select name from {lock} where locked_by is not null and (lock_until is null or "
                             "lock_until > utc_timestamp(6)) order by name";
}

std::string erase_sql(std::string_view name)
{
  const std::string row = " where name = " + sql_text(name);
  return delete_listeners_sql(name, "true") + ";delete from {event}" + row + ";delete from {lock}" + row;
}

// Rows of ShedLock stay: it remembers which names are there.
std::string forget_sql(const Tables& tables)
{
  const std::string old = " < date_sub(utc_timestamp(6), interval 1 hour) ";
  const std::string waiting = "delete from {message} where sent" + old +
                              "limit 100;delete from {listener} where started" + old + "and not (" +
                              is_alive("listener") + ") limit 100";
  const std::string records = ";delete e from {event} e join (select name from {lock} where forget_at" + old +
                              "limit 100) gone on gone.name = e.name join {lock} l on l.name = e.name and l.forget_at" +
                              old + ";delete from {lock} where forget_at" + old + "order by forget_at limit 100";
  return tables.are_shared ? waiting : waiting + records;
}

}  // namespace rlock::mysql
