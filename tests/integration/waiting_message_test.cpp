// SPDX-License-Identifier: Apache-2.0
// The message that a waiting user sees on a terminal.
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/terminal.h"

#include <regex>

using namespace rlock::test;

TEST_SUITE_BEGIN("topology");

SERVER_CASE("waiting message: on a terminal of 80 columns place, age and holder are seen, however long key and job are")
{
  const std::string key = "k" + std::string(100, 'k');
  const std::string job = "sleep 60 & wait # " + std::string(150, 'x');
  Process holder = start_on(server, {"run", "-k", key, "--", "sh", "-c", job});
  wait_until([&] { return as_int(server.command({"EXISTS", key})) == 1; }, "it is held");
  TestTerminal terminal;
  ProcessOptions options;
  options.terminal = terminal.process_side();
  Process waiter = start_on(server, {"run", "-k", key, "--", "true"}, options);
  const std::regex line("rlock: waiting for k+\\.\\.\\., place 1, held for [0-9]+m?s by [^ ]+");
  std::string seen;
  wait_until(
      [&] {
        seen = terminal.seen();
        return std::regex_search(seen, line);
      },
      "the line shows them", Millis{30'000});
  waiter.signal(SIGTERM);
  waiter.wait();
}

TEST_SUITE_END();
