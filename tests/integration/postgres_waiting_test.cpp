// SPDX-License-Identifier: Apache-2.0
// Many waiters on PostgreSQL, which serves few connections at once; a pooler; crashes and pauses of the server during a queue.
#include "contract/tested_store.h"
#include "support/integration.h"
#include "support/postgres_fixture.h"
#include "support/skip.h"

#include <array>

#include <unistd.h>

using namespace rlock::test;

namespace {

// A job that lasts until the file is there.
Words job_until(const std::filesystem::path& go)
{
  return {"sh", "-c", "until [ -e " + go.string() + " ]; do sleep 0.02; done"};
}

void wait_until_held(const std::string& url)
{
  wait_until([&] { return has(run_at(url, {"status", "--json", "k"}).out, "\"held\":true"); }, "the lock is held");
}

void wait_until_waiting(const std::string& url, int number)
{
  wait_until(
      [&] {
        return has(run_at(url, {"status", "--json", "k"}).out, "\"place\":" + std::to_string(number));
      },
      "the waiters are in the queue");
}

int connections(const PostgresServer& server)
{
  return std::stoi(server.sql("select count(*) from pg_stat_activity where application_name = 'rlock'"));
}

// A job that notes an overlap with another such job.
Words judged_job(const std::string& time = "0.02")
{
  const std::string lock = (home_dir() / "judge").string();
  const std::string bad = (home_dir() / "overlap").string();
  return {"sh", "-c", "flock -n " + lock + " sleep " + time + " || echo overlap >> " + bad};
}

void check_no_overlap() { CHECK(!std::filesystem::exists(home_dir() / "overlap")); }

// PgBouncer before a server.
class Pooler {
 public:
  Pooler(const PostgresServer& server, const std::string& mode)
      : m_dir(std::filesystem::path(file_for_postgres("")).parent_path())
  {
    const auto program = std::ranges::find_if(m_places, [](const char* place) { return ::access(place, X_OK) == 0; });
    skip_if(program == m_places.end(), "no PgBouncer (install pgbouncer)");
    const std::string settings = file_for_postgres(
        "[databases]\npostgres = host=" + server.socket_directory().string() +
        " user=postgres\n[pgbouncer]\nauth_type = any\nlisten_addr =\nunix_socket_dir = " + m_dir.string() +
        "\nlisten_port = 5432\npool_mode = " + mode + "\ndefault_pool_size = 4\n");
    m_process = std::make_unique<Process>(server.as_server_user({*program, settings}),
                                          ProcessOptions{.cwd = "/", .new_session = true});
    wait_until([&] { return std::filesystem::exists(m_dir / ".s.PGSQL.5432"); }, "PgBouncer listens");
  }
  [[nodiscard]] std::string url() const { return "postgresql:///postgres?host=" + m_dir.string() + "&user=postgres"; }

 private:
  static constexpr std::array m_places{"/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"};
  std::filesystem::path m_dir;
  std::unique_ptr<Process> m_process;
};

}  // namespace

POSTGRES_CASE("postgres waiting: holder and waiters have one connection each")
{
  const auto go = home_dir() / "go";
  Process first = start_at(server.url(), with_job({"run", "-k", "k"}, job_until(go)));
  wait_until_held(server.url());
  std::vector<Process> waiters;
  for (int i = 1; i <= 4; ++i) {
    waiters.push_back(start_at(server.url(), {"run", "-k", "k", "--", "true"}));
  }
  wait_until_waiting(server.url(), 4);
  wait_until([&] { return server.sql("select count(distinct pid) from rlock_listener") == "5\n"; }, "all listen");
  CHECK(connections(server) == 5);
  std::ofstream(go).flush();
  CHECK(first.wait() == success);
  expect_ends(waiters);
}

