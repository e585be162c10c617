// SPDX-License-Identifier: Apache-2.0
// What the doctor says of a PostgreSQL server, on facts that few servers show, and the SQL for its administrator.
#include "stores/postgres/postgres_checks.h"
#include "stores/postgres/postgres_schema.h"

#include "support/findings.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::postgres;

namespace {

ServerFacts good()
{
  ServerFacts facts;
  facts.columns = {"150008", "15.8", "f", "on", "on", "on", "",       "UTF8",   "100",   "7", "0", "0", "0",
                   "t",      "f",    "",  "3",  "3",  "t",  "public", "deploy", "rlock", "0", "",  "f"};
  return facts;
}

ServerFacts with(Column column, const std::string& value)
{
  ServerFacts facts = good();
  facts.columns[column] = value;
  return facts;
}

}  // namespace

TEST_CASE("postgres doctor: a good server has no finding but ok") { check_all_ok(findings_of(good())); }

TEST_CASE("postgres doctor: what makes a server unfit, each by its own check")
{
  struct Row {
    Column column;
    std::string value;
    std::string_view check;
    CheckStatus status;
  };
  const std::vector<Row> rows{
      {version_number, "110022", "version", CheckStatus::fail},
      {in_recovery, "t", "role", CheckStatus::fail},
      {fsync_setting, "off", "persistence", CheckStatus::fail},
      {full_page_writes, "off", "persistence", CheckStatus::fail},
      {synchronous_commit, "off", "persistence", CheckStatus::ok},
      {asynchronous_replicas, "1", "replicas", CheckStatus::warn},
      {hidden_replicas, "1", "replicas", CheckStatus::unknown},
      {encoding, "LATIN1", "encoding", CheckStatus::warn},
      {connections_used, "80", "connections", CheckStatus::warn},
      {uses_tls, "f", "encryption", CheckStatus::warn},
      {tables_permitted, "2", "tables", CheckStatus::fail},
      {tables_there, "0", "tables", CheckStatus::ok},
      {lock_table, "other", "tables", CheckStatus::fail},
      {standby_names, "b", "replicas", CheckStatus::fail},
      {unlogged_table, "rlock_event", "tables", CheckStatus::fail},
      {makes_temporary, "t", "tables", CheckStatus::ok},
  };
  for (const Row& row : rows) {
    const ServerFacts facts = with(row.column, row.value);
    for (const Finding& each : findings_of(facts)) {
      CAPTURE(row.value);
      CAPTURE(each.check);
      CHECK(each.status == (each.check == row.check ? row.status : CheckStatus::ok));
      CHECK(each.advice.empty() == (each.status == CheckStatus::ok));
    }
  }
  CHECK(finding(with(synchronous_commit, "off"), "persistence").found ==
        "fsync is on; synchronous_commit is off, and rlock turns it on for its own commits");
}

TEST_CASE("postgres doctor: facts that depend on each other")
{
  ServerFacts here = with(uses_tls, "f");
  here.columns[is_on_this_host] = "t";
  CHECK(finding(here, "encryption").status == CheckStatus::ok);

  ServerFacts no_rights = with(tables_there, "0");
  no_rights.columns[may_create] = "f";
  CHECK(finding(no_rights, "tables").status == CheckStatus::fail);
  CHECK(has(finding(no_rights, "tables").advice, "rlock acl --user deploy"));
  ServerFacts may_not_create = with(tables_there, "2");
  may_not_create.creates_tables = false;
  CHECK(finding(may_not_create, "tables").status == CheckStatus::fail);
  CHECK(has(finding(with(tables_permitted, "0"), "tables").advice,
            "grant select, insert, update, delete on rlock_lock, rlock_event, rlock_listener to \"deploy\";"));

  ServerFacts local_commits = with(synchronous_commit, "local");
  CHECK(finding(local_commits, "persistence").status == CheckStatus::ok);
  local_commits.columns[standby_names] = "b";
  CHECK(finding(local_commits, "persistence").status == CheckStatus::warn);

  ServerFacts waits = with(standby_names, "ANY 2 (a1, b, c)");
  waits.columns[synchronous_replicas] = "1";
  CHECK(finding(waits, "replicas").found ==
        "synchronous_standby_names names a standby that is not connected: 1 of 2 are, and no commit ends");
  waits.columns[synchronous_replicas] = "2";
  CHECK(finding(waits, "replicas").status == CheckStatus::ok);
  waits.columns[hidden_replicas] = "2";
  waits.columns[synchronous_replicas] = "0";
  CHECK(finding(waits, "replicas").status == CheckStatus::unknown);

  ServerFacts shared = with(lock_table, "other");
  shared.tables = tables_for("jobs.shedlock");
  CHECK(finding(shared, "tables").status == CheckStatus::ok);
  shared.creates_tables = false;
  CHECK(finding(shared, "tables").found == "jobs.shedlock has no columns of rlock");

  ServerFacts pooled = good();
  pooled.is_woken = false;
  CHECK(finding(pooled, "messages").status == CheckStatus::warn);

  ServerFacts late = good();
  late.ahead_ms = -5000;
  CHECK(finding(late, "clock").status == CheckStatus::warn);
  late.unsure_ms = 4500;  // the answer came as late
  CHECK(finding(late, "clock").status == CheckStatus::ok);
}

TEST_CASE("postgres acl: the tables that rlock makes itself, and the rights on them for any name")
{
  const std::string sql = rights_sql(Tables{}, "de\"ploy");
  CHECK(sql.starts_with(create_sql(Tables{})));
  CHECK(sql.ends_with("to \"de\"\"ploy\";\n"));
}
