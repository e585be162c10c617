// SPDX-License-Identifier: Apache-2.0
// The number of permits, which stays while no permit is held, and which another program may delete.
#include "support/integration.h"
#include "support/json.h"
#include "support/queue_fixture.h"

using namespace rlock::test;
TEST_SUITE_BEGIN("topology");

QUEUE_CASE("permits: an idle number of theirs is refused to every other kind, 78, and said to be what it is")
{
  REQUIRE(Process(queue.rlock("run", {"--permits", "2", "--", "true"})).wait() == success);
  for (const std::vector<std::string>& kind :
       std::vector<std::vector<std::string>>{{}, {"-s"}, {"-x"}, {"--format", "string"}}) {
    CAPTURE(kind.empty() ? "plain" : kind.back());
    Process refused = queue.start(joined({"-n"}, kind), {"true"});
    CHECK(refused.wait() == exited(78));
    CHECK(has(refused.err(), "take one with --permits N; if none is held, rlock forget frees the name"));
  }
  CHECK(Process(queue.rlock("run", {"--permits", "2", "--", "true"})).wait() == success);
}

QUEUE_CASE("permits: forget deletes their number when none is held, and the name is free for every kind")
{
  const auto forget = [&] { return rlock_on(queue.server, {"forget", "k"}); };
  {
    Process holder = queue.start({"--permits", "3"}, {"sleep", "60"});
    wait_until([&] { return rlock_on(queue.server, {"status", "k"}).code == 0; }, "it has one");
    CHECK(forget().code == 1);
    CHECK(rlock_on(queue.server, {"status", "k"}).code == 0);
    holder.signal(SIGTERM);
    holder.wait();
  }
  expect_end(forget(), 0, {out_is("k: forgot the history, the number of permits\n")});
  CHECK(forget().code == 1);
  CHECK(Process(queue.rlock("run", {"-n", "--", "true"})).wait() == success);
  CHECK(Process(queue.rlock("run", {"-n", "--permits", "2", "--", "true"})).wait() == success);
}

QUEUE_CASE("permits: deleting their number hides no holder")
{
  std::vector<Process> holders;
  for (int i = 0; i < 2; ++i) {
    holders.emplace_back(queue.rlock("run", {"--permits", "3", "--", "sleep", "60"}));
  }
  const auto status = [&] { return Json::parse(rlock_on(queue.server, {"status", "k", "--json"}).out); };
  wait_until([&] { return status().at("holders").size() == 2; }, "both hold one");
  queue.server.command({"DEL", "k"});

  const Json seen = status();
  CHECK(seen.at("held") == true);
  CHECK(seen.at("mode") == "permits");
  CHECK(seen.at("holders").size() == 2);
  CHECK(seen.at("ttl_ms") > 15'000);
  expect_end(rlock_on(queue.server, {"status", "k"}), 0, {out_begins("k: held, 2 permits (their number is gone)\n")});
  CHECK(has(rlock_on(queue.server, {"list"}).out, "sleep 60"));
  CHECK(std::stoi(rlock_on(queue.server, {"ttl", "k"}).out) > 15'000);
  CHECK(rlock_on(queue.server, {"wait", "-n", "k"}).code == 75);
  const std::string token = seen.at("holders").at(0).at("owner");
  CHECK(rlock_on(queue.server, {"check", "k", "--token", token}).code == 0);
  CHECK(rlock_on(queue.server, {"force-unlock", "k", "--token", token}).code == 0);
  CHECK(status().at("holders").size() == 1);
  CHECK(rlock_on(queue.server, {"force-unlock", "k", "--yes"}).code == 0);
  CHECK(status().at("held") == false);
}

TEST_SUITE_END();
