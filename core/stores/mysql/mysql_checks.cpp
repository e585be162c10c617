// SPDX-License-Identifier: Apache-2.0
#include "stores/mysql/mysql_checks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include "base/duration.h"
#include "base/text.h"
#include "engine/server_findings.h"
#include "net/url_parts.h"
#include "stores/mysql/mysql_connection.h"
#include "stores/mysql/mysql_schema.h"

namespace rlock::mysql {
namespace {

// Each user may ask all of it. Answers, in this order, of the statements of facts_sql.
enum FactSet : std::uint8_t {
  settings_set,
  status_set,
  session_set,
  tables_set,
  self_set,
  columns_set,
  zone_set,
  set_count
};
constexpr const char* facts_sql = R"(
show global variables where variable_name in ('innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'binlog_format',
  'max_connections', 'wsrep_on', 'innodb_doublewrite');
show global status where variable_name in ('Threads_connected', 'Slaves_connected', 'wsrep_cluster_size',
  'Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status', 'wsrep_local_bf_aborts', 'wsrep_local_cert_failures');
show session status where variable_name = 'Ssl_cipher';
select table_name, engine from information_schema.tables where table_schema = {schema} and table_name in
  ({lock_name}, {event_name}, {listener_name}, {message_name});
select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) div 1000, {schema},
  (select count(*) from information_schema.processlist where command like 'Binlog Dump%');)";

constexpr std::size_t table_count = 4;
constexpr Millis longest_wait{1000};

using record::fail;
using record::ok;
using record::warn;

bool is_on(std::string_view value) { return value == "ON" || value == "1"; }

// A server that is too old or read-only is refused before it is checked.
Finding version(const ServerFacts& facts)
{
  const bool is_mariadb = facts.version.find("MariaDB") != std::string::npos;
  return ok("version", (is_mariadb ? "" : "MySQL ") + printable(facts.version));
}

Finding tables_are_there(const ServerFacts& facts)
{
  const auto& found_columns = facts.layout.columns;
  if (!facts.are_shared && !found_columns.empty() && !found_columns.contains("forget_at")) {
    return fail("tables", "a table rlock_lock is there, and is not rlock's", "use another database");
  }
  if (facts.tables.size() != table_count) {
    return facts.creates_tables ? ok("tables", "the first lock makes them, in the database " + facts.database)
                                : fail("tables", "they are not all there, and the URL does not let rlock make them",
                                       "run what rlock acl prints, or give create=yes once");
  }
  for (const auto& [name, engine] : facts.tables) {
    if (engine != "InnoDB") {
      return fail("tables",
                  std::string(name).append(" has the engine ").append(engine) + ", which keeps no transaction",
                  "run: alter table " + name + " engine = InnoDB");
    }
  }
  return ok("tables", "they are there, in the database " + facts.database);
}

