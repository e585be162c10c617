// SPDX-License-Identifier: Apache-2.0
// What the doctor says of a MySQL or MariaDB server, on facts that few servers show, and the SQL for its administrator.
#include "stores/mysql/mysql_checks.h"
#include "stores/mysql/mysql_schema.h"

#include "support/findings.h"
#include "support/test.h"

#include <functional>

using namespace rlock::test;
using namespace rlock::mysql;

namespace {

ServerFacts good()
{
  ServerFacts facts;
  facts.settings = {{"innodb_flush_log_at_trx_commit", "1"},
                    {"sync_binlog", "1"},
                    {"log_bin", "ON"},
                    {"binlog_format", "ROW"},
                    {"max_connections", "100"},
                    {"innodb_doublewrite", "ON"}};
  facts.status = {{"Threads_connected", "7"}, {"Ssl_cipher", "TLS_AES_256_GCM_SHA384"}};
  facts.tables = {
      {"rlock_lock", "InnoDB"}, {"rlock_event", "InnoDB"}, {"rlock_listener", "InnoDB"}, {"rlock_message", "InnoDB"}};
  facts.layout.columns = {{"name", {"varchar(255)", "utf8mb4_bin"}},
                          {"lock_until", {"datetime(6)", ""}},
                          {"forget_at", {"datetime(6)", ""}}};
  facts.version = "10.11.6-MariaDB";
  facts.database = "app";
  facts.is_on_this_host = false;
  return facts;
}

}  // namespace

TEST_CASE("mysql doctor: a good server has no finding but ok") { check_all_ok(findings_of(good())); }

TEST_CASE("mysql doctor: what makes a server unfit, each by its own check")
{
  struct Row {
    const char* what;
    std::function<void(ServerFacts&)> change;
    std::string_view check;
    CheckStatus status;
  };
  const std::vector<Row> rows{
      {"flush", [](ServerFacts& facts) { facts.settings["innodb_flush_log_at_trx_commit"] = "2"; }, "persistence",
       CheckStatus::fail},
      {"sync", [](ServerFacts& facts) { facts.settings["sync_binlog"] = "0"; }, "persistence", CheckStatus::fail},
      {"sync without log",
       [](ServerFacts& facts) {
         facts.settings["sync_binlog"] = "0";
         facts.settings["log_bin"] = "OFF";
       },
       "persistence", CheckStatus::ok},
      {"format", [](ServerFacts& facts) { facts.settings["binlog_format"] = "STATEMENT"; }, "binlog",
       CheckStatus::fail},
      {"replica", [](ServerFacts& facts) { facts.status["Slaves_connected"] = "1"; }, "replicas", CheckStatus::warn},
      {"dump thread", [](ServerFacts& facts) { facts.replicas = 2; }, "replicas", CheckStatus::warn},
      {"semi-synchronous",
       [](ServerFacts& facts) {
         facts.replicas = 1;
         facts.status["Rpl_semi_sync_source_status"] = "ON";
       },
       "replicas", CheckStatus::ok},
      {"galera",
       [](ServerFacts& facts) {
         facts.settings["wsrep_on"] = "ON";
         facts.status["wsrep_cluster_size"] = "3";
       },
       "galera", CheckStatus::warn},
      {"galera, alone",
       [](ServerFacts& facts) {
         facts.settings["wsrep_on"] = "ON";
         facts.status["wsrep_cluster_size"] = "1";
       },
       "galera", CheckStatus::ok},
      {"galera, with writers on several nodes",
       [](ServerFacts& facts) {
         facts.settings["wsrep_on"] = "ON";
         facts.status["wsrep_cluster_size"] = "3";
         facts.status["wsrep_local_bf_aborts"] = "2";
       },
       "galera", CheckStatus::fail},
      {"galera, with commits that another node has refused",
       [](ServerFacts& facts) {
         facts.settings["wsrep_on"] = "ON";
         facts.status["wsrep_cluster_size"] = "2";
         facts.status["wsrep_local_cert_failures"] = "1";
       },
       "galera", CheckStatus::fail},
      {"doublewrite", [](ServerFacts& facts) { facts.settings["innodb_doublewrite"] = "OFF"; }, "persistence",
       CheckStatus::warn},
      {"doublewrite that detects only",
       [](ServerFacts& facts) { facts.settings["innodb_doublewrite"] = "DETECT_ONLY"; }, "persistence",
       CheckStatus::warn},
      {"doublewrite, fast", [](ServerFacts& facts) { facts.settings["innodb_doublewrite"] = "fast"; }, "persistence",
       CheckStatus::ok},
      {"proxy", [](ServerFacts& facts) { facts.is_woken = false; }, "messages", CheckStatus::warn},
      {"full", [](ServerFacts& facts) { facts.status["Threads_connected"] = "80"; }, "connections", CheckStatus::warn},
      {"plain", [](ServerFacts& facts) { facts.status["Ssl_cipher"] = ""; }, "encryption", CheckStatus::warn},
      {"late", [](ServerFacts& facts) { facts.ahead_ms = -5000; }, "clock", CheckStatus::warn},
      {"late answer",
       [](ServerFacts& facts) {
         facts.ahead_ms = -5000;
         facts.unsure_ms = 4500;
       },
       "clock", CheckStatus::ok},
      {"engine", [](ServerFacts& facts) { facts.tables["rlock_event"] = "MyISAM"; }, "tables", CheckStatus::fail},
      {"collation", [](ServerFacts& facts) { facts.layout.columns["name"].collation = "utf8mb4_general_ci"; },
       "columns", CheckStatus::fail},
      {"type", [](ServerFacts& facts) { facts.layout.columns["lock_until"].type = "timestamp(6)"; }, "columns",
       CheckStatus::fail},
      {"column", [](ServerFacts& facts) { facts.layout.columns.erase("lock_until"); }, "columns", CheckStatus::fail},
  };
  for (const Row& row : rows) {
    ServerFacts facts = good();
    row.change(facts);
    for (const Finding& each : findings_of(facts)) {
      CAPTURE(row.what);
      CAPTURE(each.check);
      CHECK(each.status == (each.check == row.check ? row.status : CheckStatus::ok));
      CHECK(each.advice.empty() == (each.status == CheckStatus::ok));
    }
  }
}

