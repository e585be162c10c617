// SPDX-License-Identifier: Apache-2.0
// rlock watch on a terminal, and without one.
#include "support/redis_fixture.h"
#include "support/terminal.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include <termios.h>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// A user at a terminal, and a server on which "stock" is held.
class Viewer {
 public:
  Viewer() : m_holder(rlock_argv({"run", "-S", server.url(), "-k", "stock", "--", "sleep", "1000"}))
  {
    wait_until([&] { return as_int(server.command({"EXISTS", "stock"})) == 1; }, "the lock is held");
    REQUIRE(::tcgetattr(terminal.process_side(), &m_before) == 0);
  }

  Process watch()
  {
    ProcessOptions options;
    options.terminal = terminal.process_side();
    return Process(rlock_argv({"watch", "-S", server.url(), "--interval", "100ms"}), options);
  }

  void sees(const std::string& text)
  {
    wait_until([&] { return terminal.seen().find(text) != std::string::npos; }, "the screen shows " + text);
  }

  void has_terminal_back()
  {
    termios now{};
    REQUIRE(::tcgetattr(terminal.process_side(), &now) == 0);
    CHECK(now.c_lflag == m_before.c_lflag);
    CHECK(now.c_cc[VSUSP] == m_before.c_cc[VSUSP]);
    CHECK(terminal.seen().ends_with("\x1b[?25h\x1b[?1049l"));
  }

  RedisServer server;
  Terminal terminal;

 private:
  Process m_holder;
  termios m_before{};
};

}  // namespace

TEST_CASE("watch: shows what is held until q, and gives the terminal back")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.sees("stock: held");
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
  viewer.has_terminal_back();
}

TEST_CASE("watch: gives the terminal back when it is ended by a signal")
{
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) {
    CAPTURE(signal);
    Viewer viewer;
    Process watch = viewer.watch();
    viewer.sees("sleep 1000");
    watch.signal(signal);
    CHECK(watch.wait() == Exit{.code = -1, .signal = signal});
    viewer.has_terminal_back();
  }
}

TEST_CASE("watch: a window that grows is filled at once")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.terminal.resize(30, 120);
  viewer.sees(std::string(120 - 76, ' '));  // the column titles, filled up to the new width
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
}

TEST_CASE("watch: a server that goes away is told, and shown again when it is back")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.server.kill_hard();
  viewer.sees("\x1b[31m");
  viewer.server.restart();
  viewer.sees("no lock is held");
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
}

TEST_CASE("watch: lines where there is no terminal")
{
  const Viewer viewer;
  Process watch(rlock_argv({"watch", "-S", viewer.server.url(), "--interval", "100ms", "--json"}));
  wait_until([&] { return watch.out().find("\"key\":\"stock\"") != std::string::npos; }, "a line is written");
  watch.signal(SIGTERM);
  CHECK(watch.wait() == Exit{.code = -1, .signal = SIGTERM});
}
