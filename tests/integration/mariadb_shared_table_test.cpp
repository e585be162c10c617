// SPDX-License-Identifier: Apache-2.0
// The table of ShedLock in MariaDB. SQL stands for ShedLock; tests/interop has the real one.
#include "stores/mysql/mysql_backend.h"
#include "support/integration.h"
#include "support/mariadb_fixture.h"
#include "support/shared_table.h"

using namespace rlock::test;

namespace {

constexpr const char* shedlock_table =
    "create table shedlock(name varchar(64) not null, lock_until timestamp(3) not null, locked_at timestamp(3) not "
    "null "
    "default current_timestamp(3), locked_by varchar(255) not null, primary key (name))";

// With the table as ShedLock's documentation makes it.
struct Shared {
  MariadbServer server;
  std::string url = server.url("", "table=shedlock");

  explicit Shared(const std::vector<std::string>& settings = {}, const char* table = shedlock_table) : server(settings)
  {
    CHECK(server.sql(table).empty());
  }
  void add_columns() const
  {
    const Finished printed = run_rlock({"acl", "-S", url, "--user", "root@localhost"});
    REQUIRE(printed.code == 0);
    [[maybe_unused]] const std::string added = server.sql(printed.out);
  }
  [[nodiscard]] Finished run(Words words) const
  {
    words.insert(words.begin() + 1, {"-S", url});
    return run_rlock(words);
  }
  // As ShedLock does with usingDbTime().
  void lock(const std::string& name, int seconds) const
  {
    const std::string end = "timestampadd(second, " + std::to_string(seconds) + ", utc_timestamp(3))";
    CHECK(server
              .sql("insert ignore into shedlock (name, lock_until, locked_at, locked_by) values ('" + name + "', " +
                   end + ", utc_timestamp(3), 'java'); update shedlock set lock_until = " + end +
                   ", locked_at = utc_timestamp(3), locked_by = 'java' where name = '" + name +
                   "' and lock_until <= utc_timestamp(3)")
              .empty());
  }
  void unlock(const std::string& name) const
  {
    CHECK(server.sql("update shedlock set lock_until = utc_timestamp(3) where name = '" + name + "'").empty());
  }
  [[nodiscard]] std::string held(const std::string& name) const
  {
    return server.sql("select lock_until > utc_timestamp(3), locked_by = 'java' from shedlock where name = '" + name +
                      "'");
  }
  void wait_for_holder(const std::string& name) const
  {
    wait_until([&] { return held(name) == "1\t0\n"; }, "the lock is held");
  }
};

Words try_lock(const std::string& key) { return {"run", "-n", "-k", key, "--", "true"}; }

std::string column_count(const MariadbServer& server)
{
  return server.sql("select count(*) from information_schema.columns where table_name = 'shedlock'");
}

}  // namespace

TEST_CASE("mariadb shared table: without rlock's columns it is 78, and what acl prints adds them, twice too")
{
  const Shared shared;
  const Finished refused = shared.run(try_lock("k"));
  CHECK(refused.code == 78);
  CHECK_MESSAGE(has(refused.err, "run what rlock acl prints"), refused.err);
  CHECK(has(shared.run({"doctor"}).out, "has no columns of rlock"));
  const Finished listed = shared.run({"list"});
  CHECK(listed.code == 78);
  CHECK_MESSAGE(has(listed.err, "run what rlock acl prints"), listed.err);
  CHECK(column_count(shared.server) == "4\n");
  shared.add_columns();
  if (!MariadbServer::is_mysql()) {  // which has no IF NOT EXISTS for a column; it is the last statement
    shared.add_columns();
  }
  CHECK(shared.run(try_lock("k")).code == 0);
  const Finished doctor = shared.run({"doctor"});
  CHECK_MESSAGE(doctor.code == 0, doctor.out);
}

TEST_CASE("mariadb shared table: create=yes makes the table, or the columns in one that is there")
{
  const MariadbServer server;
  const std::string url = server.url("", "table=shedlock&create=yes");
  CHECK(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}).code == 0);
  CHECK(column_count(server) == "6\n");
  const std::string other = server.url("", "table=app.other&create=yes");
  CHECK(
      server.sql("create table other like shedlock; alter table other drop rlock_version, drop rlock_record").empty());
  CHECK(run_rlock({"run", "-S", other, "-k", "k", "--", "true"}).code == 0);
  CHECK(run_rlock({"run", "-S", server.url("", "table=a;b"), "-k", "k", "--", "true"}).code == 64);
}

TEST_CASE("mariadb shared table: the face says who holds the lock, in both directions")
{
  const Shared shared;
  shared.add_columns();
  shared.lock("java", 60);
  const Finished busy = shared.run(try_lock("java"));
  CHECK(busy.code == 75);
  CHECK_MESSAGE(has(busy.err, "held by java"), busy.err);
  CHECK(has(shared.run({"list", "--json"}).out, R"("key":"java","held":true)"));

  Process holder = start_rlock({"run", "-S", shared.url, "-k", "mine", "--", "sleep", "60"});
  shared.wait_for_holder("mine");
  shared.lock("mine", 60);
  CHECK(shared.held("mine") == "1\t0\n");
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(shared.held("mine") == "0\t0\n");

  shared.lock("mine", 2);
  CHECK(shared.run(try_lock("mine")).code == 75);
  CHECK(shared.run({"run", "-w", "20s", "-k", "mine", "--", "true"}).code == 0);
}

