// SPDX-License-Identifier: Apache-2.0
// A job that becomes another user, whose processes rlock may not signal: what sudo does. rlock runs as an ordinary user and
// its job through a copy of setpriv(1) that is setuid root.
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/skip.h"

#include <sys/stat.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;
class OtherUser {
 public:
  OtherUser()
  {
    const fs::path setpriv = "/usr/bin/setpriv";
    skip_if(::geteuid() != 0 || !fs::exists(setpriv), "needs root and setpriv(1)");
    for (const fs::path& directory : {m_dir.parent_path(), m_dir}) {
      ::chmod(directory.c_str(), 0755);
    }
    fs::copy_file(setpriv, m_dir / "as-root");
    ::chmod((m_dir / "as-root").c_str(), 04755);
    fs::copy_file(rlock_argv({}).front(), m_dir / "rlock");
    Process probe(as_nobody({m_dir / "as-root", "--reuid", "0", "true"}));
    skip_if(probe.wait() != success, "setuid programs have no effect in the directory for temporary files");
  }

  // A job that runs as root until the test ends it.
  [[nodiscard]] Process start(Words options, const std::string& then = "", const Words& under = {}) const
  {
    options.insert(options.begin(), {m_dir / "rlock", "run", "-S", m_server.tcp_url(), "-k", "stock"});
    const Words job{"--", "sh", "-c",
                    "$0/as-root --reuid 0 --regid 0 --clear-groups sh -c 'echo $$ >$0/pid; exec sleep 300' $0 & "
                    "until [ -s $0/pid ]; do sleep 0.02; done" +
                        then + "; wait",
                    m_dir};
    options.insert(options.end(), job.begin(), job.end());
    Words all = under;
    const Words started = as_nobody(options);
    all.insert(all.end(), started.begin(), started.end());
    return Process(all);
  }

