// SPDX-License-Identifier: Apache-2.0
// The table or collection of ShedLock. The test writes as ShedLock does; tests/interop has the real one.
#include "support/shared_table.h"
#include "stores/mongo/mongo_backend.h"
#include "stores/mysql/mysql_backend.h"
#include "stores/postgres/postgres_backend.h"
#include "support/databases.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

Words try_lock(const std::string& key) { return {"run", "-n", "-k", key, "--", "true"}; }

// A row of the table, in words.
struct SharedRow {
  bool is_held = false;
  std::string holder = {};
  std::string times = {};  // begin and end
  bool has_record = false;

  [[nodiscard]] bool is_of_rlock() const { return is_held && holder != "java"; }
};

class Shared {
 public:
  virtual ~Shared() = default;
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  [[nodiscard]] virtual std::string url() const = 0;
  [[nodiscard]] virtual std::unique_ptr<record::Backend> open_backend(const Clock& clock) const = 0;
  // As ShedLock does, as `java`: takes the lock if it is free, or ends the hold that is there.
  virtual void lock(const std::string& name, std::chrono::seconds time) const = 0;
  virtual void unlock(const std::string& name) const = 0;
  [[nodiscard]] virtual SharedRow row(const std::string& name) const = 0;

  [[nodiscard]] Finished run(Words words) const { return run_at(url(), std::move(words)); }
  [[nodiscard]] Process start(const Words& options, const Words& job) const
  {
    return start_run(url(), joined({"-k", "k"}, options), job);
  }
  void wait_for_holder(const std::string& name) const
  {
    wait_until([&] { return row(name).is_of_rlock(); }, "the lock is held");
  }

 protected:
  Shared() = default;
};

// A table as ShedLock's documentation makes it, and the columns of rlock where they are wanted.
class SharedSql : public Shared {
 public:
  [[nodiscard]] virtual const SqlServer& server() const = 0;
  [[nodiscard]] virtual std::string url_of(const std::string& parameters) const = 0;
  [[nodiscard]] std::string url() const override { return url_of("table=shedlock"); }
  void add_columns() const
  {
    const Finished printed = succeeded(run({"acl", "--user", m_admin}));
    (void)server().sql(printed.out);
  }
  void unlock(const std::string& name) const override
  {
    CHECK(server().sql("update shedlock set lock_until = " + m_now + " where name = '" + name + "'").empty());
  }
  [[nodiscard]] SharedRow row(const std::string& name) const override
  {
    const std::string where = " from shedlock where name = '" + name + "'";
    const auto is = [&](const std::string& condition) {
      return server().sql("select count(*)" + where + " and " + condition) == "1\n";
    };
    return {.is_held = is("lock_until > " + m_now),
            .holder = is("locked_by = 'java'") ? "java" : server().sql("select locked_by" + where),
            .times = server().sql("select locked_at, " + m_end + where),
            .has_record = is("rlock_record is not null and length(rlock_record) > 0")};
  }
  [[nodiscard]] std::string column_count() const
  {
    return server().sql("select count(*) from information_schema.columns where table_name = 'shedlock'");
  }

 protected:
  // `now`: the time of the server in UTC. `end`: the end of a hold, as exactly as rlock knows it. `admin`: who may do everything.
  SharedSql(std::string now, std::string end, std::string admin)
      : m_now(std::move(now)), m_end(std::move(end)), m_admin(std::move(admin))
  {
  }

  const std::string m_now;

 private:
  const std::string m_end;
  const std::string m_admin;
};

class SharedPostgres final : public SharedSql {
 public:
  explicit SharedPostgres(bool has_columns = true)
      : SharedSql("timezone('utc', now())", "ceil(extract(epoch from lock_until) * 1000)", "postgres")
  {
    CHECK(
        m_server
            .sql("create table shedlock(name varchar(64) not null, lock_until timestamp not null, locked_at timestamp "
                 "not null, locked_by varchar(255) not null, primary key (name))")
            .empty());
    if (has_columns) {
      add_columns();
    }
  }
  [[nodiscard]] const SqlServer& server() const override { return m_server; }
  [[nodiscard]] std::string url_of(const std::string& parameters) const override
  {
    return m_server.url("postgres", parameters);
  }
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override
  {
    return postgres::open_backend(postgres::connection_spec(*postgres::parse_postgres_url(url())), clock,
                                  std::make_unique<SystemRng>());
  }
  void lock(const std::string& name, std::chrono::seconds time) const override
  {
    (void)m_server.sql("insert into shedlock values ('" + name + "', " + m_now + " + interval '" +
                       std::to_string(time.count()) + " s', " + m_now +
                       ", 'java') on conflict (name) do update set lock_until = excluded.lock_until, "
                       "locked_at = excluded.locked_at, locked_by = 'java' where shedlock.lock_until <= " +
                       m_now);
  }