// Another collation takes names for the same that differ in case, and TIMESTAMP or a DATETIME without fraction rounds.
Finding columns(const ServerFacts& facts)
{
  const auto& found_columns = facts.layout.columns;
  if (found_columns.empty()) {
    return record::unknown("columns", "there is no table yet", {});
  }
  if (facts.are_shared) {
    return !facts.creates_tables && !found_columns.contains("rlock_version")
               ? fail("columns", facts.layout.name + " has no columns of rlock",
                      "run what rlock acl prints, or give create=yes once")
               : shared_columns(facts.layout);
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> types{
      {{"name", "varchar(255)"}, {"lock_until", "datetime(6)"}, {"forget_at", "datetime(6)"}}};
  for (const auto& [name, type] : types) {
    const auto found = found_columns.find(name);
    if (found == found_columns.end() || found->second.type != type) {
      return fail("columns",
                  "rlock_lock." + std::string(name) + " is " +
                      (found == found_columns.end() ? "not there" : found->second.type) + ", not " + std::string(type),
                  "compare the tables with those that rlock acl prints");
    }
  }
  const std::string& collation = found_columns.find("name")->second.collation;
  return collation == "utf8mb4_bin"
             ? ok("columns", "names are compared byte by byte")
             : fail("columns", "rlock_lock.name has the collation " + collation + ": it may take two names for one",
                    "run: alter table rlock_lock convert to character set utf8mb4 collate utf8mb4_bin");
}

// A commit that a crash of the server's host loses is a lock that a second job gets. The binary log decides in a recovery which
// transactions are kept.
Finding persistence(const ServerFacts& facts)
{
  const std::string_view flush = facts.setting("innodb_flush_log_at_trx_commit");
  if (flush != "1") {
    return fail("persistence", "innodb_flush_log_at_trx_commit is " + printable(flush) + ": a crash may lose locks",
                "set innodb_flush_log_at_trx_commit = 1");
  }
  const bool has_binlog = is_on(facts.setting("log_bin"));
  if (has_binlog && facts.setting("sync_binlog") != "1") {
    return fail("persistence",
                "sync_binlog is " + printable(facts.setting("sync_binlog")) +
                    ": a crash of its host may lose locks, here and on the replicas",
                "set sync_binlog = 1");
  }
  const std::string_view doublewrite = facts.setting("innodb_doublewrite");
  if (doublewrite == "OFF" || doublewrite == "0" || doublewrite == "DETECT_ONLY") {
    return warn("persistence",
                "innodb_doublewrite is " + std::string(doublewrite) + ": a crash of its host may damage the tables",
                "set innodb_doublewrite = ON, unless the file system writes a page whole or not at all");
  }
  return ok("persistence",
            std::string("innodb_flush_log_at_trx_commit is 1") + (has_binlog ? ", sync_binlog is 1" : ""));
}

Finding binlog(const ServerFacts& facts)
{
  const std::string_view format = facts.setting("binlog_format");
  return is_on(facts.setting("log_bin")) && format == "STATEMENT"
             ? fail("binlog", "binlog_format is STATEMENT, with which rlock cannot write",
                    "set binlog_format = ROW or MIXED")
             : ok("binlog", is_on(facts.setting("log_bin")) ? printable(format) : "off");
}

Finding replicas(const ServerFacts& facts)
{
  const bool waits =
      is_on(facts.state("Rpl_semi_sync_master_status")) || is_on(facts.state("Rpl_semi_sync_source_status"));
  const std::int64_t count = std::max(facts.replicas, leading_number(facts.state("Slaves_connected")));
  if (count == 0) {
    return ok("replicas", "none seen");
  }
  const std::string found = std::to_string(count);
  return waits
             ? ok("replicas", found + ", semi-synchronous")
             : warn("replicas", found + " asynchronous: one that takes over may not have heard of a lock",
                    "turn on semi-synchronous replication with a long time-out; let the resource compare RLOCK_FENCE");
}

Finding galera(const ServerFacts& facts)
{
  const std::int64_t nodes = leading_number(facts.state("wsrep_cluster_size"));
  if (!is_on(facts.setting("wsrep_on")) || nodes <= 1) {
    return ok("galera", "no cluster");
  }
  const std::string found = std::to_string(nodes) + " nodes: ";
  const std::string advice = "name the same node first in each URL, and the others behind it (mysql://a,b/database)";
  const std::int64_t conflicts =
      leading_number(facts.state("wsrep_local_bf_aborts")) + leading_number(facts.state("wsrep_local_cert_failures"));
  return conflicts > 0 ? fail("galera",
                              found + "several are written to, with " + std::to_string(conflicts) +
                                  " conflicts since this one started: a release may be lost",
                              "let all clients write to one node: " + advice)
                       : warn("galera", found + "clients of different nodes do not wake each other", advice);
}

Finding wake_up(const ServerFacts& facts)
{
  return facts.is_woken ? ok("messages", "a connection that listens is woken by KILL QUERY")
                        : warn("messages", "KILL QUERY wakes no connection: a waiter learns late that it has a lock",
                               "connect to the server itself, not by a proxy");
}

Finding connections(const ServerFacts& facts)
{
  return record::connections_finding(leading_number(facts.state("Threads_connected")),
                                     leading_number(facts.setting("max_connections")),
                                     "raise max_connections: each holder and each waiter has two connections");
}

Finding encryption(const ServerFacts& facts)
{
  return record::encryption_finding(!facts.state("Ssl_cipher").empty(), facts.is_on_this_host,
                                    "give the server a certificate, and leave ssl-mode to rlock (verify_identity)");
}

Finding clocks(const ServerFacts& facts)
{
  return record::clock_finding(facts.ahead_ms, facts.unsure_ms,
                               "have NTP keep both; setting it forward would end leases early");
}

// Waits on a connection of its own, as a waiter does, for a named lock that `connection` has. Not by SLEEP: KILL may let those of
// other clients stand still (mysql_listener.h).
bool is_woken(Connection& connection, const ConnectionSpec& spec, const Clock& clock, const CallLimits& limit)
{
  Connection waiter(spec, clock);
  const std::string name = "'rlock_doctor'";
  const auto own = waiter.ask("select get_lock(concat(" + name + ", connection_id()), 0), connection_id()", limit);
  if (!own || own->front().empty()) {
    return false;
  }
  const std::string number = own->front()[0][1].value_or("0");
  const std::string taken = "concat(" + name + ", '_taken', " + number + ")";
  if (!connection.ask("select get_lock(" + taken + ", 0)", limit)) {
    return false;
  }
  waiter.send("select get_lock(" + taken + ", " + std::to_string(longest_wait.count() / 1000) + ")");
  const Instant start = clock.now();
  const std::string kill = "kill query is_used_lock(concat(" + name + ", " + number + "))";
  bool is_killed = false;
  while (!is_killed && clock.now() < start + longest_wait / 2) {  // a KILL before the wait does nothing
    if (!connection.ask(kill, limit)) {
      break;
    }
    const auto ended = waiter.receive({std::min(limit.deadline, clock.now() + Millis(20)), limit.stop});
    if (!ended && waiter.refusal() != Refusal::killed) {
      break;
    }
    is_killed = !ended || *ended;
  }
  [[maybe_unused]] const auto given_back = connection.ask("select release_lock(" + taken + ")", limit);
  return is_killed;
}

std::map<std::string, std::string, std::less<>> pairs_of(const Rows& rows)
{
  std::map<std::string, std::string, std::less<>> all;
  for (const Row& row : rows) {
    all[row[0].value_or("")] = row[1].value_or("");
  }
  return all;
}

std::string_view value_of(const std::map<std::string, std::string, std::less<>>& all, std::string_view name)
{
  const auto found = all.find(name);
  return found == all.end() ? std::string_view() : std::string_view(found->second);
}

ServerFacts facts_in(const Answer& answer, const Tables& tables)
{
  ServerFacts facts;
  facts.settings = pairs_of(answer[settings_set]);
  facts.status = pairs_of(answer[status_set]);
  facts.status.merge(pairs_of(answer[session_set]));
  facts.tables = pairs_of(answer[tables_set]);
  facts.layout = layout_in(answer, tables, columns_set);
  facts.are_shared = tables.are_shared;
  const Row& self = answer[self_set].front();
  facts.database = self[1].value_or("");
  facts.replicas = leading_number(self[2].value_or(""));
  return facts;
}

}  // namespace

