// SPDX-License-Identifier: Apache-2.0
// force-unlock --older-than takes the lock of a holder of that age, and of no later one.

#include "support/integration.h"
#include "support/json.h"

using namespace rlock::test;
namespace {

const std::vector<Words> kinds{{}, {"-s"}, {"-x"}, {"--permits", "1"}, {"--format", "string"}};

std::string token_on(const RedisServer& server)
{
  const Json status = Json::parse(rlock_on(server, {"status", "--json", "k"}).out);
  return status.at("held").is_true() ? status.at("holders").at(0).at("token") : Json("");
}

Finished force(const RedisServer& server, const std::string& age, const Words& more = {"--yes"})
{
  return rlock_on(server, joined({"force-unlock", "-k", "k", "--older-than", age}, more));
}

// Until the holder is of that age.
Finished force_when_old(const RedisServer& server, const std::string& age, const Words& more = {"--yes"})
{
  Finished forced = force(server, age, more);
  wait_until(
      [&] {
        forced = forced.code == 75 ? force(server, age, more) : forced;
        return forced.code != 75;
      },
      "the holder is old enough");
  return forced;
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("force-unlock --older-than: a second request spares the next holder, whatever the kind of lock")
{
  for (const Words& kind : kinds) {
    CAPTURE((kind.empty() ? "plain" : kind.back()));
    const RedisServer server;
    Process hangs = start_run(server.url(), joined({"-k", "k"}, kind), {"sleep", "300"});
    wait_until([&] { return !token_on(server).empty(); }, "it is held");
    const std::string first = token_on(server);
    const Words next_kind = kind == Words{"-s"} ? Words{"-x"} : kind;
    Process next = start_run(server.url(), joined({"-k", "k"}, next_kind), {"sleep", "300"});
    wait_until(
        [&] {
          return !Json::parse(rlock_on(server, {"status", "--json", "k"}).out).at("waiting").empty();
        },
        "the next one waits");

    CHECK(force_when_old(server, "1500ms").code == 0);
    CHECK(hangs.wait() == exited(121));
    wait_until([&] { return !token_on(server).empty() && token_on(server) != first; }, "the next one has the lock");
    // It has waited for longer than 1.5 s, but has not held the lock for so long.
    expect_end(force(server, "10m"), 75,
               {out_has("k: held by "), out_has(", less than --older-than 10m; nothing was done\n")});
    CHECK(next.running());
    CHECK(rlock_on(server, {"check", "-k", "k", "--token", token_on(server)}).code == 0);
    CHECK(as_int(server.command({"HEXISTS", "rlock:force:{k}", token_on(server)})) == 0);
    next.signal(SIGTERM);
    next.wait();
    CHECK(force(server, "1ms").code == 1);
  }
}

SERVER_CASE("force-unlock --older-than: the age is that of the hold, not that of the wait")
{
  Process first = start_run(server.url(), {"-k", "k"}, {"sleep", "300"});
  wait_until([&] { return !token_on(server).empty(); }, "it is held");
  const auto waits_since = std::chrono::steady_clock::now();
  Process next = start_run(server.url(), {"-k", "k"}, {"sleep", "300"});
  wait_until([&] { return std::chrono::steady_clock::now() - waits_since > 7s; }, "the next one has waited");
  const std::string token = token_on(server);
  first.signal(SIGTERM);
  first.wait();
  wait_until([&] { return !token_on(server).empty() && token_on(server) != token; }, "the next one has the lock");
  CHECK(force(server, "6s").code == 75);
  CHECK(next.running());
}

SERVER_CASE("force-unlock --older-than: the age of a foreign holder is not known, so it is spared")
{
  const std::string java = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
  server.command({"HSET", "k", java, "1"});
  server.command({"PEXPIRE", "k", "600000"});
  const Finished spared = force(server, "1ms");
  CHECK(spared.code == 75);
  CHECK(spared.out == "k: held by " + java + ", for how long is not known; --older-than spares it; nothing was done\n");
  const Finished told = force(server, "1ms", {"--yes", "--json", "--now"});
  CHECK(told.code == 75);
  CHECK(Json::parse(told.out).at("broken") == false);
  CHECK(Json::parse(told.out).at("how") == nullptr);
  CHECK(Json::parse(told.out).at("holder").at("token") == java);
  CHECK(is_held(server));

  server.command({"SET", "k", "theirs"});
  expect_end(force(server, "1ms", {"--token", "theirs", "--now"}), 75,
             {out_is("k: holds theirs, for how long is not known; --older-than spares it; nothing was done\n")});
  CHECK(as_text(server.command({"GET", "k"})) == "theirs");
}

SERVER_CASE("force-unlock --older-than: with --token both must be right, and a lost record makes the age unknown")
{
  REQUIRE(rlock_on(server, {"acquire", "-k", "k", "--lease", "10m"}).code == 0);
  const std::string token = token_on(server);
  CHECK(force(server, "1h", {"--token", token}).code == 75);
  CHECK(force(server, "1ms", {"--token", "8743c9c0-0795-4907-87fd-6c719a6b4586:1"}).code == 1);
  server.command({"DEL", "rlock:holder:{k}"});
  CHECK(force(server, "1ms", {"--token", token}).code == 75);
  CHECK(rlock_on(server, {"check", "-k", "k", "--token", token}).code == 0);
}

SERVER_CASE("force-unlock --older-than: of several holders those of that age lose the lock")
{
  const auto readers = [&] {
    return Json::parse(rlock_on(server, {"status", "--json", "k"}).out).at("holders").size();
  };
  Process old = start_run(server.url(), {"-k", "k", "-s"}, {"sleep", "300"});
  wait_until([&] { return readers() == 1; }, "one reads");
  const std::string first = token_on(server);
  CHECK(force(server, "1h").code == 75);
  wait_until([&, since = std::chrono::steady_clock::now()] { return std::chrono::steady_clock::now() - since > 6s; },
             "it is older than the other by far");
  Process young = start_run(server.url(), {"-k", "k", "-s"}, {"sleep", "300"});
  wait_until([&] { return readers() == 2; }, "two read");
  expect_end(force(server, "5s"), 0,
             {out_has("k: released by "), out_has(", less than --older-than 5s; nothing was done\n")});
  CHECK(old.wait() == exited(121));
  CHECK(young.running());
  CHECK(readers() == 1);
}

SERVER_CASE("force-unlock: the advice of status ends one hold, and never that of a later holder")
{
  const auto advice = [&] {
    const std::string status = rlock_on(server, {"status", "k"}).out;
    const std::string begins = "\n  if stuck rlock force-unlock -k k -S " + server.url() + " --token ";
    const auto at = status.find(begins);
    return at == std::string::npos ? ""
                                   : status.substr(at + begins.size(), status.find('\n', at + 1) - at - begins.size());
  };
  const auto paste = [&](const std::string& token) {
    return rlock_on(server, {"force-unlock", "-k", "k", "--token", token}).code;
  };
  std::vector<Process> holders;
  const auto hold = [&](std::size_t of_all) {
    holders.push_back(start_run(server.url(), {"-k", "k", "--permits", "2"}, {"sleep", "300"}));
    wait_until(
        [&] {
          return Json::parse(rlock_on(server, {"status", "--json", "k"}).out).at("holders").size() == of_all;
        },
        "it has a permit");
  };
  hold(1);
  hold(2);
  wait_until([since = std::chrono::steady_clock::now()] { return std::chrono::steady_clock::now() - since > 1s; },
             "they are a second old");
  const std::string token = advice();
  CHECK(paste(token) == 0);
  const auto running = [&] { return std::ranges::count_if(holders, [](Process& holder) { return holder.running(); }); };
  wait_until([&] { return running() == 1; }, "one has lost its permit");
  hold(2);
  CHECK(paste(token) == 1);
  CHECK(running() == 2);
  CHECK(paste(advice()) == 0);
  CHECK(paste(advice()) == 0);
  CHECK(advice().empty());

  server.command({"DEL", "k"});
  server.command({"HSET", "k", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1"});
  CHECK(advice() == "8743c9c0-0795-4907-87fd-6c719a6b4586:1");
}

TEST_SUITE_END();