 private:
  PostgresServer m_server;
};

constexpr const char* mariadb_table =
    "create table shedlock(name varchar(64) not null, lock_until timestamp(3) not null, locked_at timestamp(3) not "
    "null default current_timestamp(3), locked_by varchar(255) not null, primary key (name))";

class SharedMariadb final : public SharedSql {
 public:
  explicit SharedMariadb(bool has_columns = true, const std::vector<std::string>& settings = {},
                         const std::string& table = mariadb_table)
      : SharedSql("utc_timestamp(3)", "lock_until", "root@localhost"), m_server(settings)
  {
    CHECK(m_server.sql(table).empty());
    if (has_columns) {
      add_columns();
    }
  }
  [[nodiscard]] const SqlServer& server() const override { return m_server; }
  [[nodiscard]] std::string url_of(const std::string& parameters) const override
  {
    return m_server.url("", parameters);
  }
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override
  {
    return mysql::open_backend(mysql::connection_spec(*mysql::parse_mysql_url(url())), clock,
                               std::make_unique<SystemRng>());
  }
  void lock(const std::string& name, std::chrono::seconds time) const override
  {
    const std::string end = "timestampadd(second, " + std::to_string(time.count()) + ", utc_timestamp(3))";
    CHECK(m_server
              .sql("insert ignore into shedlock (name, lock_until, locked_at, locked_by) values ('" + name + "', " +
                   end + ", utc_timestamp(3), 'java'); update shedlock set lock_until = " + end +
                   ", locked_at = utc_timestamp(3), locked_by = 'java' where name = '" + name +
                   "' and lock_until <= utc_timestamp(3)")
              .empty());
  }

 private:
  MariadbServer m_server;
};

class SharedMongo final : public Shared {
 public:
  [[nodiscard]] const MongoServer& server() const { return m_server; }
  [[nodiscard]] std::string url() const override { return m_server.url("table=shedLock"); }
  [[nodiscard]] std::unique_ptr<record::Backend> open_backend(const Clock& clock) const override
  {
    return mongo::open_backend(mongo::connection_spec(*mongo::parse_mongo_url(url())), clock,
                               std::make_unique<SystemRng>());
  }
  void lock(const std::string& name, std::chrono::seconds time) const override { m_server.shed_lock(name, time); }
  void unlock(const std::string& name) const override { m_server.shed_unlock(name); }
  [[nodiscard]] SharedRow row(const std::string& name) const override
  {
    const auto hold = m_server.shed_hold(name);
    return {.is_held = hold.is_held(),
            .holder = hold.holder,
            .times = std::to_string(hold.since_ms) + " " + std::to_string(hold.until_ms),
            .has_record = hold.has_record};
  }

 private:
  MongoServer m_server;
};

// One test case for each server, whose body gets `shared`.
#define SHARED_CASE(title) SHARED_CASE_NAMED(DOCTEST_ANONYMOUS(shared_case_), title)
#define SHARED_CASE_NAMED(body, title)                                   \
  static void body(const Shared& shared);                                \
  TEST_CASE("postgres shared table: " title) { body(SharedPostgres()); } \
  TEST_CASE("mariadb shared table: " title) { body(SharedMariadb()); }   \
  TEST_CASE("mongo shared collection: " title) { body(SharedMongo()); }  \
  static void body(const Shared& shared)

void waits_for_unlock(const Shared& shared)
{
  shared.lock("k", 60s);
  const SharedRow before = shared.row("k");
  CHECK_FALSE(before.has_record);
  Process waiter = shared.start({}, {"true"});
  wait_until([&] { return shared.row("k").has_record; }, "it waits");
  const SharedRow after = shared.row("k");
  CHECK(after.holder == "java");
  CHECK(after.times == before.times);
  shared.unlock("k");
  CHECK(waiter.wait(20s) == success);
}

void needs_columns(const SharedSql& shared)
{
  for (const Words& words : {try_lock("k"), Words{"list"}}) {
    expect_end(shared.run(words), 78, {err_has("run what rlock acl prints")});
  }
  CHECK(shared.run({"list", "-o", "prometheus"}).code == 78);
  CHECK_MESSAGE(has(shared.run({"doctor"}).out, "has no columns of rlock"), shared.run({"doctor"}).out);
  CHECK(shared.column_count() == "4\n");
  shared.add_columns();
  if (!MariadbServer::is_mysql()) {  // which has no IF NOT EXISTS for a column; it is the last statement
    shared.add_columns();
  }
  CHECK(shared.run(try_lock("k")).code == 0);
  const Finished doctor = shared.run({"doctor"});
  CHECK_MESSAGE(doctor.code == 0, doctor.out);
}

