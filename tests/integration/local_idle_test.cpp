// SPDX-License-Identifier: Apache-2.0
// The server of `local:` ends when it is not used, and no lock is lost by that.
#include "base/fd.h"
#include "redis/local.h"
#include "support/integration.h"
#include "support/runtime_dir.h"

#include <fcntl.h>
#include <sys/file.h>

using namespace rlock::test;

namespace {

ProcessOptions with_idle(const RuntimeDir& dir, const std::string& idle)
{
  ProcessOptions options = dir.options();
  options.env["RLOCK_LOCAL_IDLE"] = idle;
  return options;
}

// rlock with the server, which the words that come after the verb do not name.
Finished on_local(const ProcessOptions& options, Words words)
{
  words.insert(words.begin() + 1, {"-S", "local:"});
  return run_rlock(std::move(words), options);
}

void await_end(const RuntimeDir& dir)
{
  wait_until([&] { return dir.servers().empty() && dir.watchers().empty(); }, "the server and its watcher have ended");
}

void let_pass(Millis time)
{
  const Instant since = BootClock().now();
  wait_until([&] { return BootClock().now() - since > time; }, "the time has passed");
}

// `kind`: the options of a lock. Its holder has no connection.
void check_kept(const Words& kind)
{
  const RuntimeDir dir;
  const RuntimeDir other;  // whose callers find a server by its process, and would start one that knows no lock
  const ProcessOptions options = with_idle(dir, "200ms");
  const Finished acquired = succeeded(on_local(options, joined({"acquire", "k", "--lease", "5m"}, kind)));
  const auto servers = dir.servers();
  REQUIRE(servers.size() == 1);
  let_pass(2s);
  CHECK(dir.servers() == servers);
  Words exclusive = kind;
  if (kind == Words{"-s"}) {
    exclusive = {"-x"};
  }
  CHECK(on_local(with_idle(other, "200ms"), joined(joined({"run", "-n", "-k", "k"}, exclusive), {"--", "true"})).code ==
        75);
  const std::string token = acquired.out.substr(0, acquired.out.find('\n'));
  CHECK(on_local(options, {"release", "k", "--token", token}).code == 0);
  await_end(dir);
}

}  // namespace

LOCAL_CASE("local: the server ends when no process has used it for RLOCK_LOCAL_IDLE, and its data stays")
{
  const ProcessOptions options = with_idle(dir, "300ms");
  const Words once{"once", "-k", "o", "--for", "1h", "--", "echo", "ran"};
  CHECK(on_local(options, once).out == "ran\n");
  await_end(dir);
  CHECK_FALSE(std::filesystem::exists(dir.socket()));
  expect_end(on_local(options, once), 0, {out_is("")});
  CHECK(has(on_local(options, {"history", "o"}).out, "succeeded"));
  await_end(dir);
}

LOCAL_CASE("local: the process that ends the server does not look like the rlock that started it")
{
  REQUIRE(on_local(dir.options(), {"run", "-k", "k", "--", "true", "words of the job"}).code == 0);
  wait_until([&] { return dir.watchers().size() == 1; }, "the process has its name");
  const std::string process = "/proc/" + std::to_string(*dir.watchers().begin());
  CHECK(text_of(process + "/cmdline").starts_with("rlock: ends the server of local: when it is not used"));
  CHECK_FALSE(has(text_of(process + "/cmdline"), "words"));
  CHECK_FALSE(has(text_of(process + "/environ"), "XDG_RUNTIME_DIR"));
  dir.kill_servers();
  wait_until([&] { return dir.watchers().empty(); }, "it has ended with the server");
}

LOCAL_CASE("local: a job that runs keeps the server, also one that is silent for longer than RLOCK_LOCAL_IDLE")
{
  const ProcessOptions options = with_idle(dir, "200ms");
  const auto end = make_temp_dir("end") / "end";
  const std::string job = "touch " + end.string() + ".begun; until [ -e " + end.string() + " ]; do sleep 0.02; done";
  Process holder = start_rlock({"run", "-S", "local:", "-k", "k", "--ttl", "1m", "--", "sh", "-c", job}, options);
  wait_until([&] { return std::filesystem::exists(end.string() + ".begun"); }, "the job has begun");
  const auto servers = dir.servers();
  REQUIRE(servers.size() == 1);
  let_pass(2s);
  CHECK(dir.servers() == servers);
  std::ofstream(end).close();
  CHECK(holder.wait(30s) == Exit{0});
  await_end(dir);
}

