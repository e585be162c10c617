// SPDX-License-Identifier: Apache-2.0
// The table of ShedLock in PostgreSQL. SQL stands for ShedLock; tests/interop has the real one.
#include "stores/postgres/postgres_backend.h"
#include "support/integration.h"
#include "support/postgres_fixture.h"
#include "support/shared_table.h"

using namespace rlock::test;

namespace {

// With the table as ShedLock's documentation makes it.
struct Shared {
  PostgresServer server;
  std::string url = server.url("postgres", "table=shedlock");

  Shared()
  {
    [[maybe_unused]] const std::string made = server.sql(
        "create table shedlock(name varchar(64) not null, lock_until timestamp not null, locked_at timestamp not null, "
        "locked_by varchar(255) not null, primary key (name))");
  }
  void add_columns() const
  {
    const Finished printed = run_rlock({"acl", "-S", url, "--user", "postgres"});
    REQUIRE(printed.code == 0);
    [[maybe_unused]] const std::string added = server.sql(printed.out);
  }
  [[nodiscard]] Finished run(Words words) const
  {
    words.insert(words.begin() + 1, {"-S", url});
    return run_rlock(words);
  }
  // As ShedLock does with usingDbTime().
  void lock(const std::string& name, const std::string& time) const
  {
    [[maybe_unused]] const std::string done = server.sql(
        "insert into shedlock values ('" + name + "', timezone('utc', now()) + interval '" + time +
        "', timezone('utc', now()), 'java') on conflict (name) do update set lock_until = excluded.lock_until, "
        "locked_at = excluded.locked_at, locked_by = 'java' where shedlock.lock_until <= timezone('utc', now())");
  }
  void unlock(const std::string& name) const
  {
    CHECK(server.sql("update shedlock set lock_until = timezone('utc', now()) where name = '" + name + "'").empty());
  }
};

Words try_lock(const std::string& key) { return {"run", "-n", "-k", key, "--", "true"}; }

}  // namespace

TEST_CASE("postgres shared table: without rlock's columns it is 78, and what acl prints adds them")
{
  const Shared shared;
  const Finished refused = shared.run(try_lock("k"));
  CHECK(refused.code == 78);
  CHECK_MESSAGE(has(refused.err, "run what rlock acl prints"), refused.err);
  const Finished listed = shared.run({"list"});
  CHECK(listed.code == 78);
  CHECK_MESSAGE(has(listed.err, "run what rlock acl prints"), listed.err);
  CHECK(shared.run({"list", "-o", "prometheus"}).code == 78);
  CHECK_MESSAGE(has(shared.run({"doctor"}).out, "shedlock has no columns of rlock"), shared.run({"doctor"}).out);
  CHECK(shared.server.sql("select count(*) from information_schema.columns where table_name = 'shedlock'") == "4\n");
  shared.add_columns();
  CHECK(shared.run(try_lock("k")).code == 0);
  CHECK(shared.run({"doctor"}).code == 0);
}

TEST_CASE("postgres shared table: create=yes makes the table and the columns")
{
  const PostgresServer server;
  const std::string url = server.url("postgres", "table=shedlock&create=yes");
  CHECK(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}).code == 0);
  CHECK(server.sql("select count(*) from information_schema.columns where table_name = 'shedlock'") == "6\n");
  CHECK(run_rlock({"run", "-S", server.url("postgres", "table=a;b"), "-k", "k", "--", "true"}).code == 64);
}

TEST_CASE("postgres shared table: the face says who holds the lock, in both directions")
{
  const Shared shared;
  shared.add_columns();
  shared.lock("java", "1 minute");
  const Finished busy = shared.run(try_lock("java"));
  CHECK(busy.code == 75);
  CHECK_MESSAGE(has(busy.err, "held by java"), busy.err);
  const Finished status = shared.run({"status", "java"});
  CHECK_MESSAGE(has(status.out, "java: held by java (ShedLock)\n"), status.out);
  const Finished listed = shared.run({"list"});
  CHECK_MESSAGE(has(listed.out, "java"), listed.out);
  CHECK(has(shared.run({"list", "--json"}).out, R"("key":"java","held":true)"));

  const Finished holds = shared.run({"run", "-k", "mine", "--", "psql", "-X", "-A", "-t", "-c",
                                     "select lock_until > timezone('utc', now()), locked_by <> 'java' from shedlock "
                                     "where name = 'mine'",
                                     shared.server.url()});
  CHECK_MESSAGE(holds.out == "t|t\n", holds.err);
  CHECK(shared.server.sql("select lock_until <= timezone('utc', now()) from shedlock where name = 'mine'") == "t\n");

  shared.lock("mine", "1 second");
  CHECK(shared.run(try_lock("mine")).code == 75);
  CHECK(shared.run({"run", "-w", "20s", "-k", "mine", "--", "true"}).code == 0);
}

