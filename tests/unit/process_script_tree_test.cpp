// SPDX-License-Identifier: Apache-2.0
// Which processes belong to a script that has the pipe of its keeper, and the descriptor that it gets for it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <string>
#include "process/script_tree.h"

using namespace rlock;

namespace {

constexpr pid_t unused = 5'000'000;  // no process has this number or a greater one
constexpr pid_t script = 100;
constexpr pid_t ended = -unused;
constexpr pid_t session = 90;
constexpr pid_t reaper = 1;  // the parent of what has lost its parent

ScriptProcess process(pid_t pid, pid_t parent, pid_t its_session, bool has_pipe)
{
  return {.process = {.pid = unused + pid,
                      .parent = unused + parent,
                      .group = unused + pid,
                      .session = unused + its_session,
                      .state = 'S'},
          .has_pipe = has_pipe};
}

ScriptRules rules(pid_t alive) { return {.script = unused + alive, .sessions = {unused + session, unused + script}}; }

// "100 101, daemons 7".
std::string show(const ScriptMembers& found)
{
  std::set<pid_t> pids;
  for (const ScriptProcess& each : found.members) {
    pids.insert(each.process.pid - unused);
  }
  std::string text;
  for (const pid_t pid : pids) {
    text += (text.empty() ? "" : " ") + std::to_string(pid);
  }
  for (const pid_t daemon : found.daemons) {
    text += ", daemon " + std::to_string(daemon - unused);
  }
  return text;
}

const ScriptProcess shell = process(script, session, session, true);
const ScriptProcess stranger = process(50, session, session, false);

}  // namespace

TEST_CASE("script tree: the script comes first, then what has the pipe or a parent in the script")
{
  const auto found = members_of({stranger, process(60, 100, session, true), shell, process(101, 100, session, false),
                                 process(102, 101, 102, false)},
                                rules(script));
  CHECK(show(found) == "60 100 101 102");
  CHECK(found.members.front().process.pid == unused + script);
}

TEST_CASE("script tree: a child whose script has ended has the pipe, and its own children are found without it")
{
  CHECK(show(members_of({stranger, process(101, reaper, session, true), process(102, 101, session, false)},
                        rules(ended))) == "101 102");
}

TEST_CASE("script tree: what was known before belongs to the script without the pipe and without its parents")
{
  ScriptRules known = rules(ended);
  known.members = {unused + 101};
  CHECK(show(members_of({process(101, reaper, session, false), process(102, 101, 102, false)}, known)) == "101 102");
}

TEST_CASE("script tree: a daemon and what it has started are spared, although they have the pipe")
{
  const ScriptProcess daemon = process(101, reaper, 101, true);
  CHECK(show(members_of({shell, daemon, process(102, 101, 101, true), process(103, 102, 103, true)}, rules(script))) ==
        "100, daemon 101, daemon 103");
}

TEST_CASE("script tree: a session of its own with a parent in the script is no daemon, also after its parent has ended")
{
  const ScriptProcess child = process(101, 100, 101, true);
  CHECK(show(members_of({shell, child}, rules(script))) == "100 101");

  ScriptRules decided = rules(ended);
  decided.daemons = std::set<pid_t>();  // when the script was stopped
  CHECK(show(members_of({process(101, reaper, 101, true)}, decided)) == "101");
}

TEST_CASE("script tree: once it is decided which sessions are daemons, later ones are of the script, not of daemons")
{
  ScriptRules decided = rules(ended);
  decided.daemons = std::set<pid_t>{unused + 101};
  const ScriptProcess daemon = process(101, reaper, 101, true);
  CHECK(show(members_of({daemon, process(102, 101, 102, true), process(103, reaper, 103, true)}, decided)) ==
        "103, daemon 101, daemon 102");
}

TEST_CASE("script tree: the session that the script itself has made is one of the script")
{
  CHECK(show(members_of({process(101, reaper, script, true)}, rules(ended))) == "101");
}

TEST_CASE("script tree: the pipe is joined by a byte, held by copies, and let go by the last of them")
{
  auto pipe = ScriptPipe::open();
  REQUIRE(pipe);
  CHECK_FALSE(pipe->is_joined());
  const std::string path = pipe->path_in(::getpid());
  REQUIRE(path != "");
  Fd copy(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(copy);
  CHECK_FALSE(pipe->is_joined());
  REQUIRE(::write(copy.get(), ".", 1) == 1);
  CHECK(pipe->is_joined());
  CHECK(pipe->is_held());
  copy.reset();
  CHECK_FALSE(pipe->is_held());
  CHECK(pipe->is_joined());
  CHECK(pipe->path_in(::getpid()) == "");
}

TEST_CASE("script tree: the highest digit that is free, or that an earlier keeper has left")
{
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a failed check leaves no stopped process
    constexpr int above_digits = 20;     // the process may have inherited any of the digits
    std::array<int, 2> ends{};
    [[maybe_unused]] const int made = ::pipe(ends.data());
    for (int& end : ends) {
      const int moved = ::fcntl(end, F_DUPFD, above_digits);
      ::close(end);
      end = moved;
    }
    const Fd unread(::dup2(ends[1], 7));  // nobody reads it when both ends[0] are closed
    for (const int used : {9, 8}) {
      ::dup2(STDERR_FILENO, used);
    }
    ::close(ends[0]);
    ::raise(SIGSTOP);
    for (const int used : {6, 5, 4, 3}) {
      ::dup2(STDERR_FILENO, used);
    }
    ::dup2(STDERR_FILENO, 7);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  const auto left = descriptor_for_pipe(child, child);
  REQUIRE(left);
  CHECK(*left == 7);
  ::kill(child, SIGCONT);
  REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
  const auto none = descriptor_for_pipe(child, child);
  REQUIRE_FALSE(none);
  CHECK(none.error().text == "process " + std::to_string(child) + " has no free descriptor from 3 to 9");
  ::kill(child, SIGKILL);
  REQUIRE(::waitpid(child, &status, 0) == child);
}
