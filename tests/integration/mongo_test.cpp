// SPDX-License-Identifier: Apache-2.0
// Locks in MongoDB, by rlock as a process.
#include "stores/mongo/mongo_backend.h"
#include "stores/mongo/mongo_url.h"
#include "support/integration.h"
#include "support/mongo_fixture.h"

#include <chrono>
#include <thread>

using namespace rlock::test;

namespace {

Words with_server(const MongoServer& server, Words args)
{
  args.insert(args.begin() + 1, {"-S", server.url()});
  return args;
}

Finished run_on(const MongoServer& server, Words args) { return run_rlock(with_server(server, std::move(args))); }
Process start_on(const MongoServer& server, Words args) { return start_rlock(with_server(server, std::move(args))); }

bool holds(const MongoServer& server, const std::string& key) { return !server.holder(key).empty(); }

CallLimits limit_of(const Clock& clock) { return {.deadline = clock.now() + 10s, .stop = StopToken::never()}; }

// The version after the commit; empty: a conflict.
std::string write(record::Backend& backend, const Clock& clock, const std::string& version,
                  const record::LogChange& log = {}, const std::vector<Message>& messages = {})
{
  auto commit =
      backend.write_if("k", version, {.bytes = "x", .face = {}, .log = log, .messages = messages}, limit_of(clock));
  REQUIRE_MESSAGE(commit, commit.error().text);
  const auto* done = std::get_if<record::Committed>(&*commit);
  return done == nullptr ? "" : done->version;
}

}  // namespace

TEST_CASE("mongo: the job runs under the lock, and its exit code is returned")
{
  const MongoServer server;
  const Finished run = run_on(server, {"run", "-k", "k", "--", "sh", "-c", "echo job; exit 7"});
  CHECK(run.code == 7);
  CHECK(run.out == "job\n");
  CHECK(run.err.empty());
  CHECK(server.lock_names() == std::vector<std::string>{"k"});
  CHECK_FALSE(holds(server, "k"));
  const std::string history = run_on(server, {"history", "k"}).out;
  CHECK(history.find("failed") != std::string::npos);
}