void makes_table(const SharedSql& shared)
{
  (void)shared.server().sql("drop table shedlock");
  const std::string url = shared.url_of("table=shedlock&create=yes");
  CHECK(run_at(url, try_lock("k")).code == 0);
  CHECK(shared.column_count() == "6\n");
  (void)shared.server().sql("alter table shedlock drop rlock_version, drop rlock_record");
  CHECK(run_at(url, try_lock("k")).code == 0);
  CHECK(shared.column_count() == "6\n");
  CHECK(run_at(shared.url_of("table=a;b"), try_lock("k")).code == 64);
}

}  // namespace

SHARED_CASE("the face says who holds the lock, in both directions")
{
  shared.lock("java", 60s);
  expect_end(shared.run(try_lock("java")), 75, {err_has("held by java")});
  const Finished status = shared.run({"status", "java"});
  CHECK_MESSAGE(has(status.out, "java: held by java (ShedLock)\n"), status.out);
  const Finished listed = shared.run({"list"});
  CHECK(listed.code == 0);
  CHECK_MESSAGE(has(listed.out, "java"), listed.out);
  CHECK(has(shared.run({"list", "--json"}).out, R"("key":"java","held":true)"));

  Process holder = shared.start({}, {"sleep", "60"});
  shared.wait_for_holder("k");
  const SharedRow held = shared.row("k");
  CHECK(held.has_record);
  CHECK(held.times.size() > std::string("0 0").size());
  shared.lock("k", 60s);
  CHECK(shared.row("k").is_of_rlock());
  CHECK(shared.row("k").holder == held.holder);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK_FALSE(shared.row("k").is_held);
  CHECK(shared.row("k").holder == held.holder);  // as ShedLock leaves it

  shared.lock("k", 2s);
  CHECK(shared.row("k").holder == "java");
  CHECK(shared.run(try_lock("k")).code == 75);
  CHECK(shared.run({"run", "-w", "20s", "-k", "k", "--", "true"}).code == 0);
}

SHARED_CASE("a commit that was decided before ShedLock wrote is refused")
{
  const BootClock clock;
  expect_exact_commits(
      *shared.open_backend(clock), [&](const std::string& name) { shared.lock(name, 60s); },
      [&](const std::string& name) { shared.unlock(name); });
}

SHARED_CASE("an unlock by another program is a loss")
{
  Process holder = shared.start({"--ttl", "3s"}, {"sleep", "60"});
  shared.wait_for_holder("k");
  shared.unlock("k");
  expect_end(holder, exited(121), {err_has("was lost")});
}

SHARED_CASE("a lock that only rlock has had and waited for is free for ShedLock")
{
  Process holder = shared.start({}, {"sleep", "60"});
  shared.wait_for_holder("k");
  Process waiter = shared.start({}, {"true"});
  wait_until([&] { return has(shared.run({"status", "k"}).out, "waiting"); }, "it waits");
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(waiter.wait() == success);
  shared.lock("k", 60s);
  CHECK(shared.row("k").holder == "java");
  CHECK(shared.run(try_lock("k")).code == 75);
}

SHARED_CASE("other kinds are 78")
{
  CHECK(shared.run({"run", "-s", "-k", "k", "--", "true"}).code == 78);
  CHECK(shared.run({"run", "--permits", "2", "-k", "k", "--", "true"}).code == 78);
}

TEST_CASE("postgres shared table: a waiter keeps the face of ShedLock as it is, and comes after its unlock")
{
  waits_for_unlock(SharedPostgres());
}
TEST_CASE("mongo shared collection: a waiter keeps the face of ShedLock as it is, and comes after its unlock")
{
  waits_for_unlock(SharedMongo());
}
// So MariaDB before 10.10 and MySQL 5.7 make lock_until with ON UPDATE CURRENT_TIMESTAMP.
TEST_CASE("mariadb shared table: a waiter keeps the face of ShedLock as it is, and comes after its unlock")
{
  const SharedMariadb shared(true, {"explicit-defaults-for-timestamp=OFF"});
  REQUIRE(has(shared.server().sql("show create table shedlock"), "ON UPDATE"));
  waits_for_unlock(shared);
}

TEST_CASE("postgres shared table: without rlock's columns it is 78, and what acl prints adds them, twice too")
{
  needs_columns(SharedPostgres(false));
}
TEST_CASE("mariadb shared table: without rlock's columns it is 78, and what acl prints adds them, twice too")
{
  needs_columns(SharedMariadb(false));
}
TEST_CASE("postgres shared table: create=yes makes the table, or the columns in one that is there")
{
  makes_table(SharedPostgres(false));
}
TEST_CASE("mariadb shared table: create=yes makes the table, or the columns in one that is there")
{
  const SharedMariadb shared(false);
  makes_table(shared);
  CHECK(run_at(shared.url_of("table=app.other&create=yes"), try_lock("k")).code == 0);
}

