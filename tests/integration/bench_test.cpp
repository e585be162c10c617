// SPDX-License-Identifier: Apache-2.0
// `rlock bench` measures, and leaves nothing behind.
#include "support/acl_fixture.h"
#include "support/integration.h"
#include "support/json.h"

using namespace rlock::test;
namespace {

std::map<std::string, Json> measured(const std::string& text)
{
  std::map<std::string, Json> all;
  for (const std::string& line : lines_of(text)) {
    const Json measure = Json::parse(line);
    all[measure.at("measure")] = measure;
  }
  return all;
}

}  // namespace

SERVER_CASE("bench: how long, how many, and nothing is left")
{
  server.command({"SET", "bench", "the user's own"});
  const Finished told = rlock_on(server, {"bench", "--for", "50ms", "--connections", "3", "--json"});
  CHECK_MESSAGE(told.code == 0, told.err);
  const auto all = measured(told.out);
  for (const std::string what : {"acquire", "release", "hand_over"}) {
    const Json& times = all.at(what);
    CHECK(times.at("count") > 0);
    CHECK(times.at("p50_us") <= times.at("p90_us"));
    CHECK(times.at("p90_us") <= times.at("p99_us"));
    CHECK(times.at("p99_us") <= times.at("max_us"));
    std::int64_t counted = 0;
    for (const Json& bucket : times.at("histogram").elements()) {
      counted += bucket.at("count").number();
    }
    CHECK(counted == times.at("count"));
  }
  CHECK(all.at("pairs").at("per_second") > 0);
  CHECK(all.at("pairs").at("connections") == 3);
  CHECK(as_texts(server.command({"KEYS", "*"})) == std::vector<std::string>{"bench"});

  const Finished text = rlock_on(server, {"bench", "--for", "20ms"});
  CHECK(text.out.starts_with("acquire    p50 "));
  expect_has(text.out, {"#\n", " a second over 4 connections\n"});
}

SERVER_CASE("bench: an interrupt leaves nothing behind either")
{
  Process bench = start_on(server, {"bench", "--for", "1h"});
  wait_until([&] { return as_int(server.command({"DBSIZE"})) > 0; }, "it measures");
  bench.signal(SIGINT);
  CHECK(bench.wait() == died_of(SIGINT));
  CHECK(as_int(server.command({"DBSIZE"})) == 0);
}

ACL_CASE("bench: a user with few rights says where, and several servers have no line")
{
  fixture.allow(acl_line("app:*"));
  CHECK(fixture.run({"bench", "--for", "20ms"}).code == 77);
  const Finished told = fixture.run({"bench", "--for", "20ms", "--prefix", "app:"});
  CHECK_MESSAGE(told.code == 0, told.err);
  CHECK(as_int(fixture.server.command({"DBSIZE"})) == 0);

  const RedisServer one, two;
  const Finished both = run_rlock({"bench", "-S", one.url(), "-S", two.url(), "--no-restart-guard", "--server-timeout",
                                   "2s", "--for", "50ms", "--json"});
  CHECK_MESSAGE(both.code == 0, both.err);
  CHECK(measured(both.out).size() == 3);
  CHECK(as_int(one.command({"DBSIZE"})) + as_int(two.command({"DBSIZE"})) == 0);
  CHECK(run_rlock({"bench", "--connections", "0"}).code == 64);
  CHECK(run_rlock({"bench", "-S", "unix:///nowhere/s"}).code == 69);
}