TEST_CASE("mysql doctor: facts that depend on each other")
{
  ServerFacts here = good();
  here.status.erase("Ssl_cipher");
  here.is_on_this_host = true;
  CHECK(finding(here, "encryption").status == CheckStatus::ok);

  ServerFacts none = good();
  none.tables.clear();
  none.layout.columns.clear();
  CHECK(finding(none, "tables").status == CheckStatus::ok);
  CHECK(finding(none, "columns").status == CheckStatus::unknown);
  none.creates_tables = false;
  CHECK(finding(none, "tables").status == CheckStatus::fail);

  ServerFacts oracle = good();
  oracle.version = "8.0.33";
  CHECK(finding(oracle, "version").found == "MySQL 8.0.33");
}

TEST_CASE("mysql doctor: a table of ShedLock, as its documentation makes it, and what makes one unfit")
{
  ServerFacts facts = good();
  facts.are_shared = true;
  facts.layout = {.name = "`shedlock`",
                  .columns = {{"name", {"varchar(64)", "utf8mb4_general_ci"}},
                              {"lock_until", {"timestamp(3)", ""}},
                              {"locked_at", {"timestamp(3)", ""}},
                              {"locked_by", {"varchar(255)", "utf8mb4_general_ci"}},
                              {"rlock_version", {"bigint(20)", ""}}},
                  .is_zone_utc = true};
  CHECK(finding(facts, "columns").status == CheckStatus::ok);
  CHECK(longest_name_in(facts.layout) == 64);

  ServerFacts elsewhere = facts;
  elsewhere.layout.is_zone_utc = false;
  CHECK(has(finding(elsewhere, "columns").found, "depends on the time zone"));
  elsewhere.layout.columns["lock_until"].type = elsewhere.layout.columns["locked_at"].type = "datetime(3)";
  CHECK(finding(elsewhere, "columns").status == CheckStatus::ok);

  const std::vector<std::pair<const char*, const char*>> unfit{
      {"lock_until", "timestamp"},  {"lock_until", "datetime"}, {"locked_at", "datetime(2)"},
      {"lock_until", "bigint(20)"}, {"name", "text"},           {"locked_by", "int(11)"}};
  for (const auto& each : unfit) {
    ServerFacts other = facts;
    other.layout.columns[each.first].type = each.second;
    CAPTURE(std::string(each.second));
    CHECK(finding(other, "columns").status == CheckStatus::fail);
  }

  facts.layout.columns.erase("rlock_version");
  CHECK(finding(facts, "columns").status == CheckStatus::ok);  // the first lock adds it
  facts.creates_tables = false;
  CHECK(finding(facts, "columns").status == CheckStatus::fail);
}

TEST_CASE("mysql acl: the tables that rlock makes itself, and the rights on them for any name")
{
  const std::string sql = rights_sql(tables_for(""), "de'pl\\oy");
  CHECK(sql.starts_with(create_sql(tables_for(""))));
  CHECK(has(sql, "grant select, insert, update, delete on rlock_message to 'de\\'pl\\\\oy'@'%';\n"));
  CHECK(has(rights_sql(tables_for(""), "deploy@10.0.0.%"), "on rlock_lock to 'deploy'@'10.0.0.%';\n"));
}

TEST_CASE("mysql acl: what a table of ShedLock needs")
{
  const std::string sql = rights_sql(tables_for("jobs.shedlock"), "deploy");
  CHECK(has(sql, "on `jobs`.`shedlock` to 'deploy'@'%';\n"));
  CHECK(has(sql, "create table if not exists `jobs`.`shedlock_rlock_message` ("));
  CHECK(has(sql, "alter table `jobs`.`shedlock` add column"));
  CHECK(on_tables("{schema}, {lock_name}, {event_name}", tables_for("jobs.shedlock")) ==
        "'jobs', 'shedlock', 'shedlock_rlock_event'");
  CHECK(on_tables("{schema}, {lock_name}", tables_for("")) == "database(), 'rlock_lock'");
}
