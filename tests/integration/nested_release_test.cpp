// SPDX-License-Identifier: Apache-2.0
// A manual release under a lock that is held already releases that hold and no other.
#include "support/integration.h"
#include "support/paths.h"

using namespace rlock::test;

namespace {

const std::vector<Words> kinds{{}, {"-x"}, {"-s"}, {"--permits", "1"}, {"--format", "string"}};

std::string shown(const Words& kind) { return kind.empty() ? "plain" : kind.back(); }

// `rlock run -k k` of this kind, with a script whose $0 is rlock and whose arguments are the kind.
Finished run_script(const RedisServer& server, const Words& kind, const std::string& script)
{
  return rlock_on(server, joined({"run", "-k", "k"}, with_job(kind, joined({"sh", "-c", script, RLOCK_BINARY}, kind))));
}

}  // namespace

TEST_SUITE_BEGIN("topology-quick");

SERVER_CASE("nested: what a nested job lets go of is its own hold, whatever the kind")
{
  for (const Words& kind : kinds) {
    CAPTURE(shown(kind));
    const Words inner =
        rlock_argv(joined({"run", "-S", server.url(), "-k", "k"}, with_job(kind, {RLOCK_BINARY, "release"})));
    const Words job{"sh", "-c", "\"$@\" || exit 9; exec " + std::string(RLOCK_BINARY) + " check", "sh"};
    expect_end(rlock_on(server, joined({"run", "-k", "k"}, with_job(kind, joined(job, inner)))), 0, {err_is("")});
    server.command({"FLUSHALL"});
  }
}

SERVER_CASE("nested: a read under a write of one's own is let go by its token, and the write stays")
{
  const std::string script =
      "t=$(\"$0\" acquire -s -k k --lease 20s) && \"$0\" release -k k --token $t && \"$0\" check";
  const std::string fresh = " || exit 8; env -u RLOCK_HELD -u RLOCK_TOKEN -u RLOCK_KEY \"$@\"; [ $? = 42 ]";
  const Words another = rlock_argv({"run", "-q", "-S", server.url(), "-s", "-n", "-k", "k", "-E", "42", "--", "true"});
  const Words job{"sh", "-c", script + fresh, RLOCK_BINARY};
  expect_end(rlock_on(server, joined({"run", "-x", "-k", "k", "--"}, joined(job, another))), 0, {err_is("")});
}

SERVER_CASE("nested: a released hold is gone, though its owner still has the lock")
{
  const std::string asks_for_it = "ask() { \"$@\" 2> said; code=$?; [ $code = 1 ] && grep -q released said; }\n";
  const std::string script = "cd " + make_temp_dir("released").string() + "\n" + asks_for_it +
                             "t=$(\"$0\" acquire \"$@\" -k k --lease 20s) || exit 2\n"
                             "\"$0\" check -k k --token $t || exit 3\n"
                             "\"$0\" renew -k k --token $t || exit 4\n"
                             "\"$0\" release -k k --token $t || exit 5\n"
                             "ask \"$0\" check -k k --token $t || exit 6\n"
                             "ask \"$0\" renew -k k --token $t --lease 1h || exit 7\n"
                             "\"$0\" release -k k --token $t || exit 8\n"  // a request that is sent twice
                             "\"$0\" check\n";
  for (const Words& kind : kinds) {
    CAPTURE(shown(kind));
    expect_end(run_script(server, kind, script), 0, {err_is("")});
    server.command({"FLUSHALL"});
  }
}

SERVER_CASE("nested: the outermost hold, once let go of, is not its job's while an inner one goes on")
{
  const std::string script =
      "t=$(\"$0\" acquire \"$@\" -k k --lease 20s) || exit 2\n"
      "\"$0\" release || exit 3\n"
      "\"$0\" check -q && exit 4\n"
      "\"$0\" check -k k --token $t || exit 5\n"
      "exec \"$0\" release -k k --token $t\n";
  for (const Words& kind : kinds) {
    CAPTURE(shown(kind));
    const int code = run_script(server, kind, script).code;
    CHECK((code == 0 || code == 121));  // 121 if its own renewal has seen it
    server.command({"FLUSHALL"});
  }
}

TEST_SUITE_END();
