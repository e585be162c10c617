// SPDX-License-Identifier: Apache-2.0
// rlock watch on a terminal, and without one.
#include "support/guardian_of.h"
#include "support/integration.h"
#include "support/terminal.h"

#include <system_error>

#include <termios.h>

using namespace rlock::test;

namespace {

// A user at a terminal, and a server on which "stock" is held.
class Viewer {
 public:
  Viewer() : holder(start_on(server, {"run", "-k", "stock", "--", "sleep", "1000"}))
  {
    wait_until([&] { return is_held(server, "stock"); }, "the lock is held");
    REQUIRE(::tcgetattr(terminal.process_side(), &m_before) == 0);
  }

  // Returns when the screen shows `text`.
  Process watch(const std::string& text = "sleep 1000")
  {
    ProcessOptions options;
    options.terminal = terminal.process_side();
    Process process = start_on(server, {"watch", "--interval", "100ms"}, options);
    sees(text);
    return process;
  }

  void sees(const std::string& text, std::size_t from = 0)
  {
    wait_until([&] { return terminal.seen().find(text, from) != std::string::npos; }, "the screen shows " + text);
    m_seen = terminal.seen().size();
  }

  // The text comes after all that was seen so far.
  void press(const std::string& keys, const std::string& text)
  {
    terminal.type(keys);
    sees(text, m_seen);
  }

  void freeze(const std::string& text)
  {
    press("z", "freeze stock for 2h, ");
    press("y", text);
  }

