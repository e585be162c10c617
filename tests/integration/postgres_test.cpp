// SPDX-License-Identifier: Apache-2.0
// Locks in PostgreSQL, by rlock as a process.
#include "store/postgres/postgres_backend.h"
#include "support/integration.h"
#include "support/postgres_fixture.h"

using namespace rlock::test;

namespace {

Words with_server(const PostgresServer& server, Words args)
{
  args.insert(args.begin() + 1, {"-S", server.url()});
  return args;
}

Finished run_on(const PostgresServer& server, Words args) { return run_rlock(with_server(server, std::move(args))); }
Process start_on(const PostgresServer& server, Words args) { return start_rlock(with_server(server, std::move(args))); }

bool holds(const PostgresServer& server, const std::string& key)
{
  return run_on(server, {"status", "--json", key}).out.find("\"held\":true") != std::string::npos;
}

}  // namespace

TEST_CASE("postgres: the job runs under the lock, and its exit code is returned")
{
  const PostgresServer server;
  const Finished run = run_on(server, {"run", "-k", "k", "--", "sh", "-c", "echo job; exit 7"});
  CHECK(run.code == 7);
  CHECK(run.out == "job\n");
  CHECK(run.err.empty());
  CHECK(server.sql("select locked_by is null from rlock_lock where name = 'k'") == "t\n");
  const std::string history = run_on(server, {"history", "k"}).out;
  CHECK(history.find("failed") != std::string::npos);
}

TEST_CASE("postgres: a second run is busy, waits in line, and gets the lock by a message")
{
  const PostgresServer server;
  const auto go = home_dir() / "go";
  Process first =
      start_on(server, {"run", "-k", "k", "--", "sh", "-c", "until [ -e " + go.string() + " ]; do sleep 0.02; done"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  std::vector<Process> waiters;
  for (int i = 1; i <= 3; ++i) {
    const std::string line = "echo " + std::to_string(i) + " >> " + (home_dir() / "order").string();
    waiters.push_back(start_on(server, {"run", "-k", "k", "--", "sh", "-c", line}));
    wait_until(
        [&] {
          return run_on(server, {"status", "--json", "k"}).out.find("\"place\":" + std::to_string(i)) !=
                 std::string::npos;
        },
        "the waiter is in the queue");
  }
  std::ofstream(go).flush();
  CHECK(first.wait() == success);
  expect_ends(waiters);
  CHECK(text_of(home_dir() / "order") == "1\n2\n3\n");
}

TEST_CASE("postgres: after kill -9 of the runner the job is dead before the next one runs")
{
  const PostgresServer server;
  const auto alive = home_dir() / "alive";
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "flock", alive.string(), "sleep", "60"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  holder.signal(SIGKILL);
  const Finished next = run_on(server, {"run", "-k", "k", "--", "flock", "-n", alive.string(), "true"});
  CHECK(next.code == 0);
}

TEST_CASE("postgres: a crash of the server during the job does not lose the lock")
{
  PostgresServer server;
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "6s", "--", "sleep", "60"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  server.kill();
  server.start();
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("postgres: when the server stands still, the job is stopped before its lease is over")
{
  PostgresServer server;
  const auto started = home_dir() / "started";
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--server-timeout", "500ms", "--", "sh", "-c",
                                     "touch " + started.string() + "; exec sleep 60"});
  wait_until([&] { return std::filesystem::exists(started); }, "the job runs");
  server.stop();
  CHECK(holder.wait() == exited(121));
  server.resume();
}

TEST_CASE("postgres: deleted rows end the job, and it says what happened")
{
  const PostgresServer server;
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  CHECK(server.sql("delete from rlock_lock").empty());
  CHECK(holder.wait() == exited(121));
  CHECK(holder.err().find("was lost: expired or deleted") != std::string::npos);
}

TEST_CASE("postgres: a table of that name that is something else, and rows that are no records, are refused with 78")
{
  const PostgresServer server;
  SUBCASE("table")
  {
    CHECK(server.sql("create table rlock_lock (name text)").empty());
    const Finished run = run_on(server, {"run", "-k", "k", "--", "true"});
    CHECK(run.code == 78);
  }
  SUBCASE("record of a newer rlock")
  {
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
    CHECK(server.sql("update rlock_lock set record = 'rlock2'").empty());
    const Finished run = run_on(server, {"run", "-k", "k", "--", "true"});
    CHECK(run.code == 78);
    CHECK(run.err.find("newer version of rlock") != std::string::npos);
  }
  SUBCASE("damaged record")
  {
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
    CHECK(server.sql("update rlock_lock set record = substr(record, 1, 40)").empty());
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 78);
  }
}

