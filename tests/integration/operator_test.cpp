// SPDX-License-Identifier: Apache-2.0
// The verbs that an operator types: status, ttl, list, force-unlock.
#include "support/integration.h"
#include "support/json.h"
#include "support/terminal.h"

using namespace rlock::test;
TEST_SUITE_BEGIN("topology");

SERVER_CASE("status: of several keys, of a glob, and of all locks when no key is named")
{
  Process first = held_run(server, {"-k", "app:1"});
  Process second = held_run(server, {"-k", "app:2"});

  const Finished both = rlock_on(server, {"status", "app:2", "app:1"});
  CHECK(both.code == 0);
  CHECK(both.out.find("app:1: held") > both.out.find("app:2: held"));

  const Finished glob = rlock_on(server, {"status", "app:*"});
  CHECK(glob.code == 0);
  CHECK(glob.out.find("app:1: held") < glob.out.find("app:2: held"));
  CHECK(rlock_on(server, {"status", "--prefix", "app:", "[2-9]"}).out.starts_with("app:2: held"));
  CHECK(rlock_on(server, {"status", "app:*", "free"}).code == 1);
  CHECK(rlock_on(server, {"status", "other:*"}).code == 1);
  CHECK(rlock_on(server, {"status", "-k", "app:*"}).out == "app:*: free\n");  // --key is a name
  CHECK(rlock_on(server, {"status", "-o", "prometheus", "other:*"}).code == 0);

  const Finished all = rlock_on(server, {"status"});
  expect_end(all, 0, {out_begins("KEY")});
  CHECK(all.out.find("app:1") < all.out.find("app:2"));
  CHECK(has(rlock_on(server, {"status", "--json"}).out, "\"app:2\""));
  CHECK(rlock_on(server, {"status", "--prefix", "other:"}).code == 1);
}

SERVER_CASE("status, list, history: where nothing is to be shown standard error says so, and the output stays empty")
{
  const std::vector<std::pair<Words, std::string>> rows{
      {{"list"}, "rlock: no lock is held\n"},
      {{"status"}, "rlock: no lock is held\n"},
      {{"list", "app:*"}, "rlock: no lock that matches app:* is held\n"},
      {{"list", "--prefix", "app:", "[1-9]"}, "rlock: no lock that matches app:[1-9] is held\n"},
      {{"status", "app:*"}, "rlock: no lock that matches app:* is held\n"},
      {{"history", "app"},
       "rlock: no run of app is known; the server keeps runs for an hour, or as long as --history of the run says\n"},
  };
  for (const auto& row : rows) {
    const auto& words = row.first;
    const auto& line = row.second;
    CAPTURE(line);
    expect_end(rlock_on(server, words), 1, {out_is(""), err_is(line)});
    const Finished as_json = rlock_on(server, joined(words, {"--json"}));
    CHECK(as_json.code == 1);
    CHECK(as_json.out + as_json.err == "");
  }
  CHECK(rlock_on(server, {"list", "-o", "prometheus"}).err == "");
  CHECK(rlock_on(server, {"status", "-o", "prometheus", "app:*"}).err == "");
}

SERVER_CASE("--color: on a terminal by default, unless NO_COLOR is set, and always or never where they are asked for")
{
  const auto seen = [&](std::vector<std::string> options, std::map<std::string, std::optional<std::string>> variables) {
    TestTerminal terminal;
    options.insert(options.begin(), {"status", "-S", server.url(), "stock"});
    variables.try_emplace("TERM", "xterm");
    Process shown = start_rlock(options, {.env = variables, .terminal = terminal.process_side()});
    CHECK(shown.wait() == exited(1));
    return terminal.seen().find('\x1b') != std::string::npos;
  };
  CHECK(seen({}, {}));
  CHECK_FALSE(seen({}, {{"NO_COLOR", "1"}}));
  CHECK_FALSE(seen({}, {{"TERM", "dumb"}}));
  CHECK(seen({"--color", "always"}, {{"NO_COLOR", "1"}}));
  CHECK_FALSE(seen({"--color", "never"}, {}));
  const auto colored = [&](const std::vector<std::string>& words) {
    return rlock_on(server, words).out.find('\x1b') != std::string::npos;
  };
  CHECK(colored({"doctor", "--color", "always"}));
  CHECK_FALSE(colored({"doctor"}));  // into a pipe
  CHECK_FALSE(colored({"status", "--color", "always", "--json", "stock"}));
  CHECK(rlock_on(server, {"status", "--color", "sometimes", "stock"}).code == 64);
}