  // A script that has the lock, and a child that runs as root until the test ends it.
  [[nodiscard]] Process start_script(const std::string& options) const
  {
    return Process(as_nobody({"sh", "-c",
                              R"(lock=$("$0/rlock" acquire -S "$1" -k stock --pid $$ )" + options +
                                  R"( --export) || exit; eval "$lock"
                                     $0/as-root --reuid 0 --regid 0 --clear-groups sh -c 'echo $$ >$0/pid; exec sleep 300' $0 &
                                     wait)",
                              m_dir, m_server.tcp_url()}));
  }
  [[nodiscard]] Process force_unlock() const
  {
    return Process(as_nobody({m_dir / "rlock", "force-unlock", "-S", m_server.tcp_url(), "-k", "stock", "--yes"}));
  }

  [[nodiscard]] pid_t pid() const
  {
    const pid_t pid = pid_from(m_dir / "pid");
    const fs::path name = "/proc/" + std::to_string(pid) + "/comm";
    test::wait_until([&] { return text_of(name) == "sleep\n"; }, "the job runs");
    return pid;
  }
  [[nodiscard]] bool held() const { return is_held(m_server, "stock"); }
  void remove_lock() const { m_server.command({"DEL", "stock"}); }

  // With --ttl 2s: for longer than the ttl.
  void await_renewals() const
  {
    const auto ttl = [&] { return as_int(m_server.command({"PTTL", "stock"})); };
    for (int i = 0; i < 4; ++i) {
      wait_until([&] { return ttl() <= 1500; }, "the ttl runs");
      wait_until([&] { return ttl() > 1500; }, "the lock is renewed");
    }
  }

  ~OtherUser()
  {
    if (fs::exists(m_dir / "pid")) {
      ::kill(pid_from(m_dir / "pid"), SIGKILL);
    }
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

 private:
  static Words as_nobody(const Words& words)
  {
    return joined({"/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}, words);
  }

  fs::path m_dir = make_temp_dir("user");
  RedisServer m_server{{.tcp = true, .alone = true}};
};

std::string named(pid_t pid)
{
  const std::string number = std::to_string(pid);
  return "rlock: cannot signal process " + number +
         " (sleep) of the job: it runs as another user; end it as root with: kill " + number + "\n";
}

std::string still_runs(pid_t pid)
{
  const std::string number = std::to_string(pid);
  return "rlock: process " + number +
         " (sleep) of the job still runs as another user; rlock waits for its end; end it as root with: kill " +
         number + "\n";
}

const std::string left =
    "rlock: the job could not be stopped before its lease of stock was over: a process of the job still runs\n";

}  // namespace

#define OTHER_USER_CASE(title) CASE_WITH(OtherUser, scene, title)

OTHER_USER_CASE("other user: --max-runtime names the process at once, keeps the lock until it ends, and ends with 124")
{
  Process rlock = scene.start({"--max-runtime", "3s", "--kill-after", "2s", "--ttl", "2s"});
  const pid_t pid = scene.pid();
  wait_until([&] { return rlock.err() == named(pid); }, "the process is named", 30s);
  wait_until([&] { return rlock.err() == named(pid) + still_runs(pid); }, "rlock has sent KILL", 30s);
  scene.await_renewals();
  CHECK(rlock.running());
  CHECK(is_alive(pid));
  ::kill(pid, SIGKILL);
  CHECK(rlock.wait(30s) == exited(124));
  CHECK(!scene.held());
}

OTHER_USER_CASE("other user: a fixed lease ends with 124")
{
  Process rlock = scene.start({"--lease", "3s"});
  const pid_t pid = scene.pid();
  expect_end(rlock, exited(124), {err_is(named(pid) + still_runs(pid) + left)}, 30s);
  CHECK(is_alive(pid));
}

OTHER_USER_CASE("other user: rlock waits for what the job leaves behind, and ends with the job's code")
{
  Process rlock = scene.start({"--kill-after", "200ms", "--ttl", "2s", "-q"}, "; exit 6");
  const pid_t pid = scene.pid();
  wait_until([&] { return rlock.err() == named(pid) + still_runs(pid); }, "rlock has sent KILL", 30s);
  scene.await_renewals();
  CHECK(rlock.running());
  ::kill(pid, SIGKILL);
  CHECK(rlock.wait(30s) == exited(6));
  CHECK(!scene.held());
}

OTHER_USER_CASE("other user: a loss is told while the process runs")
{
  Process rlock = scene.start({"--max-runtime", "3s", "--kill-after", "200ms", "--ttl", "2s"});
  const pid_t pid = scene.pid();
  wait_until([&] { return rlock.err() == named(pid) + still_runs(pid); }, "rlock has sent KILL", 30s);
  scene.remove_lock();
  wait_until([&] { return has(rlock.err(), "the lock stock was lost: "); }, "rlock has told of the loss");
  CHECK(has(rlock.err(), "; a process of its job still runs, although it was sent KILL\n"));
  CHECK(rlock.running());
  ::kill(pid, SIGKILL);
  CHECK(rlock.wait(30s) == exited(121));
}

OTHER_USER_CASE("other user: the guardian of a killed rlock keeps the lock while the process runs, then releases it")
{
  Process rlock = scene.start({"--ttl", "2s"});
  const pid_t pid = scene.pid();
  rlock.signal(SIGKILL);
  wait_until([&] { return rlock.err() == still_runs(pid); }, "the guardian has said so", 30s);
  scene.await_renewals();
  CHECK(scene.held());
  ::kill(pid, SIGKILL);
  wait_until([&] { return !scene.held(); }, "the guardian has released the lock", 30s);
  wait_until(
      [&] {
        return rlock.err() ==
               still_runs(pid) + "rlock: rlock was killed: its job was stopped and its lock released (stock)\n";
      },
      "the guardian has said so");
}

OTHER_USER_CASE("other user: the guardian of a killed rlock cannot keep a fixed lease")
{
  Process rlock = scene.start({"--lease", "60s"});
  const pid_t pid = scene.pid();
  rlock.signal(SIGKILL);
  wait_until(
      [&] {
        return rlock.err() == still_runs(pid) +
                                  "rlock: rlock was killed: a process of its job still runs, and its lock is "
                                  "left to its ttl (stock)\n";
      },
      "the guardian has said so", 30s);
  CHECK(scene.held());
}

OTHER_USER_CASE("other user: after the guardian was killed rlock keeps the lock until the process ends")
{
  Process rlock = scene.start({"--ttl", "2s"}, "; kill -9 $PPID");
  const pid_t pid = scene.pid();
  wait_until([&] { return rlock.err() == still_runs(pid); }, "rlock has named the process", 30s);
  scene.await_renewals();
  CHECK(rlock.running());
  ::kill(pid, SIGKILL);
  CHECK(rlock.wait(30s) == exited(71));
  CHECK(!scene.held());
}

OTHER_USER_CASE("other user: a process that /proc hides is one of the job")
{
  if (Process({"unshare", "-m", "true"}).wait() != success) {
    skip("unshare(1) makes no mount namespace, as in a chroot");
  }
  Process rlock =
      scene.start({"--max-runtime", "3s", "--kill-after", "200ms", "--ttl", "2s"}, "; exec sleep 300",
                  {"unshare", "-m", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh"});
  const pid_t pid = scene.pid();
  const std::string number = std::to_string(pid);
  wait_until(
      [&] {
        return has(rlock.err(), "rlock: process " + number +
                                    " of the job still runs as another user; rlock waits for its end; "
                                    "end it as root with: kill " +
                                    number + "\n");
      },
      "rlock has sent KILL", 30s);
  scene.await_renewals();
  CHECK(rlock.running());
  ::kill(pid, SIGKILL);
  CHECK(rlock.wait(30s) == exited(124));
  CHECK(!scene.held());
}

OTHER_USER_CASE("other user: a keeper keeps the lock that an operator asks for until a child of the script has ended")
{
  Process holder = scene.start_script("--ttl 2s --kill-after 200ms");
  const pid_t pid = scene.pid();
  Process forced = scene.force_unlock();
  CHECK(holder.wait() == died_of(SIGTERM));
  scene.await_renewals();
  CHECK(scene.held());
  ::kill(pid, SIGKILL);
  wait_until([&] { return !scene.held(); }, "the keeper has released the lock", 30s);
}