TEST_CASE("postgres: no table and no right to make it is 77, create=no without a table is 78")
{
  const PostgresServer server;
  CHECK(server.sql("create role bob login; revoke create on schema public from public").empty());
  const Finished refused = run_rlock({"run", "-S", server.url("bob"), "-k", "k", "--", "true"});
  CHECK(refused.code == 77);
  CHECK(refused.err.find("permission denied") != std::string::npos);
  const Finished missing = run_rlock({"run", "-S", server.url("postgres", "create=no"), "-k", "k", "--", "true"});
  CHECK(missing.code == 78);
  CHECK(missing.err.find("rlock_lock") != std::string::npos);
}

TEST_CASE("postgres: an URL that libpq does not understand is 64, and a password is never shown")
{
  const Finished unknown =
      run_rlock({"run", "-S", "postgresql://bob:hunter2@db/x?colour=blue", "-k", "k", "--", "true"});
  CHECK(unknown.code == 64);
  CHECK(unknown.err.find("colour") != std::string::npos);
  const Finished away = run_rlock({"run", "-S", "postgresql://bob:hunter2@127.0.0.1:1/x", "-k", "k", "--", "true"});
  CHECK(away.code == 69);
}

TEST_CASE("postgres: twenty at once exclude each other, with kill -9 among them")
{
  const PostgresServer server;
  const std::string lock = (home_dir() / "judge").string();
  const std::string bad = (home_dir() / "overlap").string();
  const std::string job = "flock -n " + lock + " sh -c 'sleep 0.02' || echo overlap >> " + bad;
  std::vector<Process> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "sh", "-c", job}));
    if (i % 7 == 3) {
      all[all.size() - 3].signal(SIGKILL);
    }
  }
  for (Process& each : all) {
    const Exit end = each.wait(60s);
    CHECK((end == success || end == died_of(SIGKILL)));
  }
  CHECK(!std::filesystem::exists(bad));
}

TEST_CASE("postgres: a commit that was decided before a waiter began to listen is refused")
{
  const PostgresServer server;
  const BootClock clock;
  const auto limit = [&] { return CallLimits{.deadline = clock.now() + 10s, .stop = StopToken::never()}; };
  const auto endpoint = postgres::parse_postgres_url(server.url());
  REQUIRE(endpoint);
  const auto backend =
      postgres::open_backend(postgres::connection_spec(*endpoint), clock, std::make_unique<SystemRng>());
  const auto write = [&](const std::string& version) {
    const record::LogChange no_log;
    auto commit = backend->write_if("k", version, {.bytes = "x", .face = {}, .log = no_log, .messages = {}}, limit());
    REQUIRE_MESSAGE(commit, commit.error().text);
    const auto* done = std::get_if<record::Committed>(&*commit);
    return done == nullptr ? "" : done->version;
  };
  const auto listeners = [&] { return backend->read("k", limit())->listeners; };

  REQUIRE(listeners().empty());
  const std::string first = write("");
  REQUIRE_FALSE(first.empty());
  auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, limit());
  REQUIRE(source);
  CHECK(write(first).empty());
  CHECK(write("").empty());
  CHECK(listeners() == std::vector<std::string>{"mine"});
  source->reset();
  wait_until([&] { return listeners().empty(); }, "the listener that has ended is gone");
  CHECK_FALSE(write(backend->read("k", limit())->version).empty());
}