// A session takes a time in summer and one in winter as they are.
const std::string columns_sql =
    "select column_name, column_type, collation_name from information_schema.columns where table_schema = {schema} and "
    "table_name = {lock_name};"
    "select convert_tz('2026-01-01', '+00:00', @@global.time_zone) = '2026-01-01' and "
    "convert_tz('2026-07-01', '+00:00', @@global.time_zone) = '2026-07-01'";

TableLayout layout_in(const Answer& answer, const Tables& tables, std::size_t first_set)
{
  TableLayout layout{.name = tables.lock, .columns = {}, .is_zone_utc = false};
  for (const Row& row : answer[first_set]) {
    layout.columns[row[0].value_or("")] = {.type = row[1].value_or(""), .collation = row[2].value_or("")};
  }
  const Rows& zone = answer[first_set + 1];
  layout.is_zone_utc = !zone.empty() && zone[0][0] == "1";
  return layout;
}

std::size_t longest_name_in(const TableLayout& layout)
{
  const auto name = layout.columns.find("name");
  const std::string_view type = name == layout.columns.end() ? std::string_view() : std::string_view(name->second.type);
  return static_cast<std::size_t>(leading_number(type.substr(std::min(type.find('(') + 1, type.size()))));
}

// A hold ends in milliseconds, by UTC. A TIMESTAMP is stored as the session's time zone reads it, and ShedLock writes UTC in the
// time zone that the server gives it.
Finding shared_columns(const TableLayout& layout)
{
  const auto type_of = [&](std::string_view name) {
    const auto found = layout.columns.find(name);
    return found == layout.columns.end() ? std::string("not there") : found->second.type;
  };
  for (const std::string_view name : {"name", "locked_by"}) {
    if (!type_of(name).starts_with("varchar(")) {
      return fail("columns", layout.name + "." + std::string(name) + " is " + type_of(name) + ", not varchar",
                  "name the table of ShedLock, as its documentation makes it");
    }
  }
  for (const std::string_view name : {"lock_until", "locked_at"}) {
    const std::string type = type_of(name);
    const std::string found = (layout.name + ".").append(name).append(" is ").append(type);
    const std::string change =
        "run: alter table " + layout.name + " modify " + std::string(name) + " datetime(3) not null";
    const auto digits = leading_number(std::string_view(type).substr(std::min(type.find('(') + 1, type.size())));
    const bool is_timestamp = type.starts_with("timestamp");
    if ((!is_timestamp && !type.starts_with("datetime")) || digits < 3) {
      return fail("columns", found + ", which has no milliseconds", change);
    }
    if (is_timestamp && !layout.is_zone_utc) {
      return fail("columns",
                  found +
                      ", whose meaning depends on the time zone of a session, and the "
                      "server's is not UTC",
                  change + ", while no lock is held, or set time_zone = '+00:00' at the server");
    }
  }
  return ok("columns", "those of ShedLock, with milliseconds");
}

