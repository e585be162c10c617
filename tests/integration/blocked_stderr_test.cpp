// SPDX-License-Identifier: Apache-2.0
// A stderr that blocks (a full pipe, a stopped terminal) never delays a lock, a job or a waiter.
#include "support/integration.h"
#include "support/terminal.h"

#include <array>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

enum class Kind { pipe, socket };

// A full pipe or socket; its writing end blocks.
class Full {
 public:
  explicit Full(Kind kind)
  {
    std::array<int, 2> ends{};
    REQUIRE((kind == Kind::pipe ? ::pipe2(ends.data(), O_CLOEXEC)
                                : ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data())) == 0);
    m_reader = Fd(ends[0]);
    m_writer = Fd(ends[1]);
    const std::string some(1024, '.');
    set_nonblocking(m_writer, true);
    while (::write(m_writer.get(), some.data(), some.size()) > 0) {
    }
    while (::write(m_writer.get(), some.data(), 1) > 0) {
    }
    set_nonblocking(m_writer, false);
  }

  // Starts rlock with the full end as stderr.
  [[nodiscard]] Process start(const std::vector<std::string>& words) const
  {
    std::vector<std::string> all{"bash", "-c", "exec \"$@\" 2>&" + std::to_string(m_writer.get()), "bash"};
    for (const std::string& word : rlock_argv(words)) {
      all.push_back(word);
    }
    return Process(all, {.keep_fds = {m_writer.get()}});
  }

  // The bytes after the filling.
  std::string read_all() const
  {
    set_nonblocking(m_reader, true);
    std::string text;
    std::array<char, 65536> some{};
    for (ssize_t n = 0; (n = ::read(m_reader.get(), some.data(), some.size())) > 0;) {
      text.append(some.data(), static_cast<std::size_t>(n));
    }
    text.erase(0, text.find_first_not_of('.'));
    return text;
  }

 private:
  static void set_nonblocking(const Fd& fd, bool on)
  {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    REQUIRE(::fcntl(fd.get(), F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) == 0);
  }

  Fd m_reader;
  Fd m_writer;
};

}  // namespace

TEST_CASE("blocked stderr: with -v the job runs, its lock is renewed and released, and rlock ends")
{
  for (const Kind kind : {Kind::pipe, Kind::socket}) {
    CAPTURE(static_cast<int>(kind));
    const RedisServer server;
    const Full full(kind);
    Process run =
        full.start({"run", "-v", "-S", server.url(), "-k", "k", "--ttl", "2s", "--", "sh", "-c", "sleep 3; echo done"});
    wait_until([&] { return run.out() == "done\n"; }, "the job has run", 30s);
    wait_until([&] { return !is_held(server); }, "the lock is released", 5s);
    CHECK(run.wait() == success);
  }
}

SERVER_CASE("blocked stderr: a waiter takes the lock and runs its job")
{
  const Full full(Kind::pipe);
  Process holder = held_run(server, {}, {"sleep", "2.5"});
  Process waiter =
      full.start({"run", "-S", server.url(), "-k", "k", "--", "echo", "ran"});  // reports its wait after 1 s
  expect_end(waiter, success, {out_is("ran\n")}, 20s);
  CHECK_FALSE(is_held(server));
}

SERVER_CASE("blocked stderr: processes that the job left are stopped and the lock is released")
{
  const Full full(Kind::pipe);
  Process run = full.start({"run", "-S", server.url(), "-k", "k", "--", "sh", "-c", "sleep 100 & true"});
  CHECK(run.wait(20s) == success);
  CHECK_FALSE(is_held(server));
}

SERVER_CASE("blocked stderr: the reason of a lost lock is written when the reader reads again in time")
{
  const Full full(Kind::pipe);
  Process run = full.start({"run", "-S", server.url(), "-k", "k", "--ttl", "3s", "--", "sleep", "100"});
  wait_until([&] { return is_held(server); }, "the lock is taken");
  server.command({"DEL", "k"});
  std::string said;
  wait_until(
      [&] {
        const bool is_over = !run.running();
        if (is_over || !is_held(server)) {
          said += full.read_all();
        }
        return is_over;
      },
      "rlock has ended", 20s);
  said += full.read_all();
  CHECK(run.wait() == exited(121));
  CHECK(said.find("rlock: the lock k was lost") == 0);
}

SERVER_CASE("blocked stderr: a terminal stopped by Ctrl-S does not stop a run")
{
  TestTerminal terminal;
  const auto dir = make_temp_dir("job");
  terminal.type("\x13");
  Process run = start_rlock({"run", "-v", "-S", server.url(), "-k", "k", "--", "touch", (dir / "ran").string()},
                            {.terminal = terminal.process_side()});
  CHECK(run.wait(20s) == success);
  CHECK(std::filesystem::exists(dir / "ran"));
  CHECK_FALSE(is_held(server));
}

SERVER_CASE("blocked stderr: the guardian of a killed runner ends as well")
{
  const Full full(Kind::pipe);
  const auto dir = make_temp_dir("job");
  Process run = full.start({"run", "-S", server.url(), "-k", "k", "--", "sh", "-c",
                            "echo $PPID > " + (dir / "new").string() + "; mv " + (dir / "new").string() + " " +
                                (dir / "guardian").string() + "; exec sleep 100"});
  wait_until([&] { return std::filesystem::exists(dir / "guardian"); }, "the job runs");
  const pid_t guardian = std::stoi(text_of(dir / "guardian"));
  run.signal(SIGKILL);
  wait_until([&] { return ::kill(guardian, 0) != 0; }, "the guardian has ended", 20s);
}
