// SPDX-License-Identifier: Apache-2.0
// What an operator of ZooKeeper does with rlock, and what is refused.
#include "stores/zookeeper/jute.h"
#include "support/certificates.h"
#include "support/integration.h"
#include "support/skip.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;

namespace {

// Gives the node, and those below it, to the user bob with the password "rotated", as an operator does by setAcl.
void rotate(rlock::zookeeper::Client& admin, const std::string& path)
{
  constexpr std::int32_t type_set_acl = 7;
  constexpr std::int32_t all_rights = 31;
  const std::string digest = "bob:VaaOAB89WkfpvGmiTEyTwhl9YQ0=";  // base64 of SHA-1 of "bob:rotated"
  const rlock::BootClock clock;
  const rlock::CallLimits limit{.deadline = clock.now() + 10s, .stop = rlock::StopToken::never()};
  const auto found = admin.ask(rlock::zookeeper::get_children(path), limit);
  REQUIRE_MESSAGE(found, found.error().text);
  for (const std::string& child : found->children) {
    rotate(admin, (path == "/" ? "" : path) + "/" + child);
  }
  rlock::zookeeper::JuteWriter body;
  body.text(path).small(1).small(all_rights).text("digest").text(digest).small(rlock::zookeeper::any_version);
  admin.send_ahead({.type = type_set_acl, .body = body.bytes()});
  CHECK(admin.ask(rlock::zookeeper::exists(path, false), limit));  // it comes after that
}

}  // namespace

TEST_CASE("zookeeper: a password that is rotated while a job runs is read again from its file")
{
  const ZookeeperServer server;
  const auto file = home_dir() / "password";
  std::ofstream(file) << test_password << "\n";
  const Words login{"-S", server.url("/app", "bob@"), "--password-file", file.string(), "-k", "k"};
  const auto go = home_dir() / "go";
  const auto job = "echo ready; until [ -e " + go.string() + " ]; do sleep 0.05; done";
  Process holder = start_rlock(joined(joined({"run"}, login), {"--ttl", "2s", "--", "sh", "-c", job}));
  wait_until([&] { return holder.out() == "ready\n"; }, "the job runs");
  const rlock::BootClock clock;
  const auto admin = server.client(server.url("", std::string("bob:") + test_password + "@"), 10s, clock);
  std::ofstream(file) << "rotated\n";  // read when the nodes are refused
  rotate(*admin, "/app/rlock");
  const auto rotated = std::chrono::steady_clock::now();
  wait_until([&] { return !holder.running() || std::chrono::steady_clock::now() - rotated > 5s; }, "two ttls pass");
  std::ofstream(go).flush();
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK(run_rlock(joined(joined({"run"}, login), {"-w", "5s", "--", "true"})).code == 0);
  const std::string old = server.url("/app", std::string("bob:") + test_password + "@");
  CHECK(run_at(old, {"run", "-k", "k", "--", "true"}).code == 77);
}

TEST_CASE("zookeeper: --ttl below the shortest session is told by -v and by doctor")
{
  const ZookeeperServer server;
  expect_end(run_at(server.url(), {"run", "-v", "--ttl", "200ms", "-k", "k", "--", "true"}), 0,
             {err_has("the server gives a lease of 400ms where --ttl is 200ms")});
  CHECK_FALSE(has(run_at(server.url(), {"run", "-v", "-k", "k", "--", "true"}).err, "gives a lease"));
  const Finished doctor = run_at(server.url(), {"doctor", "--ttl", "200ms"});
  CHECK_MESSAGE(has(doctor.out, "warn     lease         a lease of 400ms where --ttl is 200ms: the shortest"),
                doctor.out);
  CHECK_FALSE(has(run_at(server.url(), {"doctor"}).out, "warn     lease"));
}

TEST_CASE("zookeeper refused: what the URL or the options cannot mean is 64, before a request")
{
  struct Row {
    Words args;
    const char* why;
  };
  const std::string url = "zookeeper://127.0.0.1:1";
  for (const Row& row : {Row{{"-S", url, "--sync", "1"}, "on a majority already"},
                         Row{{"-S", url, "-S", "zookeeper://127.0.0.1:2"}, "no part of a quorum"},
                         Row{{"-S", url, "--cacert", "/dev/null"}, "zookeeper+tls://"},
                         Row{{"-S", "zookeeper://127.0.0.1:1?a=b"}, "no parameter a"},
                         Row{{"-S", "zookeeper://127.0.0.1:1/zookeeper"}, "names no node"}}) {
    expect_end(run_rlock(with_job(joined({"run", "-k", "k"}, row.args), {"true"})), 64, {err_has(row.why)});
  }
}

TEST_CASE("zookeeper refused: no server is 69, a wrong password 77")
{
  expect_end(run_at("zookeeper://127.0.0.1:1", {"run", "-k", "k", "--", "true"}), 69,
             {err_has("zookeeper://127.0.0.1:1"), err_lacks("redis")});

  const ZookeeperServer server;
  const std::string login = std::string("bob:") + test_password + "@";
  CHECK(run_at(server.url("/app", login), {"run", "-k", "k", "--", "true"}).code == 0);
  for (const char* other : {"bob:wrong@", "eve:wrong@", ""}) {
    CAPTURE(std::string(other));
    expect_end(run_at(server.url("/app", other), {"run", "-k", "k", "--", "true"}), 77, {err_has("password")});
  }
  CHECK(run_at(server.url("/other"), {"run", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("zookeeper acl: prints what zkCli.sh takes, without a request")
{
  expect_end(run_at("zookeeper://127.0.0.1:1/app", {"acl", "--user", "deploy"}), 0,
             {out_has("addauth digest deploy:PASSWORD\n"),
              out_has("create /app\ncreate /app/rlock\nsetAcl /app/rlock auth:deploy:cdrwa\n")});
}

TEST_CASE("zookeeper: chroots have locks of their own, and a holder keeps others out")
{
  const ZookeeperServer server({.nodes = 3});
  Process holder = start_rlock({"run", "-S", server.url("/a"), "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  wait_until([&] { return has(run_at(server.url("/a"), {"list"}).out, "k"); }, "the lock is held");
  CHECK(run_at(server.url("/b"), {"run", "-n", "-k", "k", "--", "true"}).code == 0);
  CHECK(run_at(server.url("/a"), {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(run_at(server.url("/a"), {"run", "-n", "-k", "k", "--", "true"}).code == 0);
}

AUTHORITY_CASE("zookeeper tls: a certificate that is trusted is needed, and each side says when the other has no TLS")
{
  const ZookeeperServer server({.certificate = authority.sign("IP:127.0.0.1")});
  const Words job{"run", "-k", "k", "--wait-server", "10s", "--cacert", authority.file(), "--", "true"};
  const Finished trusted = run_at(server.url(), job);
  CHECK_MESSAGE(trusted.code == 0, trusted.err);
  expect_end(run_at(server.url(), {"run", "-k", "k", "--", "true"}), 69, {err_has("--cacert")});
  expect_end(run_at("zookeeper://" + server.hosts(), {"run", "-k", "k", "--", "true"}), 69,
             {err_has("zookeeper+tls://")});
}
