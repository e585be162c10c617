// SPDX-License-Identifier: Apache-2.0
// Locks in MongoDB, by rlock as a process.
#include "stores/mongo/mongo_backend.h"
#include "stores/mongo/mongo_url.h"
#include "support/integration.h"
#include "support/job_lines.h"
#include "support/limits.h"
#include "support/mongo_fixture.h"

using namespace rlock::test;

MONGO_CASE("mongo: a run leaves no file in /dev/shm, where libmongoc would keep counters, and no variable to its job")
{
  const std::string counters = "/dev/shm/mongoc-";
  Process holder = held_run(server);
  CHECK_FALSE(std::filesystem::exists(counters + std::to_string(holder.pid())));
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(run_on(server, {"run", "-k", "k", "--", "env"}).out.find("MONGOC") == std::string::npos);
}

MONGO_CASE("mongo: a waiter that was killed delays the next one by a few seconds at most")
{
  const auto go = home_dir() / "go";
  Process first = start_on(server, with_job({"run", "-k", "k"}, shell(until_exists(go))));
  wait_until([&] { return is_held(server); }, "the lock is held");
  Process killed = start_on(server, {"run", "-k", "k", "--", "true"});
  await_place(server.url(), 1);
  Process next = start_on(server, {"run", "-k", "k", "--", "true"});
  await_place(server.url(), 2);
  killed.signal(SIGKILL);
  create(go);
  CHECK(first.wait() == success);
  CHECK(next.wait(8s) == success);
}

MONGO_CASE("mongo: a document that is something else, and one that is no good record, are refused with 78")
{
  SUBCASE("something else")
  {
    server.add_foreign_document("k");
    expect_end(run_on(server, {"run", "-k", "k", "--", "true"}), 78, {err_has("is no record of rlock")});
  }
  SUBCASE("record of a newer rlock")
  {
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
    server.set_record("k", "rlock2");
    expect_end(run_on(server, {"run", "-k", "k", "--", "true"}), 78, {err_has("newer version of rlock")});
  }
  SUBCASE("damaged record")
  {
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
    server.set_record("k", server.record("k").substr(0, 40));
    CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 78);
  }
}

MONGO_CASE("mongo: a name that is no UTF-8 is refused with 78")
{
  expect_end(run_on(server, {"run", "-k", "a\xff", "--", "true"}), 78, {err_has("UTF-8")});
}

TEST_CASE("mongo: a wrong password is 77 and is not shown, the right one takes the lock")
{
  const MongoServer server({.user = "bob", .password = "right"});
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  std::string url = server.url();
  url.replace(url.find("right"), 5, "hunter2");
  expect_end(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}), 77,
             {err_has("(check the user 'bob' and the password in the URL of --server)"), err_lacks("hunter2")});
}

TEST_CASE("mongo: a user without a password is 77, and is told that the password is missing")
{
  const MongoServer server({.user = "bob", .password = "right"});
  std::string url = server.url();
  url.replace(url.find(":right"), 6, "");
  expect_end(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}), 77,
             {err_has("no password supplied (check the URL, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE or --password-file)")});
}

AUTHORITY_CASE("mongo: TLS, whose certificate is verified unless the URL says otherwise")
{
  const MongoServer server({.certificate = authority.sign("IP:127.0.0.1")});
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  std::string url = server.url();
  url.replace(url.find("tlsAllowInvalidCertificates=true"), 32, "tlsCAFile=" + authority.file());
  CHECK(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}).code == 0);
  const Authority other;
  url.replace(url.find(authority.file()), authority.file().size(), other.file());
  expect_end(run_rlock({"run", "-S", url, "-k", "k", "--", "true"}), 69, {err_has("TLS")});
}

TEST_CASE("mongo: the servers of a replica set are found by its name, and another name finds none")
{
  const MongoServer server({.replica_set = "rs0"});
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  std::string url = server.url();
  url.replace(url.find("rs0"), 3, "rs1");
  CHECK(run_rlock({"run", "-S", url, "-k", "k", "--server-timeout", "1s", "--", "true"}).code == 69);
}

MONGO_CASE("mongo: a listener whose document was deleted is in it again after its next look")
{
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  const auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, soon());
  REQUIRE(source);
  server.delete_locks();
  REQUIRE((*source)->next({.deadline = clock.now() + 500ms, .stop = StopToken::never()}));
  CHECK(backend->read("k", soon())->listeners == std::vector<std::string>{"mine"});
}

MONGO_CASE("mongo: a connection closes at once also when libmongoc would look at its server again before that")
{
  const BootClock clock;
  const auto endpoint = mongo::parse_mongo_url(server.url("heartbeatFrequencyMS=500"));
  REQUIRE(endpoint);
  const auto backend = mongo::open_backend(mongo::connection_spec(*endpoint), clock, std::make_unique<SystemRng>());
  REQUIRE(backend->read("k", soon()));
  std::this_thread::sleep_for(600ms);  // libmongoc asks its own clock whether the server is due
  const auto begun = std::chrono::steady_clock::now();
  backend->drop_connection();
  CHECK(std::chrono::steady_clock::now() - begun < 5s);
  CHECK(backend->read("k", soon()));
}