TEST_CASE("mongo: a run leaves no file in /dev/shm, where libmongoc would keep counters, and no variable to its job")
{
  const MongoServer server;
  const std::string counters = "/dev/shm/mongoc-";
  Process holder = start_on(server, {"run", "-k", "k", "--", "sleep", "60"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  CHECK_FALSE(std::filesystem::exists(counters + std::to_string(holder.pid())));
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(run_on(server, {"run", "-k", "k", "--", "env"}).out.find("MONGOC") == std::string::npos);
}

TEST_CASE("mongo: a second run is busy, waits in line, and gets the lock by a message")
{
  const MongoServer server;
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

TEST_CASE("mongo: after kill -9 of the runner the job is dead before the next one runs")
{
  const MongoServer server;
  const auto alive = home_dir() / "alive";
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "flock", alive.string(), "sleep", "60"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  holder.signal(SIGKILL);
  const Finished next = run_on(server, {"run", "-k", "k", "--", "flock", "-n", alive.string(), "true"});
  CHECK(next.code == 0);
}

TEST_CASE("mongo: a waiter that was killed delays the next one by a few seconds at most")
{
  const MongoServer server;
  const auto go = home_dir() / "go";
  Process first =
      start_on(server, {"run", "-k", "k", "--", "sh", "-c", "until [ -e " + go.string() + " ]; do sleep 0.02; done"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  const auto in_line = [&](int count) {
    wait_until(
        [&] {
          return run_on(server, {"status", "--json", "k"}).out.find("\"place\":" + std::to_string(count)) !=
                 std::string::npos;
        },
        "the waiter is in the queue");
  };
  Process killed = start_on(server, {"run", "-k", "k", "--", "true"});
  in_line(1);
  Process next = start_on(server, {"run", "-k", "k", "--", "true"});
  in_line(2);
  killed.signal(SIGKILL);
  std::ofstream(go).flush();
  CHECK(first.wait() == success);
  CHECK(next.wait(8s) == success);
}

TEST_CASE("mongo: a crash of the server during the job does not lose the lock")
{
  MongoServer server;
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "6s", "--", "sleep", "60"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  server.kill();
  server.start();
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("mongo: when the server stands still, the job is stopped before its lease is over")
{
  MongoServer server;
  const auto started = home_dir() / "started";
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--server-timeout", "500ms", "--", "sh", "-c",
                                     "touch " + started.string() + "; exec sleep 60"});
  wait_until([&] { return std::filesystem::exists(started); }, "the job runs");
  server.stop();
  CHECK(holder.wait() == exited(121));
  server.resume();
}

TEST_CASE("mongo: a deleted document ends the job, and it says what happened")
{
  const MongoServer server;
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  wait_until([&] { return holds(server, "k"); }, "the lock is held");
  server.delete_locks();
  CHECK(holder.wait() == exited(121));
  CHECK_MESSAGE(has(holder.err(), "was lost: the server no longer has its data"), holder.err());
}

TEST_CASE("mongo: a document that is something else, and one that is no good record, are refused with 78")
{
  const MongoServer server;
  SUBCASE("something else")
  {
    server.add_foreign_document("k");
    const Finished run = run_on(server, {"run", "-k", "k", "--", "true"});
    CHECK(run.code == 78);
    CHECK(run.err.find("is no record of rlock") != std::string::npos);
  }
  SUBCASE("record of a newer rlock")
  {
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
    server.set_record("k", "rlock2");
    const Finished run = run_on(server, {"run", "-k", "k", "--", "true"});
    CHECK(run.code == 78);
    CHECK(run.err.find("newer version of rlock") != std::string::npos);
  }
  SUBCASE("damaged record")
  {
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
    server.set_record("k", server.record("k").substr(0, 40));
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 78);
  }
}

TEST_CASE("mongo: a name that is no UTF-8 is refused with 78")
{
  const MongoServer server;
  const Finished run = run_on(server, {"run", "-k", "a\xff", "--", "true"});
  CHECK(run.code == 78);
  CHECK(run.err.find("UTF-8") != std::string::npos);
}

TEST_CASE("mongo: a wrong password is 77 and is not shown, the right one takes the lock")
{
  const MongoServer server({.user = "bob", .password = "right"});
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  std::string url = server.url();
  url.replace(url.find("right"), 5, "hunter2");
  const Finished refused = run_rlock({"run", "-S", url, "-k", "k", "--", "true"});
  CHECK(refused.code == 77);
  CHECK_MESSAGE(has(refused.err, "(check the user 'bob' and the password in the URL of --server)"), refused.err);
  CHECK(refused.err.find("hunter2") == std::string::npos);
}

TEST_CASE("mongo: a user without a password is 77, and is told that the password is missing")
{
  const MongoServer server({.user = "bob", .password = "right"});
  std::string url = server.url();
  url.replace(url.find(":right"), 6, "");
  const Finished refused = run_rlock({"run", "-S", url, "-k", "k", "--", "true"});
  CHECK(refused.code == 77);
  CHECK_MESSAGE(
      has(refused.err, "no password supplied (check the URL, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE or --password-file)"),
      refused.err);
}

TEST_CASE("mongo: TLS, whose certificate is verified unless the URL says otherwise")
{
  const Authority authority;
  const MongoServer server({.certificate = authority.sign("IP:127.0.0.1")});
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  std::string url = server.url();
  url.replace(url.find("tlsAllowInvalidCertificates=true"), 32, "tlsCAFile=" + authority.file());
  CHECK(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}).code == 0);
  const Authority other;
  url.replace(url.find(authority.file()), authority.file().size(), other.file());
  const Finished refused = run_rlock({"run", "-S", url, "-k", "k", "--", "true"});
  CHECK(refused.code == 69);
  CHECK(refused.err.find("TLS") != std::string::npos);
}

TEST_CASE("mongo: the servers of a replica set are found by its name, and another name finds none")
{
  const MongoServer server({.replica_set = "rs0"});
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  std::string url = server.url();
  url.replace(url.find("rs0"), 3, "rs1");
  CHECK(run_rlock({"run", "-S", url, "-k", "k", "--server-timeout", "1s", "--", "true"}).code == 69);
}

TEST_CASE("mongo: twenty at once exclude each other, with kill -9 among them")
{
  const MongoServer server;
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

TEST_CASE("mongo: a commit that was decided before a waiter began to listen is refused")
{
  const MongoServer server;
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  const auto listeners = [&] { return backend->read("k", limit_of(clock))->listeners; };
  REQUIRE(listeners().empty());
  const std::string first = write(*backend, clock, "");
  REQUIRE_FALSE(first.empty());
  auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, limit_of(clock));
  REQUIRE(source);
  CHECK(write(*backend, clock, first).empty());
  CHECK(write(*backend, clock, "").empty());
  CHECK(listeners() == std::vector<std::string>{"mine"});
  source->reset();
  wait_until([&] { return listeners().empty(); }, "the listener that has ended is gone");
  CHECK_FALSE(write(*backend, clock, backend->read("k", limit_of(clock))->version).empty());
}

TEST_CASE("mongo: a listener hears each message once, and none that came before it")
{
  const MongoServer server;
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  std::string version = write(*backend, clock, "");
  version = write(*backend, clock, version, {}, {{"mine", "before"}});
  const auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, limit_of(clock));
  REQUIRE(source);
  version = backend->read("k", limit_of(clock))->version;
  version = write(*backend, clock, version, {}, {{"mine", "1"}, {"other", "2"}, {"mine", "3"}});
  version = write(*backend, clock, version, {}, {{"mine", "4"}});
  for (const char* expected : {"1", "3", "4"}) {
    const auto heard = (*source)->next(limit_of(clock));
    REQUIRE(heard);
    REQUIRE(*heard);
    CHECK((*heard)->text == expected);
  }
  const auto none = (*source)->next({.deadline = clock.now() + 500ms, .stop = StopToken::never()});
  REQUIRE(none);
  CHECK_FALSE(*none);
}

