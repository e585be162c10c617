// SPDX-License-Identifier: Apache-2.0
// `rlock acquire -k A -k B`: several locks for a script, all or none, with one token for all.
#include "support/integration.h"
#include "support/json.h"
#include "support/paths.h"
#include "support/presences.h"
#include "support/script.h"
#include "support/topology.h"

#include <csignal>

using namespace rlock::test;

namespace {

constexpr const char* no_several_on_quorum = "several keys of acquire are refused there";
const Words both{"-k", "b", "-k", "a"};

bool are_both(const RedisServer& server, bool held)
{
  return is_held(server, "a") == held && is_held(server, "b") == held;
}

// A script that a file named "go" lets go on.
struct WaitingScript {
  WaitingScript(const RedisServer& server, const std::string& text)
      : dir(make_temp_dir("several")), process(script(server, text, in(dir)))
  {
  }
  static ProcessOptions in(const std::filesystem::path& dir)
  {
    ProcessOptions options;
    options.cwd = dir;
    return options;
  }
  void go() const { std::ofstream(dir / "go").put('x'); }

  std::filesystem::path dir;
  Process process;
};

}  // namespace

TEST_SUITE_BEGIN("topology");

SERVER_CASE("acquire: of several locks it takes all or none, and prints one token for all")
{
  const Words take = joined({"acquire"}, joined(both, {"-n", "--lease", "60s", "--json"}));
  if (is_quorum_topology() || ends_holds_with_clients()) {
    CHECK(rlock_on(server, take).code == (is_quorum_topology() ? 64 : 78));
    CHECK(are_both(server, false));
    return;
  }
  Process other = held_run(server, {"-k", "b"});
  CHECK(rlock_on(server, take).code == 75);
  CHECK_FALSE(is_held(server, "a"));
  expect_end(rlock_on(server, joined({"run", "-k", "c", "--", RLOCK_BINARY, "acquire", "-k", "c", "-k", "a"},
                                     {"--lease", "60s"})),
             64, {err_has("an outer run holds c")});
  CHECK_FALSE(is_held(server, "a"));
  expect_end(rlock_on(server, joined({"run", "-k", "c", "--", RLOCK_BINARY, "acquire", "-k", "c", "-k", "b"},
                                     {"-w", "2s", "--lease", "60s"})),
             64, {err_has("an outer run holds c")});  // which is told before b is waited for
  other.signal(SIGTERM);
  other.wait();

  const Finished taken = succeeded(rlock_on(server, take));
  const auto leases = json_lines(taken.out);
  REQUIRE(leases.size() == 2);
  CHECK(leases[0].at("key") == "a");
  CHECK(leases[1].at("key") == "b");
  CHECK(leases[0].at("token") == leases[1].at("token"));
  CHECK(leases[1].at("fence").number() > 0);

  const Words token = joined(both, {"--token", leases[0].at("token")});
  CHECK(json_lines(rlock_on(server, joined({"check", "--json"}, token)).out).size() == 2);
  CHECK(rlock_on(server, joined({"renew", "--lease", "90s"}, token)).code == 0);
  CHECK(rlock_on(server, {"release", "-k", "b", "--token", leases[0].at("token")}).code == 0);
  CHECK(is_held(server, "a"));
  const Finished half = rlock_on(server, joined({"check", "--json"}, token));
  expect_end(half, 1, {err_has("the lock b is not held")});
  CHECK(json_lines(half.out).size() == 1);
  CHECK(rlock_on(server, joined({"release"}, token)).code == 0);
  CHECK(are_both(server, false));
}

SERVER_CASE("keeper: it has all locks of a script, and a release without a key ends all")
{
  skip_on_quorum(no_several_on_quorum);
  WaitingScript holder(server, R"(lock=$(rlock acquire -S "$URL" -k b -k a --pid $$ --export) || exit; eval "$lock"
    echo "$RLOCK_KEY"; rlock check --json | wc -l; rlock run -k b -- echo nested
    while [ ! -e go ]; do sleep 0.02; done; rlock release; echo released; exec sleep 100)");
  wait_until([&] { return has(holder.process.out(), "nested"); }, "the script has both");
  CHECK(holder.process.out() == "a\n2\nnested\n");
  CHECK(are_both(server, true));
  holder.go();
  wait_until([&] { return has(holder.process.out(), "released"); }, "it has released");
  CHECK(are_both(server, false));
  wait_until([&] { return keepers(server).empty(); }, "the keeper is gone");
  CHECK(holder.process.err().empty());

  Process killed = script(server, R"(lock=$(rlock acquire -S "$URL" -k b -k a --pid $$ --export) || exit; eval "$lock"
    echo ready; exec sleep 100)");
  wait_until([&] { return has(killed.out(), "ready"); }, "the script has both");
  killed.signal(SIGKILL);
  wait_until([&] { return are_both(server, false); }, "both are free");
}

SERVER_CASE("keeper: one lost lock counts as the loss of all, and the others stay held until the script has ended")
{
  skip_on_quorum(no_several_on_quorum);
  // Without --export no KILL follows, and the script goes on for longer than a lease.
  WaitingScript holder(server, R"(trap 'echo told' TERM
    token=$(rlock acquire -S "$URL" -k a -k b --pid $$ --ttl 1s) || exit; echo ready
    while [ ! -e go ]; do sleep 0.02; done)");
  wait_until([&] { return has(holder.process.out(), "ready"); }, "the script has both");
  server.command({"DEL", "b"});
  CHECK(rlock_on(server, {"run", "-k", "b", "-n", "--", "true"}).code == 0);  // the grant tells the keeper
  wait_until([&] { return has(holder.process.out(), "told"); }, "the script is told");
  CHECK(rlock_on(server, {"run", "-k", "a", "-w", "2500ms", "--", "true"}).code == 75);
  holder.go();
  holder.process.wait();
  wait_until([&] { return are_both(server, false); }, "both are free");
}

SERVER_CASE("keeper: the loss of one lock kills a script that cleans up because another one is force-unlocked")
{
  skip_on_quorum(no_several_on_quorum);
  WaitingScript holder(server, R"(trap 'echo told' TERM
    lock=$(rlock acquire -S "$URL" -k a -k b --pid $$ --export --kill-after 100s --ttl 100s) || exit; eval "$lock"
    echo ready; while [ ! -e go ]; do sleep 0.02; done)");
  wait_until([&] { return has(holder.process.out(), "ready"); }, "the script has both");
  Process forced = start_on(server, {"force-unlock", "-k", "a", "--yes"});
  wait_until([&] { return has(holder.process.out(), "told"); }, "the script is told");
  server.command({"DEL", "b"});
  CHECK(rlock_on(server, {"run", "-k", "b", "-n", "--", "true"}).code == 0);  // the grant tells the keeper
  CHECK(holder.process.wait() == died_of(SIGKILL));
  CHECK(forced.wait() == success);
}

TEST_SUITE_END();