TEST_CASE("postgres shared table: a column that keeps no milliseconds is 78, also for the first lock")
{
  const SharedPostgres shared;
  for (const char* type : {"timestamp(0)", "timestamp(2)", "date"}) {
    CAPTURE(std::string(type));
    (void)shared.server().sql("delete from shedlock; alter table shedlock alter lock_until type " + std::string(type));
    expect_end(shared.run(try_lock("k")), 78, {err_has("lock_until")});
    CHECK(shared.server().sql("select count(*) from shedlock") == "0\n");
  }
  for (const char* type : {"timestamp(3)", "timestamp(6)", "timestamp"}) {
    CAPTURE(std::string(type));
    (void)shared.server().sql("alter table shedlock alter lock_until type " + std::string(type) +
                              " using timezone('utc', now())");
    const Finished granted = shared.run(try_lock("k"));
    CHECK_MESSAGE(granted.code == 0, granted.err);
    CHECK(shared.run(try_lock("k")).code == 0);
  }
}

POSTGRES_CASE("postgres shared table: doctor names the schema of the table")
{
  (void)server.sql("create schema jobs");
  const std::string url = server.url("postgres", "table=jobs.shedlock&create=yes");
  const Finished before = run_rlock({"doctor", "-S", url});
  CHECK_MESSAGE(has(before.out, "the first lock makes them, in the schema jobs"), before.out);
  CHECK(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}).code == 0);
  expect_end(run_rlock({"doctor", "-S", url}), 0, {out_has("they are there, in the schema jobs")});
}

TEST_CASE("postgres shared table: long keys and other columns are 78")
{
  const SharedPostgres shared;
  CHECK(shared.run(try_lock(std::string(64, 'k'))).code == 0);
  expect_end(shared.run(try_lock(std::string(65, 'k'))), 78, {err_has("longer than its column")});
  CHECK(shared.server().sql("alter table shedlock alter lock_until type timestamptz").empty());
  CHECK(shared.run(try_lock(std::string(64, 'k'))).code == 78);
}

TEST_CASE("mariadb shared table: long keys and names that the collation takes for one are 78")
{
  const SharedMariadb shared;
  CHECK(shared.run(try_lock(std::string(64, 'k'))).code == 0);
  expect_end(shared.run(try_lock(std::string(65, 'k'))), 78, {err_has("at most 64 characters")});
  shared.lock("Job", 60s);
  CHECK(shared.run(try_lock("Job")).code == 75);
  expect_end(shared.run(try_lock("JOB")), 78, {err_has("takes the lock JOB for the lock Job")});
  CHECK(shared.row("job").is_held);
  CHECK(shared.row("job").holder == "java");
}

TEST_CASE("mariadb shared table: a key that the character set of the table cannot write is 78")
{
  const SharedMariadb shared(true, {}, std::string(mariadb_table) + " charset latin1");
  CHECK(shared.run(try_lock("caf\u00e9")).code == 0);
  CHECK(shared.server().sql("select hex(name) from shedlock") == "636166E9\n");
  expect_end(shared.run(try_lock("\u043a\u043b\u044e\u0447")), 78, {err_has("convert it to utf8mb4")});
}

TEST_CASE("mariadb shared table: columns without milliseconds, and TIMESTAMP elsewhere than in UTC, are 78")
{
  const SharedMariadb shared(true, {"default-time-zone=+02:00"});
  expect_end(shared.run(try_lock("k")), 78, {err_has("modify lock_until datetime(3) not null")});
  CHECK(shared.run({"doctor"}).code == 1);
  (void)shared.server().sql(
      "alter table shedlock modify lock_until datetime(3) not null, modify locked_at datetime(3) not null");
  shared.lock("k", 60s);
  CHECK(shared.run(try_lock("k")).code == 75);
  (void)shared.server().sql("alter table shedlock modify lock_until datetime not null");
  expect_end(shared.run(try_lock("k")), 78, {err_has("which has no milliseconds")});
}

TEST_CASE("mongo shared collection: collections that are another's are 78")
{
  const SharedMongo shared;
  shared.server().add_foreign_document("k");
  for (const Words& wait : {Words{"-n"}, Words{"-w", "1s"}}) {
    const Words words =
        joined(joined({"run", "-S", shared.server().url("table=rlock_lock")}, wait), {"-k", "k", "--", "true"});
    expect_end(run_rlock(words), 78, {err_has("is no lock of ShedLock")});
  }
  shared.lock("java", 60s);
  expect_end(run_rlock({"run", "-n", "-S", shared.server().url("collection=shedLock"), "-k", "java", "--", "true"}), 78,
             {err_has("table=shedLock if it is that of ShedLock")});
}
