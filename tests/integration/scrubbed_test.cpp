// SPDX-License-Identifier: Apache-2.0
// Below a job whose environment was scrubbed (su -, sudo -i) rlock would wait for its own ancestor. It reports that and
// ends.
#include "support/integration.h"
#include "support/script.h"

using namespace rlock::test;

namespace {

const std::string reason = "this process runs under that job and would wait for itself";

}  // namespace

TEST_CASE("scrubbed: a lock that an ancestor holds is busy at once, and it is said why")
{
  struct Row {
    std::vector<std::string> outer;
    std::vector<std::string> inner;
  };
  const Row rows[] = {
      {{"-k", "k"}, {"-k", "k"}},
      {{"-k", "k"}, {"-k", "k", "-w", "100s"}},
      {{"-x", "-k", "k"}, {"-s", "-k", "k"}},
      {{"-s", "-k", "k"}, {"-x", "-k", "k"}},
      {{"--format", "string", "-k", "k"}, {"--format", "string", "-k", "k"}},
      {{"-k", "a", "-k", "k"}, {"-k", "k", "-k", "z"}},
  };
  for (const Row& row : rows) {
    const RedisServer server;
    const Words inner = rlock_argv(joined({"run", "-S", server.url()}, with_job(row.inner, {"echo", "ran"})));
    Process outer = start_run(server.url(), row.outer, joined({"env", "-i"}, inner));
    expect_end(outer, exited(75), {out_is(""), err_has(reason)}, 20s);
  }
}

SERVER_CASE("scrubbed: a lock that acquire --pid keeps for an ancestor is busy at once as well")
{
  Process holder = script(server, R"sh(lock=$(rlock acquire -S "$URL" -k k --pid $$ --export) || exit
                                     env -i "$(command -v rlock)" run -S "$URL" -k k -- echo ran; echo "run $?"
                                     env -i "$(command -v rlock)" acquire -S "$URL" -k k --lease 5s; echo "acquire $?")sh");
  expect_end(holder, success, {out_is("run 75\nacquire 75\n"), err_has(reason)}, 20s);
}

SERVER_CASE("scrubbed: permits of which others are free, and a lease that ends by itself, are waited for")
{
  const std::vector<std::string> inner =
      rlock_argv({"run", "-S", server.url(), "-k", "p", "--permits", "1", "-w", "300ms", "--", "true"});
  expect_end(rlock_on(server, joined({"run", "-k", "p", "--permits", "1", "--", "env", "-i"}, inner)), 75,
             {err_lacks(reason)});

  Process holder = script(server, R"sh(rlock acquire -S "$URL" -k k --lease 1s >/dev/null || exit
                                     env -i "$(command -v rlock)" run -S "$URL" -k k -- echo ran)sh");
  expect_end(holder, success, {out_is("ran\n")}, 20s);
}