TEST_CASE("mongo: a listener whose document was deleted is in it again after its next look")
{
  const MongoServer server;
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  const auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, limit_of(clock));
  REQUIRE(source);
  server.delete_locks();
  REQUIRE((*source)->next({.deadline = clock.now() + 500ms, .stop = StopToken::never()}));
  CHECK(backend->read("k", limit_of(clock))->listeners == std::vector<std::string>{"mine"});
}

TEST_CASE("mongo: a connection closes at once also when libmongoc would look at its server again before that")
{
  const MongoServer server;
  const BootClock clock;
  const auto endpoint = mongo::parse_mongo_url(server.url("heartbeatFrequencyMS=500"));
  REQUIRE(endpoint);
  const auto backend = mongo::open_backend(mongo::connection_spec(*endpoint), clock, std::make_unique<SystemRng>());
  REQUIRE(backend->read("k", limit_of(clock)));
  std::this_thread::sleep_for(600ms);  // libmongoc asks its own clock whether the server is due
  const auto begun = std::chrono::steady_clock::now();
  backend->drop_connection();
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
  CHECK(backend->read("k", limit_of(clock)));
}

TEST_CASE("mongo: the event log is written, changed and cut with the commits")
{
  const MongoServer server;
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  const auto events = [&] { return *backend->events("k", limit_of(clock)); };
  using Texts = std::vector<std::string>;
  std::string version = write(*backend, clock, "", {.written = {{1, "a"}, {2, "b\xff"}}});
  CHECK(events() == Texts{"a", "b\xff"});
  for (int id = 3; id <= 11; ++id) {
    version = write(*backend, clock, version, {.written = {{id, std::to_string(id)}}});
  }
  CHECK(events() == Texts{"a", "b\xff", "3", "4", "5", "6", "7", "8", "9", "10", "11"});
  version = write(*backend, clock, version, {.written = {{11, "x"}, {12, "y"}}, .first_kept = 10});
  CHECK(events() == Texts{"10", "x", "y"});
  const std::string last = write(*backend, clock, version, {.written = {}, .last_kept = 10});
  CHECK(events() == Texts{"10"});
  CHECK(write(*backend, clock, version, {.written = {}, .first_kept = 11}).empty());
  CHECK(events() == Texts{"10"});
  CHECK(backend->list("*", record::Backend::Which::with_events, limit_of(clock))->size() == 1);
  REQUIRE(backend->erase("k", limit_of(clock)));
  CHECK(server.lock_names().empty());
}
