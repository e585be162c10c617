// SPDX-License-Identifier: Apache-2.0
// What an operator of ZooKeeper does with rlock, and what is refused.
#include "support/certificates.h"
#include "support/integration.h"
#include "support/skip.h"
#include "support/test.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;

namespace {

Finished run_at(const std::string& url, Words args)
{
  args.insert(args.begin() + 1, {"-S", url});
  return run_rlock(args);
}

}  // namespace

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
    const Finished run = run_rlock(with_job(joined({"run", "-k", "k"}, row.args), {"true"}));
    CHECK_MESSAGE(run.code == 64, run.err);
    CHECK_MESSAGE(has(run.err, row.why), run.err);
  }
}

TEST_CASE("zookeeper refused: no server is 69, a wrong password 77")
{
  const Finished nobody = run_at("zookeeper://127.0.0.1:1", {"run", "-k", "k", "--", "true"});
  CHECK_MESSAGE(nobody.code == 69, nobody.err);
  CHECK_MESSAGE(has(nobody.err, "zookeeper://127.0.0.1:1"), nobody.err);
  CHECK_FALSE(has(nobody.err, "redis"));

  const ZookeeperNodes server;
  const std::string login = std::string("bob:") + test_password + "@";
  CHECK(run_at(server.url("/app", login), {"run", "-k", "k", "--", "true"}).code == 0);
  for (const char* other : {"bob:wrong@", "eve:wrong@", ""}) {
    CAPTURE(std::string(other));
    const Finished refused = run_at(server.url("/app", other), {"run", "-k", "k", "--", "true"});
    CHECK_MESSAGE(refused.code == 77, refused.err);
    CHECK_MESSAGE(has(refused.err, "password"), refused.err);
  }
  CHECK(run_at(server.url("/other"), {"run", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("zookeeper doctor: it takes a lock on trial, keeps nothing of it, and says what a single server is")
{
  const ZookeeperNodes server;
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK_MESSAGE(has(text.out, "ok       lock          a trial lock was taken"), text.out);
  CHECK_MESSAGE(has(text.out, "ok       version       ZooKeeper 3."), text.out);
  CHECK_MESSAGE(has(text.out, "warn     members       one server"), text.out);
  CHECK_MESSAGE(has(text.out, "ok       sessions"), text.out);
  CHECK(run_at(server.url(), {"list"}).out.empty());
}

TEST_CASE("zookeeper bench: it runs and leaves no lock")
{
  const ZookeeperNodes server;
  const Finished bench = run_at(server.url(), {"bench", "--for", "50ms", "--connections", "2"});
  CHECK_MESSAGE(bench.code == 0, bench.err);
}

TEST_CASE("zookeeper acl: prints what zkCli.sh takes, without a request")
{
  const Finished printed = run_at("zookeeper://127.0.0.1:1/app", {"acl", "--user", "deploy"});
  CHECK(printed.code == 0);
  CHECK(has(printed.out, "addauth digest deploy:PASSWORD\n"));
  CHECK(has(printed.out, "create /app\ncreate /app/rlock\nsetAcl /app/rlock auth:deploy:cdrwa\n"));
}

TEST_CASE("zookeeper: chroots have locks of their own, and a holder keeps others out")
{
  const ZookeeperNodes server({.nodes = 3});
  Process holder = start_rlock({"run", "-S", server.url("/a"), "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  wait_until([&] { return has(run_at(server.url("/a"), {"list"}).out, "k"); }, "the lock is held");
  CHECK(run_at(server.url("/b"), {"run", "-n", "-k", "k", "--", "true"}).code == 0);
  CHECK(run_at(server.url("/a"), {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(run_at(server.url("/a"), {"run", "-n", "-k", "k", "--", "true"}).code == 0);
}

TEST_CASE("zookeeper tls: a certificate that is trusted is needed, and each side says when the other has no TLS")
{
  const Authority authority;
  const ZookeeperNodes server({.certificate = authority.sign("IP:127.0.0.1")});
  const Words job{"run", "-k", "k", "--wait-server", "10s", "--cacert", authority.file(), "--", "true"};
  const Finished trusted = run_at(server.url(), job);
  CHECK_MESSAGE(trusted.code == 0, trusted.err);
  const Finished distrusted = run_at(server.url(), {"run", "-k", "k", "--", "true"});
  CHECK(distrusted.code == 69);
  CHECK_MESSAGE(has(distrusted.err, "--cacert"), distrusted.err);
  const Finished plain = run_at("zookeeper://" + server.hosts(), {"run", "-k", "k", "--", "true"});
  CHECK(plain.code == 69);
  CHECK_MESSAGE(has(plain.err, "zookeeper+tls://"), plain.err);
}