TEST_CASE("postgres shared table: a waiter keeps the face of ShedLock as it is, and comes after its unlock")
{
  const Shared shared;
  shared.add_columns();
  shared.lock("k", "1 minute");
  Process waiter = start_rlock({"run", "-S", shared.url, "-k", "k", "--", "true"});
  wait_until([&] { return shared.server.sql("select rlock_record is not null from shedlock") == "t\n"; }, "it waits");
  CHECK(shared.server.sql("update shedlock set lock_until = timezone('utc', now()) where locked_by = 'java' and "
                          "lock_until > timezone('utc', now()) returning name") == "k\n");
  CHECK(waiter.wait(20s) == success);
}

TEST_CASE("postgres shared table: a commit that was decided before ShedLock wrote is refused")
{
  const Shared shared;
  shared.add_columns();
  const BootClock clock;
  const auto backend = postgres::open_backend(postgres::connection_spec(*postgres::parse_postgres_url(shared.url)),
                                              clock, std::make_unique<SystemRng>());
  expect_exact_commits(
      *backend, [&](const std::string& name) { shared.lock(name, "1 minute"); },
      [&](const std::string& name) { shared.unlock(name); });
}

TEST_CASE("postgres shared table: an unlock by another program is a loss")
{
  const Shared shared;
  shared.add_columns();
  Process holder = start_rlock({"run", "-S", shared.url, "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  wait_until(
      [&] {
        return shared.server.sql("select count(*) from shedlock where lock_until > timezone('utc', now())") == "1\n";
      },
      "the lock is held");
  shared.unlock("k");
  CHECK(holder.wait() == exited(121));
  CHECK_MESSAGE(has(holder.err(), "was lost"), holder.err());
}

TEST_CASE("postgres shared table: a column that keeps no milliseconds is 78, also for the first lock")
{
  const Shared shared;
  shared.add_columns();
  for (const char* type : {"timestamp(0)", "timestamp(2)", "date"}) {
    CAPTURE(std::string(type));
    (void)shared.server.sql("delete from shedlock; alter table shedlock alter lock_until type " + std::string(type));
    const Finished refused = shared.run(try_lock("k"));
    CHECK(refused.code == 78);
    CHECK_MESSAGE(has(refused.err, "lock_until"), refused.err);
    CHECK(shared.server.sql("select count(*) from shedlock") == "0\n");
  }
  for (const char* type : {"timestamp(3)", "timestamp(6)", "timestamp"}) {
    CAPTURE(std::string(type));
    (void)shared.server.sql("alter table shedlock alter lock_until type " + std::string(type) +
                            " using timezone('utc', now())");
    const Finished granted = shared.run(try_lock("k"));
    CHECK_MESSAGE(granted.code == 0, granted.err);
    CHECK(shared.run(try_lock("k")).code == 0);
  }
}

TEST_CASE("postgres shared table: doctor names the schema of the table")
{
  const PostgresServer server;
  (void)server.sql("create schema jobs");
  const std::string url = server.url("postgres", "table=jobs.shedlock&create=yes");
  const Finished before = run_rlock({"doctor", "-S", url});
  CHECK_MESSAGE(has(before.out, "the first lock makes them, in the schema jobs"), before.out);
  CHECK(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}).code == 0);
  const Finished after = run_rlock({"doctor", "-S", url});
  CHECK(after.code == 0);
  CHECK_MESSAGE(has(after.out, "they are there, in the schema jobs"), after.out);
}

TEST_CASE("postgres shared table: other kinds, long keys and other columns are 78")
{
  const Shared shared;
  shared.add_columns();
  CHECK(shared.run({"run", "-s", "-k", "k", "--", "true"}).code == 78);
  CHECK(shared.run({"run", "--permits", "2", "-k", "k", "--", "true"}).code == 78);
  CHECK(shared.run(try_lock(std::string(64, 'k'))).code == 0);
  const Finished too_long = shared.run(try_lock(std::string(65, 'k')));
  CHECK(too_long.code == 78);
  CHECK_MESSAGE(has(too_long.err, "longer than its column"), too_long.err);
  CHECK(shared.server.sql("alter table shedlock alter lock_until type timestamptz").empty());
  CHECK(shared.run(try_lock(std::string(64, 'k'))).code == 78);
}
