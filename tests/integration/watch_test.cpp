// SPDX-License-Identifier: Apache-2.0
// rlock watch on a terminal, and without one.
#include "support/guardian_of.h"
#include "support/redis_fixture.h"
#include "support/terminal.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include <termios.h>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// A user at a terminal, and a server on which "stock" is held.
class Viewer {
 public:
  Viewer() : holder(rlock_argv({"run", "-S", server.url(), "-k", "stock", "--", "sleep", "1000"}))
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
    m_seen = terminal.seen().size();
  }

  // After what was seen so far.
  void sees_again(const std::string& text)
  {
    wait_until([&] { return terminal.seen().find(text, m_seen) != std::string::npos; }, "the screen shows " + text);
    m_seen = terminal.seen().size();
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
  Process holder;

 private:
  termios m_before{};
  std::size_t m_seen = 0;
};

// By number: "socket:[4711]", "/dev/pts/3".
std::map<int, std::string> open_files(pid_t pid)
{
  std::map<int, std::string> files;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    files[std::stoi(entry.path().filename())] = std::filesystem::read_symlink(entry.path(), gone);
  }
  return files;
}

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

TEST_CASE("watch: Enter gives the selected lock the whole screen, and Esc gives it back")
{
  Viewer viewer;
  viewer.terminal.resize(12, 80);  // no room for the details below the table
  Process watch = viewer.watch();
  viewer.sees("stock");
  viewer.terminal.type("\r");
  viewer.sees("stock: held");
  viewer.sees("Esc back");
  CHECK(run_rlock({"run", "-S", viewer.server.url(), "-n", "-k", "stock", "--", "true"}).code == 75);
  viewer.sees("skipped");  // in the history of the lock
  Process other(rlock_argv({"run", "-S", viewer.server.url(), "-k", "another", "--", "sleep", "1000"}));
  viewer.holder.signal(SIGTERM);
  viewer.sees("stock: free");  // and not the details of another lock
  viewer.terminal.type("\x1b");
  viewer.sees_again("another");
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
}

TEST_CASE("watch: f asks, and takes the lock of the holder after y only")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.terminal.type("f");
  viewer.sees("force-unlock stock, held by ");
  viewer.terminal.type("n");
  viewer.sees_again("Enter details");
  CHECK(viewer.holder.running());
  viewer.terminal.type("f");
  viewer.sees_again("force-unlock stock, held by ");
  viewer.terminal.type("y");
  CHECK(viewer.holder.wait() == Exit{.code = 121, .signal = 0});
  viewer.sees("stock: released by ");
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
}

TEST_CASE("watch: z freezes a lock when its job has ended, and thaws it")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.terminal.type("z");
  viewer.sees("freeze stock for 2h, ");
  viewer.terminal.type("y");
  viewer.sees("the freeze of stock waits");
  CHECK(viewer.holder.running());
  viewer.holder.signal(SIGTERM);
  viewer.sees("stock is frozen until ");
  CHECK(as_int(viewer.server.command({"PTTL", "stock"})) > 7'100'000);
  CHECK(run_rlock({"run", "-S", viewer.server.url(), "-n", "-k", "stock", "--", "true"}).code == 75);
  viewer.terminal.type("z");
  viewer.sees("thaw stock");
  viewer.terminal.type("y");
  viewer.sees("stock is thawed");
  CHECK(as_int(viewer.server.command({"EXISTS", "stock"})) == 0);
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
}

TEST_CASE("watch: a freeze that waits keeps no other action from being done, and z gives it up")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.terminal.type("z");
  viewer.sees("freeze stock for 2h, ");
  viewer.terminal.type("y");
  viewer.sees("the freeze of stock waits");
  viewer.terminal.type("z");
  viewer.sees("give up the freeze of stock");
  viewer.terminal.type("y");
  viewer.sees("stock: its freeze is given up");

  viewer.terminal.type("z");
  viewer.sees_again("freeze stock for 2h, ");
  viewer.terminal.type("y");
  viewer.sees_again("the freeze of stock waits");
  viewer.terminal.type("f");
  viewer.sees("force-unlock stock, held by ");
  viewer.terminal.type("y");
  CHECK(viewer.holder.wait() == Exit{.code = 121, .signal = 0});
  viewer.sees("stock is frozen until ");
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
}

