// SPDX-License-Identifier: Apache-2.0
// Jobs whose processes rlock does not find by their group and session alone: where /proc is missing or shows another pid
// namespace, and where a part of the job has a session of its own.
#include "base/fd.h"
#include "process/process_tree.h"
#include "support/integration.h"
#include "support/skip.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

// A part of a job that holds flock(2) on a file while it lives, so that it is found from another pid namespace.
class Part {
 public:
  explicit Part(fs::path dir) : m_file(dir / "alive") {}

  // For sh; the part ignores TERM.
  [[nodiscard]] std::string command(const std::string& under) const
  {
    return under + " sh -c 'trap \"\" TERM INT HUP; exec 9>" + m_file.string() + "; flock 9; echo 1 >" +
           m_file.string() + ".up; while :; do sleep 1; done'";
  }
  // For sh: waits until the part runs.
  [[nodiscard]] std::string awaited() const { return "until [ -s " + m_file.string() + ".up ]; do sleep 0.02; done"; }
  void await() const
  {
    test::wait_until([&] { return !text_of(m_file.string() + ".up").empty(); }, "the part of the job runs");
  }
  [[nodiscard]] bool is_dead() const
  {
    const Fd file(::open(m_file.c_str(), O_RDWR | O_CLOEXEC));
    return file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  }

 private:
  fs::path m_file;
};

// Each begins a command that has no /proc of its own pid namespace.
const Words no_proc{"unshare", "-m", "sh", "-c", "umount -l /proc && exec \"$@\"", "sh"};
// The first process of a pid namespace takes all others with it, so it is not rlock.
const Words other_proc{
    "unshare", "-p", "-f", "--kill-child", "sh", "-c", "\"$@\"; code=$?; [ $code -lt 128 ] || sleep 60; exit $code",
    "sh"};

class Scene {
 public:
  [[nodiscard]] test::Process start(const Words& under, const Words& options, const std::string& job) const
  {
    if (!under.empty() &&
        (::geteuid() != 0 || test::Process({"unshare", "-m", "-p", "-f", "true"}).wait() != success)) {
      skip("needs root and unshare(1)");
    }
    const Words rlock =
        rlock_argv(joined({"run", "-S", server.url(), "-k", "stock"}, with_job(options, {"sh", "-c", job})));
    return test::Process(joined(under, rlock));
  }
  [[nodiscard]] bool is_free() const { return as_int(server.command({"EXISTS", "stock"})) == 0; }

  // Below unshare -f rlock is a child of the process that the test started.
  [[nodiscard]] pid_t runner() const
  {
    for (const pid_t pid : numbers_in("/proc")) {
      const Words command = command_of(pid);
      if (command_name(pid) == "rlock" && std::ranges::count(command, server.url()) > 0) {
        return pid;
      }
    }
    return 0;
  }

  RedisServer server{{.alone = true}};
  Part part{make_temp_dir("unseen")};
};

struct View {
  const char* name;
  Words under;
};
const View views[] = {
    {"with /proc", {}}, {"without /proc", no_proc}, {"with the /proc of another pid namespace", other_proc}};

}  // namespace

TEST_CASE("unseen: a part of the job in a process group of its own is dead after --max-runtime")
{
  for (const View& view : views) {
    CAPTURE(view.name);
    const Scene scene;
    test::Process rlock = scene.start(view.under, {"--max-runtime", "1s", "--kill-after", "200ms"},
                                      scene.part.command("timeout 300") + " & wait");
    CHECK(rlock.wait(30s) == exited(124));
    CHECK(scene.part.is_dead());
    CHECK(scene.is_free());
  }
}

TEST_CASE("unseen: a part of the job in a process group of its own that is left behind is dead before the release")
{
  for (const View& view : views) {
    CAPTURE(view.name);
    const Scene scene;
    test::Process rlock = scene.start(view.under, {"--kill-after", "200ms"},
                                      scene.part.command("timeout 300") + " & " + scene.part.awaited() + "; exit 6");
    CHECK(rlock.wait(30s) == exited(6));
    CHECK(scene.part.is_dead());
    CHECK(scene.is_free());
  }
}

TEST_CASE("unseen: a part of the job in a process group of its own dies with a killed rlock")
{
  for (const View& view : views) {
    CAPTURE(view.name);
    const Scene scene;
    test::Process rlock = scene.start(view.under, {}, scene.part.command("timeout 300") + " & wait");
    scene.part.await();
    const pid_t runner = scene.runner();
    REQUIRE(runner > 0);
    ::kill(runner, SIGKILL);
    wait_until([&] { return scene.is_free(); }, "the guardian has released the lock", 20s);
    CHECK(scene.part.is_dead());
  }
}

TEST_CASE("session: a part of the job that the job waits for belongs to it")
{
  const Scene scene;
  const std::string wrapper = "setsid -w";
  SUBCASE("below a script that is named like a program of rlock")
  {
    const fs::path script = make_temp_dir("script") / "rlock-backup.sh";
    std::ofstream(script) << "#!/bin/sh\n" << scene.part.command(wrapper) << "\n:\n";
    fs::permissions(script, fs::perms::owner_all);
    test::Process rlock = scene.start({}, {"--max-runtime", "1s", "--kill-after", "200ms"}, script.string() + "; true");
    CHECK(rlock.wait(30s) == exited(124));
    CHECK(scene.part.is_dead());
  }
  SUBCASE("after --max-runtime")
  {
    test::Process rlock =
        scene.start({}, {"--max-runtime", "1s", "--kill-after", "200ms"}, scene.part.command(wrapper));
    CHECK(rlock.wait(30s) == exited(124));
    CHECK(scene.part.is_dead());
  }
  SUBCASE("after a signal that rlock passes on, which ends only the process that waits")
  {
    test::Process rlock = scene.start({}, {}, "exec " + scene.part.command(wrapper));
    scene.part.await();
    rlock.signal(SIGINT);
    CHECK(rlock.wait(30s) == died_of(SIGINT));
    CHECK(scene.part.is_dead());
    CHECK(scene.is_free());
  }
  SUBCASE("after kill -9 of rlock")
  {
    test::Process rlock = scene.start({}, {}, scene.part.command(wrapper) + "; true");
    scene.part.await();
    rlock.signal(SIGKILL);
    wait_until([&] { return scene.is_free(); }, "the guardian has released the lock", 20s);
    CHECK(scene.part.is_dead());
  }
  SUBCASE("after kill -9 of the guardian")
  {
    test::Process rlock =
        scene.start({}, {}, scene.part.command(wrapper) + " & " + scene.part.awaited() + "; kill -9 $PPID; wait");
    CHECK(rlock.wait(30s) == exited(71));
    CHECK(scene.part.is_dead());
  }
  SUBCASE("left behind by the main process")
  {
    test::Process rlock =
        scene.start({}, {"--kill-after", "200ms"},
                    "(" + scene.part.command(wrapper) + "; true) & " + scene.part.awaited() + "; exit 6");
    CHECK(rlock.wait(30s) == exited(6));
    CHECK(scene.part.is_dead());
  }
}