TEST_CASE("local: a lock whose holder has no connection keeps the server, a plain one and one that is shared")
{
  check_kept({});
  check_kept({"-s"});
}

TEST_CASE("local: a lock whose holder has no connection keeps the server, a permit and one of --format string")
{
  check_kept({"--permits", "1"});
  check_kept({"--format", "string"});
}

LOCAL_CASE("local: the server does not end while a caller is about to connect, and a caller waits for its end")
{
  const ProcessOptions options = with_idle(dir, "100ms");
  REQUIRE(on_local(with_idle(dir, "0"), {"run", "-k", "k", "--", "true"}).code == 0);
  dir.kill_servers();
  Fd entry(::open(dir.home().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(entry.get(), LOCK_SH) == 0);  // as a caller that has found the server and was stopped then
  REQUIRE(on_local(options, {"run", "-k", "k", "--", "true"}).code == 0);
  const auto servers = dir.servers();
  let_pass(1s);
  CHECK(dir.servers() == servers);
  entry.reset();
  await_end(dir);

  REQUIRE(on_local(with_idle(dir, "0"), {"run", "-k", "k", "--", "true"}).code == 0);
  entry = Fd(::open(dir.home().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(entry.get(), LOCK_EX) == 0);  // as the process that ends the server
  expect_end(on_local(options, {"run", "-k", "k", "--server-timeout", "300ms", "--", "true"}), 69,
             {err_has("has been ending for")});
  Process waiting = start_rlock({"run", "-S", "local:", "-k", "k", "--", "true"}, options);
  dir.kill_servers();
  entry.reset();
  CHECK_MESSAGE(waiting.wait(30s) == Exit{0}, waiting.err());
}

TEST_CASE("local: callers that come at the moment of the end exclude each other, and each is served")
{
  constexpr int rounds = 40;
  const RuntimeDir dir;
  const ProcessOptions options = with_idle(dir, "20ms");
  const std::filesystem::path number = make_temp_dir("count") / "n";
  std::ofstream(number) << "0\n";
  const std::string file = number.string();
  const Words words{
      "run", "-S", "local:", "-k", "k", "--", "sh", "-c", "n=$(cat " + file + "); echo $((n+1)) > " + file};
  for (int round = 0; round < rounds; ++round) {
    std::this_thread::sleep_for(Millis{round});  // the server ends 20 to 40 ms after the last connection
    Process one = start_rlock(words, options);
    Process other = start_rlock(words, options);
    const Exit end_of_one = one.wait(30s);
    CHECK_MESSAGE(end_of_one == Exit{0}, one.err());
    const Exit end_of_other = other.wait(30s);
    CHECK_MESSAGE(end_of_other == Exit{0}, other.err());
    CHECK(dir.servers().size() <= 1);
  }
  int sum = 0;
  std::ifstream(number) >> sum;
  CHECK(sum == 2 * rounds);
  CHECK(count(text_of(dir.home() / "redis.log"), "eady to accept connections") > 2);  // it has ended meanwhile
  await_end(dir);
}

LOCAL_CASE("local: RLOCK_LOCAL_IDLE=0 keeps the server, and what is no duration is refused")
{
  REQUIRE(on_local(with_idle(dir, "0"), {"run", "-k", "k", "--", "true"}).code == 0);
  wait_until([&] { return dir.watchers().empty(); }, "no process watches it");
  CHECK(dir.servers().size() == 1);
  expect_end(on_local(with_idle(dir, "soon"), {"run", "-k", "k", "--", "true"}), 78,
             {err_is("rlock: RLOCK_LOCAL_IDLE: 'soon' is no duration (try 10m; 0: never)\n")});
}

TEST_CASE("local: of several directories the server is started in the one that was used last, which has the data")
{
  const BootClock clock;
  const auto limit = [&] { return CallLimits{clock.now() + 30s, StopToken::never()}; };
  const auto parent = make_temp_dir("local");
  LocalSpec spec{.directories = {(parent / "second").string()}, .name = "rlock-test-" + std::to_string(::getpid())};
  REQUIRE(local_server(spec, clock, limit()));
  shut_down(parent / "second" / "redis.sock");
  spec.directories.insert(spec.directories.begin(), (parent / "first").string());
  const auto again = local_server(spec, clock, limit());
  REQUIRE(again);
  CHECK(again->endpoint.path == (parent / "second" / "redis.sock").string());
  shut_down(parent / "second" / "redis.sock");
}