SERVER_CASE("status: the holder, as JSON with the names that scripts rely on" * doctest::test_suite("topology-quick"))
{
  Process holder = held_run(server, {"-k", "stock", "--label", "nightly"});

  const Finished told = rlock_on(server, {"status", "-k", "stock", "--json"});
  CHECK(told.code == 0);
  const Json state = Json::parse(told.out);
  CHECK(state.at("key") == "stock");
  CHECK(state.at("held") == true);
  CHECK(state.at("ttl_ms") > 20'000);
  CHECK(state.at("fence") > 1'700'000'000'000'000);
  const Json& who = state.at("holders").at(0);
  CHECK(who.at("pid") == holder.pid());
  CHECK(who.at("command") == "sleep 60");
  CHECK(who.at("label") == "nightly");
  CHECK(who.at("lease_ms") == 30'000);
  CHECK(who.at("auto") == true);
  CHECK(who.at("count") == 1);
  CHECK(who.at("since").text().ends_with("Z"));
  CHECK(state.at("waiting").empty());

  const Finished text = rlock_on(server, {"status", "-k", "stock"});
  CHECK(has(text.out, "sleep 60"));
  CHECK(rlock_on(server, {"status", "-k", "stock", "-k", "free"}).code == 1);
}

SERVER_CASE("status, ttl: free is 1, and a foreign holder is shown as what it is" *
            doctest::test_suite("topology-quick"))
{
  CHECK(rlock_on(server, {"status", "-k", "free"}).code == 1);
  expect_end(rlock_on(server, {"ttl", "-k", "free"}), 1, {out_is("0\n")});

  server.command({"HSET", "java", "uuid:7", "2"});
  server.command({"PEXPIRE", "java", "20000"});
  const Json state = Json::parse(rlock_on(server, {"status", "-k", "java", "--json"}).out);
  CHECK(state.at("holders").at(0).at("owner") == "uuid:7");
  CHECK(state.at("holders").at(0).at("count") == 2);
  CHECK(state.at("holders").at(0).at("host").is_null());
  CHECK(std::stoi(rlock_on(server, {"ttl", "-k", "java"}).out) > 15'000);
}

SERVER_CASE("list: the locks among everything else")
{
  server.command({"SET", "a:string", "x"});
  server.command({"HSET", "a:hash", "name", "bob"});
  server.command({"HSET", "a:java", "8743c9c0-0795-4907-87fd-6c719a6b4586:7", "1"});
  server.command({"PEXPIRE", "a:java", "20000"});
  Process holder = held_run(server, {"-k", "a:ours"});
  Process other = held_run(server, {"-k", "b:ours"});

  const Finished told = rlock_on(server, {"list", "a:*", "--json"});
  CHECK(told.code == 0);
  std::vector<std::string> keys;
  for (std::size_t from = 0; from < told.out.size(); from = told.out.find('\n', from) + 1) {
    keys.push_back(Json::parse(told.out.substr(from, told.out.find('\n', from) - from)).at("key"));
  }
  CHECK(keys == std::vector<std::string>{"a:java", "a:ours"});
  CHECK_FALSE(has(rlock_on(server, {"list", "z:*"}).out, "ours"));
}

SERVER_CASE("force-unlock: asks for consent, and touches nothing without it")
{
  Process holder = held_run(server, {"-k", "stock"});
  CHECK(rlock_on(server, {"force-unlock", "-k", "stock"}).code == 64);
  CHECK(rlock_on(server, {"force-unlock", "-k", "stock", "--token", "somebody:else"}).code == 1);
  CHECK(holder.running());
  CHECK(is_held(server, "stock"));
  CHECK(rlock_on(server, {"force-unlock", "-k", "free", "--yes"}).code == 1);
}

SERVER_CASE("force-unlock: a holder so young that it does not listen yet is still told")
{
  Process holder = held_run(server, {"-k", "stock"});
  const Finished forced = rlock_on(server, {"force-unlock", "-k", "stock", "--yes", "--json"});
  CHECK(Json::parse(forced.out).at("how") == "released");
  CHECK(holder.wait(5s) == exited(121));
}

SERVER_CASE("force-unlock: a holder that does not answer is revoked, and learns by whom when it wakes")
{
  Process holder = held_run(server, {"-k", "stock", "--ttl", "3s"});
  wait_until([&] { return listening(server) > 0; }, "the holder listens");
  holder.signal(SIGSTOP);
  const Finished forced = rlock_on(server, {"force-unlock", "-k", "stock", "--yes", "--grace", "300ms", "--json"});
  CHECK(forced.code == 0);
  CHECK(Json::parse(forced.out).at("how") == "expired");
  CHECK_FALSE(is_held(server, "stock"));
  holder.signal(SIGCONT);
  expect_end(holder, exited(121), {err_has("force-unlocked by ")}, 5s);
}

TEST_SUITE_END();