TEST_CASE("watch: a job is no freeze, whatever its label: z does not release its lock")
{
  Viewer viewer;
  Process job(
      rlock_argv({"run", "-S", viewer.server.url(), "-k", "a", "--label", "freeze: dryer", "--", "sleep", "1000"}));
  Process watch = viewer.watch();
  viewer.sees("freeze: dryer");
  viewer.terminal.type("z");
  viewer.sees("freeze a for 2h, ");
  viewer.terminal.type("n");
  viewer.sees_again("Enter details");
  viewer.terminal.type("f");
  viewer.sees("force-unlock a, held by ");
  viewer.terminal.type("n");
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
  CHECK(as_int(viewer.server.command({"EXISTS", "a"})) == 1);
}

TEST_CASE("watch: a freeze that gets its turn while the user is asked whether to give it up stays")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.terminal.type("z");
  viewer.sees("freeze stock for 2h, ");
  viewer.terminal.type("y");
  viewer.sees("the freeze of stock waits");
  viewer.terminal.type("z");
  viewer.sees("give up the freeze of stock");
  viewer.holder.signal(SIGTERM);
  viewer.holder.wait();
  wait_until([&] { return as_int(viewer.server.command({"PTTL", "stock"})) > 7'000'000; }, "it is frozen");
  viewer.terminal.type("y");
  viewer.sees("stock: its freeze waits no longer");
  viewer.terminal.type("z");
  viewer.sees("thaw stock");
  viewer.terminal.type("y");
  viewer.sees("stock is thawed");
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
}

TEST_CASE("watch: a lock that is free can be frozen, and has no holder to take it from")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.terminal.type("\r");
  viewer.sees("Esc back");
  viewer.holder.signal(SIGTERM);
  viewer.sees("stock: free");
  viewer.terminal.type("f");
  viewer.sees("stock is free");
  viewer.terminal.type("z");
  viewer.sees("freeze stock for 2h, ");
  viewer.terminal.type("y");
  viewer.sees("stock is frozen until ");
  CHECK(run_rlock({"run", "-S", viewer.server.url(), "-n", "-k", "stock", "--", "true"}).code == 75);
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
}

TEST_CASE("watch: a freeze that waits has no socket and no terminal of the screen")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.terminal.type("z");
  viewer.sees("freeze stock for 2h, ");
  viewer.terminal.type("y");
  wait_until([&] { return as_int(viewer.server.command({"ZCARD", "rlock:queue:{stock}"})) == 1; }, "the freeze waits");
  const pid_t freeze = find_guardian(watch.pid());  // its first child
  REQUIRE(freeze > 0);
  const auto of_screen = open_files(watch.pid());
  for (const auto& [number, file] : open_files(freeze)) {
    CAPTURE(number);
    CAPTURE(file);
    CHECK_FALSE(file.starts_with("/dev/pts"));
    const bool is_shared = std::ranges::any_of(of_screen, [&](const auto& each) { return each.second == file; });
    CHECK_FALSE((file.starts_with("socket:") && is_shared));
  }
}

TEST_CASE("watch: a freeze that waits for a job is given up when its user leaves")
{
  Viewer viewer;
  Process watch = viewer.watch();
  viewer.sees("sleep 1000");
  viewer.terminal.type("z");
  viewer.sees("freeze stock for 2h, ");
  viewer.terminal.type("y");
  wait_until([&] { return as_int(viewer.server.command({"ZCARD", "rlock:queue:{stock}"})) == 1; }, "the freeze waits");
  viewer.terminal.type("q");
  CHECK(watch.wait() == Exit{.code = 0, .signal = 0});
  viewer.holder.signal(SIGTERM);
  viewer.holder.wait();
  CHECK(run_rlock({"run", "-S", viewer.server.url(), "-w", "30s", "-k", "stock", "--", "true"}).code == 0);
}