  void quit(Process& process)
  {
    terminal.type("q");
    CHECK(process.wait() == success);
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
  TestTerminal terminal;
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

#define VIEWER_CASE(title) CASE_WITH(Viewer, viewer, title)

VIEWER_CASE("watch: shows what is held until q, and gives the terminal back")
{
  Process watch = viewer.watch();
  viewer.sees("stock: held");
  viewer.quit(watch);
  viewer.has_terminal_back();
}

TEST_CASE("watch: gives the terminal back when it is ended by a signal")
{
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) {
    CAPTURE(signal);
    Viewer viewer;
    Process watch = viewer.watch();
    watch.signal(signal);
    CHECK(watch.wait() == died_of(signal));
    viewer.has_terminal_back();
  }
}

VIEWER_CASE("watch: a window that grows is filled at once")
{
  Process watch = viewer.watch();
  viewer.terminal.resize(30, 120);
  viewer.sees(std::string(120 - 76, ' '));  // the column titles, filled up to the new width
  viewer.quit(watch);
}

VIEWER_CASE("watch: a server that goes away is told, and shown again when it is back")
{
  Process watch = viewer.watch();
  viewer.server.kill_hard();
  viewer.sees("\x1b[31m");
  viewer.server.restart();
  viewer.sees("no lock is held");
  viewer.quit(watch);
}

VIEWER_CASE("watch: lines where there is no terminal")
{
  Process watch = start_on(viewer.server, {"watch", "--interval", "100ms", "--json"});
  wait_until([&] { return has(watch.out(), "\"key\":\"stock\""); }, "a line is written");
  watch.signal(SIGTERM);
  CHECK(watch.wait() == died_of(SIGTERM));
}

VIEWER_CASE("watch: Enter gives the selected lock the whole screen, and Esc gives it back")
{
  viewer.terminal.resize(12, 80);  // no room for the details below the table
  Process watch = viewer.watch("stock");
  viewer.press("\r", "stock: held");
  viewer.sees("Esc back");
  CHECK(rlock_on(viewer.server, {"run", "-n", "-k", "stock", "--", "true"}).code == 75);
  viewer.sees("skipped");  // in the history of the lock
  Process other = start_on(viewer.server, {"run", "-k", "another", "--", "sleep", "1000"});
  viewer.holder.signal(SIGTERM);
  viewer.sees("stock: free");  // and not the details of another lock
  viewer.press("\x1b", "another");
  viewer.quit(watch);
}

VIEWER_CASE("watch: f asks, and takes the lock of the holder after y only")
{
  Process watch = viewer.watch();
  viewer.press("f", "force-unlock stock, held by ");
  viewer.press("n", "Enter details");
  CHECK(viewer.holder.running());
  viewer.press("f", "force-unlock stock, held by ");
  viewer.terminal.type("y");
  CHECK(viewer.holder.wait() == exited(121));
  viewer.sees("stock: released by ");
  viewer.quit(watch);
}

VIEWER_CASE("watch: z freezes a lock when its job has ended, and thaws it")
{
  Process watch = viewer.watch();
  viewer.freeze("the freeze of stock waits");
  CHECK(viewer.holder.running());
  viewer.holder.signal(SIGTERM);
  viewer.sees("stock is frozen by ");
  CHECK(as_int(viewer.server.command({"PTTL", "stock"})) > 7'100'000);
  CHECK(rlock_on(viewer.server, {"run", "-n", "-k", "stock", "--", "true"}).code == 75);
  viewer.press("zy", "stock is thawed");  // typed in one go
  CHECK_FALSE(is_held(viewer.server, "stock"));
  viewer.quit(watch);
}

VIEWER_CASE("watch: a freeze that waits keeps no other action from being done, and z gives it up")
{
  Process watch = viewer.watch();
  viewer.freeze("the freeze of stock waits");
  viewer.press("z", "give up the freeze of stock");
  viewer.press("y", "stock: its freeze is given up");

  viewer.freeze("the freeze of stock waits");
  viewer.press("f", "force-unlock stock, held by ");
  viewer.terminal.type("y");
  CHECK(viewer.holder.wait() == exited(121));
  viewer.sees("stock is frozen by ");
  viewer.quit(watch);
}

VIEWER_CASE("watch: a job is no freeze, whatever its label: z does not release its lock")
{
  Process job = start_on(viewer.server, {"run", "-k", "a", "--label", "freeze: dryer", "--", "sleep", "1000"});
  Process watch = viewer.watch("freeze: dryer");
  viewer.press("z", "freeze a for 2h, ");
  viewer.press("n", "Enter details");
  viewer.press("f", "force-unlock a, held by ");
  viewer.terminal.type("n");
  viewer.quit(watch);
  CHECK(is_held(viewer.server, "a"));
}

VIEWER_CASE("watch: a freeze that gets its turn while the user is asked whether to give it up stays")
{
  Process watch = viewer.watch();
  viewer.freeze("the freeze of stock waits");
  viewer.press("z", "give up the freeze of stock");
  viewer.holder.signal(SIGTERM);
  viewer.holder.wait();
  wait_until([&] { return as_int(viewer.server.command({"PTTL", "stock"})) > 7'000'000; }, "it is frozen");
  viewer.press("y", "stock: its freeze waits no longer");
  viewer.press("z", "thaw stock");
  viewer.press("y", "stock is thawed");
  viewer.quit(watch);
}

VIEWER_CASE("watch: a lock that is free can be frozen, and has no holder to take it from")
{
  Process watch = viewer.watch();
  viewer.press("\r", "Esc back");
  viewer.holder.signal(SIGTERM);
  viewer.sees("stock: free");
  viewer.press("f", "stock is free");
  viewer.freeze("stock is frozen by ");
  CHECK(rlock_on(viewer.server, {"run", "-n", "-k", "stock", "--", "true"}).code == 75);
  viewer.quit(watch);
}

VIEWER_CASE("watch: a freeze that waits has no socket and no terminal of the screen")
{
  Process watch = viewer.watch();
  viewer.freeze("the freeze of stock waits");
  wait_until([&] { return as_int(viewer.server.command({"ZCARD", "rlock:queue:{stock}"})) == 1; }, "the freeze waits");
  const pid_t freeze = find_guardian(watch.pid());  // its first child
  REQUIRE(freeze > 0);
  const auto of_screen = open_files(watch.pid());
  for (const auto& opened : open_files(freeze)) {
    CAPTURE(opened.first);
    const std::string& file = opened.second;
    CAPTURE(file);
    CHECK_FALSE(file.starts_with("/dev/pts"));
    const bool is_shared = std::ranges::any_of(of_screen, [&](const auto& each) { return each.second == file; });
    CHECK_FALSE((file.starts_with("socket:") && is_shared));
  }
}

VIEWER_CASE("watch: a freeze that waits for a job is given up when its user leaves")
{
  Process watch = viewer.watch();
  viewer.freeze("the freeze of stock waits");
  wait_until([&] { return as_int(viewer.server.command({"ZCARD", "rlock:queue:{stock}"})) == 1; }, "the freeze waits");
  viewer.quit(watch);
  viewer.holder.signal(SIGTERM);
  viewer.holder.wait();
  CHECK(rlock_on(viewer.server, {"run", "-w", "30s", "-k", "stock", "--", "true"}).code == 0);
}