std::string_view ServerFacts::setting(std::string_view name) const { return value_of(settings, name); }

std::string_view ServerFacts::state(std::string_view name) const { return value_of(status, name); }

std::vector<Finding> findings_of(const ServerFacts& facts)
{
  return record::findings_by(facts, version, tables_are_there, columns, persistence, binlog, replicas, galera, wake_up,
                             connections, encryption, clocks);
}

Result<std::vector<Finding>> check_server(Connection& connection, const ConnectionSpec& spec, const Tables& tables,
                                          const Clock& clock, const CallLimits& limit)
{
  RETURN_IF_ERROR(connection.ask("select 1", limit));
  const std::int64_t before = wall_clock_ms();
  const auto answer = connection.ask(facts_sql + columns_sql, limit);
  const std::int64_t after = wall_clock_ms();
  if (!answer) {
    return answer.error();
  }
  if (answer->size() != set_count || (*answer)[self_set].empty()) {
    return Error{ErrorCode::internal, connection.where() + " did not answer all questions (is it MySQL?)"};
  }
  ServerFacts facts = facts_in(*answer, tables);
  facts.version = connection.version();
  facts.creates_tables = spec.creates_tables;
  facts.is_on_this_host = std::ranges::all_of(spec.hosts, [](const HostPort& each) { return is_this_host(each.host); });
  facts.ahead_ms = leading_number((*answer)[self_set].front()[0].value_or("")) - before;
  facts.unsure_ms = after - before;
  facts.is_woken = is_woken(connection, spec, clock, limit);
  return findings_of(facts);
}

}  // namespace rlock::mysql
