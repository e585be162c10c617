// SPDX-License-Identifier: Apache-2.0
#include "stores/postgres/postgres_checks.h"

#include <cstdint>
#include <string>
#include "base/duration.h"
#include "base/text.h"
#include "engine/server_findings.h"
#include "stores/postgres/postgres_connection.h"
#include "stores/postgres/postgres_listener.h"
#include "stores/postgres/postgres_schema.h"

namespace rlock::postgres {
namespace {

// One row of text, with a value for each Column. Each user may ask all of it; the server hides sync_state from users without pg_monitor.
constexpr const char* facts_sql = R"(
with t as (select to_regclass(name)::oid as id from unnest(array['{lock}', '{event}', '{listener}']) name),
  s as (select coalesce((select relnamespace from pg_class where oid = to_regclass('{lock}')),
    to_regnamespace({schema})::oid) as id)
select current_setting('server_version_num'), current_setting('server_version'), pg_is_in_recovery(),
  current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
  current_setting('synchronous_standby_names'), current_setting('server_encoding'),
  current_setting('max_connections'), (select sum(numbackends) from pg_stat_database),
  (select count(*) from pg_stat_replication),
  (select count(*) from pg_stat_replication where sync_state in ('async', 'potential')),
  (select count(*) from pg_stat_replication where sync_state is null),
  (select bool_or(ssl) from pg_stat_ssl where pid = pg_backend_pid()),
  inet_server_addr() is null or inet_server_addr() = inet_client_addr(),
  (extract(epoch from clock_timestamp()) * 1000)::bigint,
  (select count(id) from t),
  (select count(*) from t where has_table_privilege(id, 'select') and has_table_privilege(id, 'insert')
     and has_table_privilege(id, 'update') and has_table_privilege(id, 'delete')),
  has_schema_privilege((select id from s), 'create'), (select id::regnamespace from s), current_user,
  case when to_regclass('{lock}') is null then 'none' when (select count(*) from pg_attribute where
    attrelid = to_regclass('{lock}') and attname in ('{version}', '{record}') and not attisdropped) = 2 then 'rlock' else 'other' end,
  (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')),
  (select min(t.id::regclass::text) from t join pg_class c on c.oid = t.id where c.relpersistence = 'u'),
  )";

constexpr std::int64_t table_count = 3;
constexpr Millis slow_delivery{1000};

using record::fail;
using record::ok;
using record::warn;

Finding version(const ServerFacts& facts)
{
  const std::string found = "PostgreSQL " + facts.text(version_text);
  return facts.number(version_number) < oldest_version
             ? fail("version", found + " is too old", "run PostgreSQL 12 or later")
             : ok("version", found);
}

Finding role(const ServerFacts& facts)
{
  return facts.is(in_recovery) ? fail("role", "it is a standby, which is read-only", "name the primary server")
                               : ok("role", "primary");
}

// Of the table of the locks, where it has no columns of rlock.
Finding other_table(const ServerFacts& facts)
{
  std::string name = facts.tables.lock;
  std::erase(name, '"');
  if (!facts.tables.are_shared) {
    return fail("tables", "a table " + name + " is there, and is not rlock's", "use another schema or database");
  }
  return facts.creates_tables
             ? ok("tables", "the first lock adds rlock's columns to " + name)
             : fail("tables", name + " has no columns of rlock", "run what rlock acl prints, or give create=yes once");
}

Finding tables(const ServerFacts& facts)
{
  const std::string user = facts.text(user_name);
  const bool are_there = facts.number(tables_there) == table_count;
  if (facts.is(makes_temporary) && facts.creates_tables && !are_there) {
    return fail("tables", "those that are missing " + std::string(would_be_temporary), std::string(other_schema));
  }
  if (const std::string& unkept = facts.text(unlogged_table); !unkept.empty()) {
    return fail("tables", unkept + " is unlogged: a crash of the server empties it",
                "run: alter table " + unkept + " set logged");
  }
  if (facts.text(lock_table) == "other") {
    return other_table(facts);
  }
  if (are_there) {
    return facts.number(tables_permitted) == table_count
               ? ok("tables", "they are there, in the schema " + facts.text(schema_name))
               : fail("tables", "the user " + user + " may not read and write them",
                      "run: " + grant_sql(facts.tables, user));
  }
  if (!facts.creates_tables) {
    return fail("tables", "they are not there, and the URL does not let rlock make them",
                "run what rlock acl prints, or give create=yes once");
  }
  return facts.is(may_create)
             ? ok("tables", "the first lock makes them, in the schema " + facts.text(schema_name))
             : fail("tables", "they are not there, and the user " + user + " may not make them",
                    "have an administrator run what rlock acl --user " + user + " prints for this URL");
}

// A commit that a crash of the server's host loses is a lock that a second job gets.
Finding persistence(const ServerFacts& facts)
{
  if (facts.text(fsync_setting) != "on") {
    return fail("persistence", "fsync is off: a crash of its host may lose locks, and the database", "set fsync = on");
  }
  if (facts.text(full_page_writes) != "on") {
    return fail("persistence", "full_page_writes is off: a crash of its host may damage the tables",
                "set full_page_writes = on");
  }
  const std::string& setting = facts.text(synchronous_commit);
  if (setting == "off") {
    return ok("persistence", "fsync is on; synchronous_commit is off, and rlock turns it on for its own commits");
  }
  return setting == "local" && !facts.text(standby_names).empty()
             ? warn("persistence", "synchronous_commit is local: no commit waits for the synchronous replicas",
                    "set synchronous_commit = on for this user (ALTER ROLE)")
             : ok("persistence", "fsync is on, synchronous_commit is " + setting);
}

// How many standbys a commit waits for: "FIRST 2 (a, b)", "ANY 2 (a, b)", "2 (a, b)", or the first one of "a, b".
std::int64_t awaited_standbys(const ServerFacts& facts)
{
  const std::string& names = facts.text(standby_names);
  if (names.empty() || facts.text(synchronous_commit) == "local") {
    return 0;
  }
  const auto list = names.find('(');
  const auto digits = names.find_first_of("0123456789");
  return list != std::string::npos && digits < list ? leading_number(std::string_view(names).substr(digits)) : 1;
}

Finding replicas(const ServerFacts& facts)
{
  const std::int64_t all = facts.number(replica_count);
  const std::int64_t late = facts.number(asynchronous_replicas);
  const std::int64_t hidden = facts.number(hidden_replicas);
  if (const std::int64_t awaited = awaited_standbys(facts);
      hidden == 0 && facts.number(synchronous_replicas) < awaited) {
    return fail("replicas",
                "synchronous_standby_names names a standby that is not connected: " +
                    std::to_string(facts.number(synchronous_replicas)) + " of " + std::to_string(awaited) +
                    " are, and no commit ends",
                "start that standby, or correct synchronous_standby_names");
  }
  if (late > 0) {
    return warn("replicas", std::to_string(late) + " asynchronous: one that takes over may not have heard of a lock",
                "set synchronous_standby_names, and fail over to a synchronous one; let the resource compare "
                "RLOCK_FENCE");
  }
  if (hidden > 0) {
    return record::unknown("replicas", std::to_string(hidden) + ", and not permitted to ask more",
                           "ask a user who has pg_monitor whether they are synchronous");
  }
  return ok("replicas", all == 0 ? "none" : std::to_string(all) + ", synchronous");
}

Finding text_encoding(const ServerFacts& facts)
{
  const std::string& found = facts.text(encoding);
  return found == "UTF8" ? ok("encoding", found)
                         : warn("encoding", found + ": a name of a lock that it cannot write is refused",
                                "use a database with the encoding UTF8, or ASCII names alone");
}

Finding wake_up(const ServerFacts& facts)
{
  if (facts.is_woken) {
    return ok("messages", "a connection that listens is woken by NOTIFY");
  }
  return facts.is(in_recovery)
             ? record::unknown("messages", "not asked: a standby has no NOTIFY", {})
             : warn("messages", "no message of NOTIFY arrives: a waiter learns late that it has a lock",
                    "connect to PostgreSQL itself, or by a pooler in session mode");
}

Finding connections(const ServerFacts& facts)
{
  return record::connections_finding(facts.number(connections_used), facts.number(max_connections),
                                     "raise max_connections: each holder and each waiter has a connection");
}

Finding encryption(const ServerFacts& facts)
{
  return record::encryption_finding(facts.is(uses_tls), facts.is(is_on_this_host),
                                    "set ssl = on at the server, and leave sslmode to rlock (verify-full)");
}

Finding clocks(const ServerFacts& facts)
{
  return record::clock_finding(facts.ahead_ms, facts.unsure_ms,
                               "have NTP keep both; setting it forward would end leases early");
}

// Listens on a connection of its own, as a waiter does: behind a pooler in transaction mode the message goes elsewhere.
bool is_delivered(Connection& connection, const ConnectionSpec& spec, const Clock& clock, const CallLimits& limit)
{
  Connection listener(spec, clock);
  return listener.run("listen rlock_doctor", limit) &&
         hears(listener, connection, "rlock_doctor", slow_delivery, clock, limit);
}

}  // namespace

std::int64_t ServerFacts::number(Column column) const { return leading_number(text(column)); }

std::vector<Finding> findings_of(const ServerFacts& facts)
{
  return record::findings_by(facts, version, role, tables, persistence, replicas, text_encoding, wake_up, connections,
                             encryption, clocks);
}

Result<std::vector<Finding>> check_server(Connection& connection, const ConnectionSpec& spec, const Tables& tables,
                                          const Clock& clock, const CallLimits& limit)
{
  RETURN_IF_ERROR(connection.run("select 1", limit));
  const std::int64_t before = wall_clock_ms();
  const auto rows = connection.run(on_tables(facts_sql, tables) + "(" + makes_temporary_sql(tables) + ")", limit);
  const std::int64_t after = wall_clock_ms();
  if (!rows) {
    return rows.error();
  }
  if (rows->count() != 1) {
    return Error{ErrorCode::internal, connection.where() + " answered with no row (is it PostgreSQL?)"};
  }
  ServerFacts facts{.columns = {},
                    .tables = tables,
                    .creates_tables = spec.creates_tables,
                    .is_woken = is_delivered(connection, spec, clock, limit),
                    .ahead_ms = 0,
                    .unsure_ms = after - before};
  for (std::size_t column = 0; column < facts.columns.size(); ++column) {
    facts.columns[column] = rows->text(0, static_cast<int>(column));
  }
  facts.ahead_ms = facts.number(server_time) - before;
  return findings_of(facts);
}

}  // namespace rlock::postgres
