// SPDX-License-Identifier: Apache-2.0
// The messages of rlock: the program's name, the length of lines, the end of output.
#include "support/history_reader.h"
#include "support/integration.h"
#include "support/paths.h"

using namespace rlock::test;
TEST_CASE("messages: errors of rflock begin with its name, those of rlock with rlock's")
{
  const auto dir = make_temp_dir("messages");
  std::filesystem::create_symlink(RLOCK_BINARY, dir / "rflock");
  for (const Words& words :
       std::vector<Words>{{"--no-such-option"}, {"-n", "k"}, {"-S", "unix:///nowhere", "k", "true"}}) {
    Words argv = joined({(dir / "rflock").string()}, words);
    Process rflock(argv);
    CHECK(rflock.wait(Millis{30'000}).code != 0);
    CHECK_MESSAGE(rflock.err().starts_with("rflock: "), rflock.err());
    CHECK_FALSE(has(rflock.err(), "\nrlock: "));
  }
  CHECK(run_rlock({"flock", "-n", "k"}).err.starts_with("rlock: "));
}

TEST_CASE("messages: a long word is not repeated in an error")
{
  const std::string endless(70'000, 'x');
  for (const Words& words : std::vector<Words>{{"status", "-S", endless + "://h"},
                                               {"status", "-S", "redis://" + endless},
                                               {"run", "-k", "k", "-w", endless, "true"},
                                               {endless},
                                               {"run", "--" + endless},
                                               {"--" + endless},
                                               {"list", "-o", endless},
                                               {"status", "-S", "redis+sentinel://" + endless + "/m"}}) {
    const Finished end = run_rlock(words);
    CHECK(end.code != 0);
    CHECK(end.err.size() < 600);
    CHECK(end.err.size() > 20);
  }
}

SERVER_CASE("messages: a reader that has enough ends watch and events without a word")
{
  REQUIRE(rlock_on(server, {"acquire", "-k", "k", "--lease", "5m"}).code == 0);
  const auto dir = make_temp_dir("messages");
  for (const char* verb : {"watch --interval 100ms", "watch --json --interval 100ms", "events"}) {
    CAPTURE(verb);
    const std::string status = (dir / "status").string();
    Process shell({"sh", "-c",
                   std::string("{ ") + RLOCK_BINARY + " " + verb + " -S '" + server.url() + "'; echo $? >" + status +
                       "; } | head -n 1 >/dev/null"});
    CHECK(shell.wait(Millis{30'000}) == Exit{0});
    wait_until([&] { return !text_of(status).empty(); }, "it has ended", Millis{30'000});
    CHECK(text_of(status) == "0\n");
    CHECK(shell.err() == "");
  }
}

SERVER_CASE("messages: --output is the format of the answer, and --format prometheus is still understood")
{
  REQUIRE(rlock_on(server, {"acquire", "-k", "k", "--lease", "5m"}).code == 0);
  const auto listed = [&](const Words& more) { return run_rlock(joined({"list", "-S", server.url()}, more)).out; };
  CHECK(has(listed({"-o", "prometheus"}), "rlock_held{key=\"k\"} 1"));
  CHECK(has(listed({"--output", "prometheus"}), "rlock_held{key=\"k\"} 1"));
  CHECK(has(listed({"--format", "prometheus"}), "rlock_held{key=\"k\"} 1"));
  CHECK(listed({"-o", "json"}).starts_with("{\"key\":\"k\""));
  CHECK(listed({"--json"}).starts_with("{\"key\":\"k\""));
  CHECK(listed({"-o", "text"}).starts_with("KEY"));
  CHECK(has(run_rlock({"list", "-o", "xml"}).err, "--output: 'xml' is none of text, json, prometheus"));
  const auto config = make_temp_dir("messages") / "rlock.toml";
  std::ofstream(config) << "format = \"string\"\n";
  CHECK(run_rlock({"list", "-S", server.url()}, {.env = {{"RLOCK_CONFIG", config.string()}}}).code == 0);
}

SERVER_CASE("messages: JSON lines carry holder, place, fence and exit code")
{
  Process holder = start_rlock(
      {"run", "-v", "--log-format", "json", "-S", server.url(), "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  wait_until([&] { return has(holder.err(), "\"started\""); }, "the job runs");
  CHECK(json_lines(holder.err()).at(0).at("event") == "server");
  const Json acquired = json_lines(holder.err()).at(1);
  CHECK(acquired.at("event") == "acquired");
  CHECK(acquired.at("fence") > 1'700'000'000'000'000);

  const Json busy =
      json_lines(run_rlock({"run", "-n", "--log-format", "json", "-S", server.url(), "-k", "k", "--", "true"}).err)
          .at(0);
  CHECK(busy.at("event") == "busy");
  CHECK(busy.at("exit_code") == 75);
  CHECK(has(busy.at("holder").text(), "running sleep 60"));
  CHECK(busy.at("fence").is_null());

  Process waiter = start_rlock({"run", "--log-format", "json", "-S", server.url(), "-k", "k", "--", "true"});
  wait_until([&] { return has(waiter.err(), "\"waiting\""); }, "it says that it waits", Millis{30'000});
  CHECK(json_lines(waiter.err()).at(0).at("place") == 1);

  const Json failed =
      json_lines(run_rlock({"run", "--log-format", "json", "-S", "unix:///nowhere", "-k", "k", "true"}).err).at(0);
  CHECK(failed.at("exit_code") == 69);

  server.command({"DEL", "k"});
  CHECK(holder.wait(Millis{30'000}).code == 121);
  const Json lost = json_lines(holder.err()).back();
  CHECK(lost.at("exit_code") == 121);
  CHECK(lost.at("fence") == acquired.at("fence"));
  waiter.wait(Millis{30'000});
}

TEST_CASE("messages: a server is named by host and port alone")
{
  const RedisServer server({.tcp = true, .alone = true});
  const std::string at = "127.0.0.1:" + std::to_string(server.port());
  CHECK(run_rlock({"run", "-S", at, "-k", "k", "--", "true"}).code == 0);
  CHECK(run_rlock({"run", "-k", "k", "--", "true"}, {.env = {{"RLOCK_SERVER", at}}}).code == 0);
  CHECK(run_rlock({"list", "-S", at}).code == 1);
}