TEST_CASE("postgres waiting: far back in a line that stands still waiters close their connections, and are served")
{
  constexpr int many = 20;
  const PostgresServer server;
  const auto go = home_dir() / "go";
  Process first = start_at(server.url(), with_job({"run", "-k", "k"}, job_until(go)));
  wait_until_held(server.url());
  std::vector<Process> waiters;
  for (int i = 0; i < many; ++i) {
    waiters.push_back(start_at(server.url(), with_job({"run", "-k", "k"}, judged_job())));
  }
  wait_until_waiting(server.url(), many);
  wait_until([&] { return connections(server) <= 1 + 8 + 1; }, "waiters have closed their connections", 30s);
  wait_until(
      [&] {
        return count(run_at(server.url(), {"status", "--json", "k"}).out, "\"connected\":true") == 8;
      },
      "eight are connected");
  const Finished status = run_at(server.url(), {"status", "k"});
  CHECK(has(run_at(server.url(), {"status", "--json", "k"}).out, "\"place\":20"));
  CHECK_MESSAGE(has(status.out, "… and 10 more\n           12 of these 20 are not connected"), status.out);
  std::ofstream(go).flush();
  CHECK(first.wait() == success);
  expect_ends(waiters, 40s);
  check_no_overlap();
}

TEST_CASE("postgres waiting: when the server has no connection left, a waiter goes on waiting, and a new run is 69")
{
  PostgresServer server({"max_connections=6", "superuser_reserved_connections=0"});
  const auto go = home_dir() / "go";
  Process first = start_at(server.url(), with_job({"run", "-k", "k"}, job_until(go)));
  wait_until_held(server.url());
  Process waiter = start_at(server.url(), {"run", "-k", "k", "--", "true"});
  wait_until_waiting(server.url(), 1);
  {
    std::vector<Process> others;
    for (int i = 0; i < 8; ++i) {  // more than there is room for: a connection that has just ended may still count
      others.push_back(server.start_sql("select pg_sleep(60)"));
    }
    Finished refused;
    wait_until(
        [&] {
          refused = run_at(server.url(), {"run", "-n", "-k", "other", "--", "true"});
          return refused.code == 69;
        },
        "the server refuses connections");
    CHECK_MESSAGE(has(refused.err, "too many clients"), refused.err);
    CHECK(count(refused.err, "\n") == 1);
  }
  std::ofstream(go).flush();
  CHECK(first.wait() == success);
  CHECK(waiter.wait(20s) == success);
}

POSTGRES_CASE("postgres waiting: behind PgBouncer in transaction mode waiters poll, and get the lock in their order")
{
  const Pooler pooler(server, "transaction");
  const auto go = home_dir() / "go";
  Process first = start_at(pooler.url(), with_job({"run", "-k", "k"}, job_until(go)));
  wait_until_held(pooler.url());
  std::vector<Process> waiters;
  for (int i = 1; i <= 3; ++i) {
    const std::string line = "echo " + std::to_string(i) + " >> " + (home_dir() / "order").string();
    waiters.push_back(start_at(pooler.url(), {"run", "-k", "k", "--", "sh", "-c", line}));
    wait_until_waiting(pooler.url(), i);
  }
  wait_until([&] { return server.sql("select count(distinct pid) from rlock_listener where until > now()") == "4\n"; },
             "all poll");
  std::ofstream(go).flush();
  CHECK(first.wait() == success);
  expect_ends(waiters, 30s);
  CHECK(text_of(home_dir() / "order") == "1\n2\n3\n");
  CHECK(has(run_at(pooler.url(), {"doctor"}).out, "warn     messages"));
}

POSTGRES_CASE("postgres waiting: behind PgBouncer in transaction mode a waiter hears the release")
{
  const Pooler pooler(server, "transaction");
  Tested store({"behind PgBouncer",
                [&] { return RunningServers{.spec = {.endpoints = {*parse_server(pooler.url())}}, .redis = {}}; },
                true});
  check_that_a_waiter_hears_the_release(store);
}

