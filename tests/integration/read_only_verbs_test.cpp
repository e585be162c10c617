// SPDX-License-Identifier: Apache-2.0
// The verbs that only read change nothing on the server.
#include "support/integration.h"

using namespace rlock::test;

namespace {

std::string line_of(const Finished& finished) { return finished.out.substr(0, finished.out.find('\n')); }

}  // namespace

TEST_SUITE_BEGIN("topology");

SERVER_CASE("check, status, ttl, list: a lock without a ttl is still there afterwards, and still has none")
{
  const std::string token = line_of(rlock_on(server, {"acquire", "-k", "stock", "--lease", "1h"}));
  REQUIRE_FALSE(token.empty());
  server.command({"PERSIST", "stock"});
  CHECK(rlock_on(server, {"check", "-k", "stock", "--token", token}).code == 0);
  CHECK(rlock_on(server, {"check", "-k", "stock", "--token", "another:1"}).code == 1);
  CHECK(rlock_on(server, {"release", "-k", "stock", "--token", "another:1"}).code == 1);
  CHECK(rlock_on(server, {"renew", "-k", "stock", "--token", "another:1"}).code == 1);
  CHECK(rlock_on(server, {"force-unlock", "-k", "stock"}).code == 64);
  CHECK(rlock_on(server, {"force-unlock", "-k", "stock", "--token", "another:1"}).code == 1);
  CHECK(rlock_on(server, {"status", "-k", "stock"}).code == 0);
  CHECK(rlock_on(server, {"ttl", "-k", "stock"}).code == 0);
  CHECK(rlock_on(server, {"list"}).code == 0);
  CHECK(is_held(server, "stock"));
  CHECK(as_int(server.command({"PTTL", "stock"})) == -1);

  CHECK(rlock_on(server, {"renew", "-k", "stock", "--token", token, "--lease", "30s"}).code == 0);
  CHECK(as_int(server.command({"PTTL", "stock"})) > 20'000);
}

TEST_SUITE_END();