TEST_CASE("mariadb shared table: a waiter keeps the face of ShedLock as it is, and comes after its unlock")
{
  // So MariaDB before 10.10 and MySQL 5.7 make lock_until with ON UPDATE CURRENT_TIMESTAMP.
  const Shared shared({"explicit-defaults-for-timestamp=OFF"});
  REQUIRE(has(shared.server.sql("show create table shedlock"), "ON UPDATE"));
  shared.add_columns();
  shared.lock("k", 60);
  const std::string before = shared.server.sql("select lock_until, locked_at, locked_by from shedlock");
  Process waiter = start_rlock({"run", "-S", shared.url, "-k", "k", "--", "true"});
  wait_until([&] { return shared.server.sql("select rlock_record > '' from shedlock") == "1\n"; }, "it waits");
  CHECK(shared.server.sql("select lock_until, locked_at, locked_by from shedlock") == before);
  CHECK(shared.server
            .sql("update shedlock set lock_until = utc_timestamp(3) where locked_by = 'java' and lock_until > "
                 "utc_timestamp(3)")
            .empty());
  CHECK(waiter.wait(20s) == success);
}

TEST_CASE("mariadb shared table: a commit that was decided before ShedLock wrote is refused")
{
  const Shared shared;
  shared.add_columns();
  const BootClock clock;
  const auto backend = mysql::open_backend(mysql::connection_spec(*mysql::parse_mysql_url(shared.url)), clock,
                                           std::make_unique<SystemRng>());
  expect_exact_commits(
      *backend, [&](const std::string& name) { shared.lock(name, 60); },
      [&](const std::string& name) { shared.unlock(name); });
}

TEST_CASE("mariadb shared table: an unlock by another program is a loss")
{
  const Shared shared;
  shared.add_columns();
  Process holder = start_rlock({"run", "-S", shared.url, "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  shared.wait_for_holder("k");
  shared.unlock("k");
  CHECK(holder.wait() == exited(121));
  CHECK_MESSAGE(has(holder.err(), "was lost"), holder.err());
}

TEST_CASE("mariadb shared table: other kinds, long keys and names that the collation takes for one are 78")
{
  const Shared shared;
  shared.add_columns();
  CHECK(shared.run({"run", "-s", "-k", "k", "--", "true"}).code == 78);
  CHECK(shared.run({"run", "--permits", "2", "-k", "k", "--", "true"}).code == 78);
  CHECK(shared.run(try_lock(std::string(64, 'k'))).code == 0);
  const Finished too_long = shared.run(try_lock(std::string(65, 'k')));
  CHECK(too_long.code == 78);
  CHECK_MESSAGE(has(too_long.err, "at most 64 characters"), too_long.err);
  shared.lock("Job", 60);
  CHECK(shared.run(try_lock("Job")).code == 75);
  const Finished other_case = shared.run(try_lock("JOB"));
  CHECK(other_case.code == 78);
  CHECK_MESSAGE(has(other_case.err, "takes the lock JOB for the lock Job"), other_case.err);
  CHECK(shared.held("job") == "1\t1\n");
}

TEST_CASE("mariadb shared table: a key that the character set of the table cannot write is 78")
{
  const Shared shared({}, (std::string(shedlock_table) + " charset latin1").c_str());
  shared.add_columns();
  CHECK(shared.run(try_lock("caf\u00e9")).code == 0);
  CHECK(shared.server.sql("select hex(name) from shedlock") == "636166E9\n");
  const Finished refused = shared.run(try_lock("\u043a\u043b\u044e\u0447"));
  CHECK(refused.code == 78);
  CHECK_MESSAGE(has(refused.err, "convert it to utf8mb4"), refused.err);
}

TEST_CASE("mariadb shared table: columns without milliseconds, and TIMESTAMP elsewhere than in UTC, are 78")
{
  const Shared shared({"default-time-zone=+02:00"});
  shared.add_columns();
  const Finished elsewhere = shared.run(try_lock("k"));
  CHECK(elsewhere.code == 78);
  CHECK_MESSAGE(has(elsewhere.err, "modify lock_until datetime(3) not null"), elsewhere.err);
  CHECK(shared.run({"doctor"}).code == 1);
  (void)shared.server.sql(
      "alter table shedlock modify lock_until datetime(3) not null, modify locked_at datetime(3) not null");
  shared.lock("k", 60);
  CHECK(shared.run(try_lock("k")).code == 75);
  (void)shared.server.sql("alter table shedlock modify lock_until datetime not null");
  const Finished rough = shared.run(try_lock("k"));
  CHECK(rough.code == 78);
  CHECK_MESSAGE(has(rough.err, "which has no milliseconds"), rough.err);
}