POSTGRES_CASE("postgres waiting: behind PgBouncer in session mode messages wake the waiters")
{
  const Pooler pooler(server, "session");
  const auto go = home_dir() / "go";
  Process first = start_at(pooler.url(), with_job({"run", "-k", "k"}, job_until(go)));
  wait_until_held(server.url());
  Process waiter = start_at(pooler.url(), {"run", "-k", "k", "--", "true"});
  wait_until_waiting(server.url(), 1);
  wait_until([&] { return server.sql("select count(distinct pid) from rlock_listener where until is null") == "2\n"; },
             "both listen");
  std::ofstream(go).flush();
  CHECK(first.wait() == success);
  CHECK(waiter.wait() == success);
}

POSTGRES_CASE("postgres waiting: crashes of the server during a queue lose no lock and no waiter")
{
  const auto go = home_dir() / "go";
  const Words run{"run", "-k", "k", "--ttl", "10s"};
  std::vector<Process> all;
  all.push_back(start_at(server.url(), with_job(run, job_until(go))));
  wait_until_held(server.url());
  constexpr int waiting = 7;
  for (int i = 0; i < waiting; ++i) {
    all.push_back(start_at(server.url(), with_job(run, judged_job("0.3"))));
  }
  wait_until_waiting(server.url(), waiting);  // before its first answer a client would end with 69
  std::ofstream(go).flush();
  for (int crash = 0; crash < 2; ++crash) {
    server.kill();
    server.start();
    std::this_thread::sleep_for(600ms);
  }
  expect_ends(all, 60s);
  check_no_overlap();
}

POSTGRES_CASE("postgres waiting: when the server stands still beyond the lease, the job dies in time and the next runs")
{
  const auto alive = home_dir() / "judge";
  Process holder = start_at(server.url(), {"run", "-k", "k", "--ttl", "3s", "--server-timeout", "500ms", "--", "flock",
                                           alive.string(), "sleep", "60"});
  wait_until_held(server.url());
  Process waiter = start_at(server.url(), with_job({"run", "-k", "k", "--server-timeout", "500ms"}, judged_job()));
  wait_until_waiting(server.url(), 1);
  server.stop();
  const auto stopped = std::chrono::steady_clock::now();
  CHECK(holder.wait() == exited(121));
  CHECK(std::chrono::steady_clock::now() - stopped < 3s);
  Process free({"flock", "-n", alive.string(), "true"});
  CHECK(free.wait() == success);
  server.resume();
  CHECK(waiter.wait(30s) == success);
  check_no_overlap();
}

POSTGRES_CASE("postgres waiting: emptied tables end the job as a loss, and the waiter gets the lock")
{
  Process holder = start_at(server.url(), {"run", "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  wait_until_held(server.url());
  Process waiter = start_at(server.url(), {"run", "-k", "k", "--", "true"});
  wait_until_waiting(server.url(), 1);
  CHECK(server.sql("truncate rlock_lock, rlock_event, rlock_listener").empty());
  expect_end(holder, exited(121), {err_has("was lost: the server no longer has its data")});
  CHECK(waiter.wait(20s) == success);
}

POSTGRES_CASE("postgres waiting: a run whose connection the server ends at its first request asks again")
{
  CHECK(run_rlock({"run", "-S", server.url(), "-k", "k", "--", "true"}).code == 0);
  Process blocker = server.start_sql("begin; select from rlock_lock where name = 'k' for update; select pg_sleep(600)");
  const auto count_of = [&](const std::string& what) {
    return server.sql("select count(*) from pg_stat_activity where " + what);
  };
  wait_until([&] { return count_of("query like '%pg_sleep(600)%' and state = 'active'") == "2\n"; },
             "the row is locked");
  Process run = start_rlock({"run", "-S", server.url(), "-k", "k", "--", "echo", "ran"});
  const std::string waits = "application_name = 'rlock' and wait_event_type = 'Lock'";
  wait_until([&] { return count_of(waits) == "1\n"; }, "the run waits for the row");
  (void)server.sql("select pg_terminate_backend(pid) from pg_stat_activity where " + waits);
  (void)server.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> "
      "pg_backend_pid()");
  expect_end(run, success, {out_is("ran\n")}, 30s);
}
