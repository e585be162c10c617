// SPDX-License-Identifier: Apache-2.0
#include "store/mysql/mysql_checks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include "base/duration.h"
#include "base/text.h"
#include "net/url_parts.h"
#include "store/mysql/mysql_connection.h"
#include "store/mysql/mysql_schema.h"
#include "store/record/server_findings.h"

namespace rlock::mysql {
namespace {

// Each user may ask all of it. Answers, in this order, of the statements of facts_sql.
enum FactSet : std::uint8_t { settings_set, status_set, session_set, tables_set, columns_set, self_set, set_count };
constexpr const char* facts_sql = R"(
show global variables where variable_name in ('innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'binlog_format',
  'max_connections', 'wsrep_on', 'innodb_doublewrite');
show global status where variable_name in ('Threads_connected', 'Slaves_connected', 'wsrep_cluster_size',
  'Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status');
show session status where variable_name = 'Ssl_cipher';
select table_name, engine from information_schema.tables where table_schema = database() and table_name in
  ('rlock_lock', 'rlock_event', 'rlock_listener', 'rlock_message');
select column_name, column_type, collation_name from information_schema.columns where table_schema = database() and
  table_name = 'rlock_lock';
select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) div 1000, database(),
  (select count(*) from information_schema.processlist where command like 'Binlog Dump%'))";

constexpr Millis longest_sleep{1000};

using record::fail;
using record::ok;
using record::warn;

std::int64_t number_of(std::string_view digits)
{
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool is_on(std::string_view value) { return value == "ON" || value == "1"; }

// A server that is too old or read-only is refused before it is checked.
Finding version(const ServerFacts& facts)
{
  const bool is_mariadb = facts.version.find("MariaDB") != std::string::npos;
  return ok("version", (is_mariadb ? "" : "MySQL ") + printable(facts.version));
}

Finding tables_are_there(const ServerFacts& facts)
{
  if (facts.tables.size() != tables.size()) {
    return facts.creates_tables ? ok("tables", "the first lock makes them, in the database " + facts.database)
                                : fail("tables", "they are not there, and create=no forbids to make them",
                                       "run what rlock acl prints, or leave out create=no once");
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
  if (facts.columns.empty()) {
    return {"columns", CheckStatus::unknown, "there is no table yet", {}};
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> types{
      {{"name", "varchar(255)"}, {"lock_until", "datetime(6)"}, {"forget_at", "datetime(6)"}}};
  for (const auto& [name, type] : types) {
    const auto found = facts.columns.find(name);
    if (found == facts.columns.end() || found->second.type != type) {
      return fail("columns",
                  "rlock_lock." + std::string(name) + " is " +
                      (found == facts.columns.end() ? "not there" : found->second.type) + ", not " + std::string(type),
                  "compare the tables with those that rlock acl prints");
    }
  }
  const std::string& collation = facts.columns.find("name")->second.collation;
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
  const std::int64_t count = std::max(facts.replicas, number_of(facts.state("Slaves_connected")));
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
  const std::int64_t nodes = number_of(facts.state("wsrep_cluster_size"));
  return is_on(facts.setting("wsrep_on")) && nodes > 1
             ? warn("galera", std::to_string(nodes) + " nodes: clients of different nodes do not wake each other",
                    "name the same node first in each URL, and the others behind it (mysql://a,b/database)")
             : ok("galera", "no cluster");
}

Finding wake_up(const ServerFacts& facts)
{
  return facts.is_woken ? ok("messages", "a connection that listens is woken by KILL QUERY")
                        : warn("messages", "KILL QUERY wakes no connection: a waiter learns late that it has a lock",
                               "connect to the server itself, not by a proxy");
}

Finding connections(const ServerFacts& facts)
{
  const std::int64_t used = number_of(facts.state("Threads_connected"));
  const std::int64_t most = number_of(facts.setting("max_connections"));
  const std::string found = std::to_string(used) + " of " + std::to_string(most);
  return used * 5 >= most * 4 ? warn("connections", found, "raise max_connections: each waiter has two connections")
                              : ok("connections", found);
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

// Sleeps on a connection of its own, as a waiter does.
bool is_woken(Connection& connection, const ConnectionSpec& spec, const Clock& clock, const CallLimits& limit)
{
  Connection sleeper(spec, clock);
  const std::string name = "'rlock_doctor'";
  const auto own = sleeper.ask("select get_lock(concat(" + name + ", connection_id()), 0), connection_id()", limit);
  if (!own || own->front().empty()) {
    return false;
  }
  const std::string number = own->front()[0][1].value_or("0");
  sleeper.send("select sleep(" + std::to_string(longest_sleep.count() / 1000) + ")");
  const Instant start = clock.now();
  const std::string kill = "kill query is_used_lock(concat(" + name + ", " + number + "))";
  for (Instant until = start + longest_sleep / 2; clock.now() < until;) {  // a KILL before the SLEEP does nothing
    if (!connection.ask(kill, limit)) {
      return false;
    }
    const auto ended = sleeper.receive({std::min(limit.deadline, clock.now() + Millis(20)), limit.stop});
    if (!ended || *ended) {
      return true;
    }
  }
  return false;
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

ServerFacts facts_in(const Answer& answer)
{
  ServerFacts facts;
  facts.settings = pairs_of(answer[settings_set]);
  facts.status = pairs_of(answer[status_set]);
  facts.status.merge(pairs_of(answer[session_set]));
  facts.tables = pairs_of(answer[tables_set]);
  for (const Row& row : answer[columns_set]) {
    facts.columns[row[0].value_or("")] = {.type = row[1].value_or(""), .collation = row[2].value_or("")};
  }
  const Row& self = answer[self_set].front();
  facts.database = self[1].value_or("");
  facts.replicas = number_of(self[2].value_or(""));
  return facts;
}

}  // namespace

std::string_view ServerFacts::setting(std::string_view name) const { return value_of(settings, name); }

std::string_view ServerFacts::state(std::string_view name) const { return value_of(status, name); }

std::vector<Finding> findings_of(const ServerFacts& facts)
{
  std::vector<Finding> findings;
  for (const auto rule : {version, tables_are_there, columns, persistence, binlog, replicas, galera, wake_up,
                          connections, encryption, clocks}) {
    findings.push_back(rule(facts));
  }
  return findings;
}

Result<std::vector<Finding>> check_server(Connection& connection, const ConnectionSpec& spec, const Clock& clock,
                                          const CallLimits& limit)
{
  if (const auto connected = connection.ask("select 1", limit); !connected) {
    return connected.error();
  }
  const std::int64_t before = wall_clock_ms();
  const auto answer = connection.ask(facts_sql, limit);
  const std::int64_t after = wall_clock_ms();
  if (!answer) {
    return answer.error();
  }
  if (answer->size() != set_count || (*answer)[self_set].empty()) {
    return Error{ErrorCode::internal, connection.where() + " did not answer all questions (is it MySQL?)"};
  }
  ServerFacts facts = facts_in(*answer);
  facts.version = connection.version();
  facts.creates_tables = spec.creates_tables;
  facts.is_on_this_host = std::ranges::all_of(spec.hosts, [](const HostPort& each) { return is_this_host(each.host); });
  facts.ahead_ms = number_of((*answer)[self_set].front()[0].value_or("")) - before;
  facts.unsure_ms = after - before;
  facts.is_woken = is_woken(connection, spec, clock, limit);
  return findings_of(facts);
}

}  // namespace rlock::mysql
