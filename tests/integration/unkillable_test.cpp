// SPDX-License-Identifier: Apache-2.0
// A job that KILL does not end. Either its tracer (the test) does not let it exit. Or it waits for a file system that is frozen, in
// state D.
#include "support/integration.h"
#include "support/skip.h"
#include "support/tracer.h"

#include <unistd.h>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

class Scene {
 public:
  [[nodiscard]] Process start(const Words& options, const std::string& job) const
  {
    return start_rlock(joined({"run", "-S", server.url(), "-k", "stock", "--kill-after", "200ms"},
                              with_job(options, {"sh", "-c", job, dir})));
  }
  [[nodiscard]] bool held() const { return is_held(server, "stock"); }

  // For longer than the ttl.
  void await_renewals() const
  {
    const auto ttl = [&] { return as_int(server.command({"PTTL", "stock"})); };
    for (int i = 0; i < 4; ++i) {
      wait_until([&] { return ttl() <= 1500; }, "the ttl runs");
      wait_until([&] { return ttl() > 1500; }, "the lock is renewed");
    }
  }
  [[nodiscard]] pid_t pid() const
  {
    wait_until([&] { return text_of(dir / "pid").ends_with('\n'); }, "the job runs");
    return static_cast<pid_t>(std::stoi(text_of(dir / "pid")));
  }

  RedisServer server{{.alone = true}};
  fs::path dir = make_temp_dir("unkillable");
};

const std::string sleeper = "echo $$ >$0/pid; exec sleep 300";

void await_text(const Process& rlock, const std::string& text)
{
  wait_until([&] { return has(rlock.err(), text); }, "rlock says: " + text, 30s);
}

std::string not_killed(pid_t pid)
{
  return "process " + std::to_string(pid) + " (sleep) of the job cannot be killed (state t: process " +
         std::to_string(::getpid()) + " (rlock_tests) traces it); rlock waits for its end\n";
}

}  // namespace

TEST_CASE("unkillable: --max-runtime names the process, and keeps the lock until it ends")
{
  const Scene scene;
  Process rlock = scene.start({"--ttl", "2s", "--max-runtime", "1s"}, sleeper);
  const pid_t pid = scene.pid();
  Tracer tracer(pid);
  await_text(rlock, not_killed(pid));
  scene.await_renewals();
  CHECK(rlock.running());
  rlock.signal(SIGTERM);
  await_text(rlock, "got TERM; rlock still waits for the end of its job, which was sent KILL\n");
  tracer.release();
  CHECK(rlock.wait(30s) == exited(124));
  CHECK(!scene.held());
}

TEST_CASE("unkillable: a process that waits for a frozen file system is in state D")
{
  const Scene scene;
  const fs::path mounted = scene.dir / "fs";
  fs::create_directory(mounted);
  const auto shell = [&](const std::string& text) { return Process({"sh", "-c", text, scene.dir}).wait() == success; };
  skip_if(
      ::geteuid() != 0 || !shell("truncate -s 16M $0/image && mkfs.ext4 -q $0/image && mount -o loop $0/image $0/fs"),
      "needs root, mkfs.ext4 and a loop device");
  REQUIRE(shell("fsfreeze -f $0/fs"));
  Process rlock = scene.start({"--ttl", "2s", "--max-runtime", "1s"}, "echo $$ >$0/pid; echo x >$0/fs/file");
  const pid_t pid = scene.pid();
  const std::string text =
      "process " + std::to_string(pid) +
      " (sh) of the job cannot be killed (state D: it waits for a device or a file server); rlock waits for its end\n";
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!has(rlock.err(), text) && std::chrono::steady_clock::now() < end) {
    Process({"sleep", "0.05"}).wait();
  }
  CHECK(rlock.running());
  const std::string err = rlock.err();
  CHECK(shell("fsfreeze -u $0/fs"));
  CHECK(has(err, text));
  CHECK(rlock.wait(30s) == exited(124));
  CHECK(shell("umount $0/fs"));
}
