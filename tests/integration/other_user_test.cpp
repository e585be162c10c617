// SPDX-License-Identifier: Apache-2.0
// A job that becomes another user, whose processes rlock may not signal: what sudo does. rlock runs as an ordinary user and
// its job through a copy of setpriv(1) that is setuid root.
#include "support/job_runner.h"
#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/skip.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;
class OtherUser {
 public:
  OtherUser()
  {
    const fs::path setpriv = "/usr/bin/setpriv";
    if (::geteuid() != 0 || !fs::exists(setpriv)) {
      skip("needs root and setpriv(1)");
    }
    for (const fs::path& directory : {m_dir.parent_path(), m_dir}) {
      ::chmod(directory.c_str(), 0755);
    }
    fs::copy_file(setpriv, m_dir / "as-root");
    ::chmod((m_dir / "as-root").c_str(), 04755);
    fs::copy_file(rlock_argv({}).front(), m_dir / "rlock");
    Process probe(as_nobody({m_dir / "as-root", "--reuid", "0", "true"}));
    if (probe.wait() != Exit{.code = 0, .signal = 0}) {
      skip("setuid programs have no effect in the directory for temporary files");
    }
  }

  // A job that runs as root until the test ends it.
  [[nodiscard]] Process start(Words options, const std::string& then = "") const
  {
    options.insert(options.begin(), {m_dir / "rlock", "run", "-S", m_server.tcp_url(), "-k", "stock"});
    const Words job{"--", "sh", "-c",
                    "$0/as-root --reuid 0 --regid 0 --clear-groups sh -c 'echo $$ >$0/pid; exec sleep 300' $0 & "
                    "until grep -qs sleep /proc/$(cat $0/pid 2>/dev/null)/comm 2>/dev/null; do sleep 0.02; done" +
                        then + "; wait",
                    m_dir};
    options.insert(options.end(), job.begin(), job.end());
    return Process(as_nobody(options));
  }

  [[nodiscard]] pid_t pid() const
  {
    const pid_t pid = pid_from(m_dir / "pid");
    const fs::path name = "/proc/" + std::to_string(pid) + "/comm";
    test::wait_until([&] { return text_of(name) == "sleep\n"; }, "the job runs");
    return pid;
  }
  [[nodiscard]] bool held() const { return as_int(m_server.command({"EXISTS", "stock"})) == 1; }

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
    Words all{"/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
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

const std::string left =
    "rlock: the job could not be stopped: a process that runs as another user is left; stock stays locked until the "
    "ttl is "
    "over\n";

}  // namespace

TEST_CASE("other user: --max-runtime names the process at once, and ends after --kill-after with 124")
{
  const OtherUser scene;
  Process rlock = scene.start({"--max-runtime", "3s", "--kill-after", "2s"});
  const pid_t pid = scene.pid();
  wait_until([&] { return rlock.err() == named(pid); }, "the process is named", 30s);
  CHECK(rlock.running());
  CHECK(rlock.wait(30s) == Exit{.code = 124, .signal = 0});
  CHECK(rlock.err() == named(pid) + left);
  CHECK(is_alive(pid));
  CHECK(scene.held());
}

TEST_CASE("other user: a fixed lease ends with 124")
{
  const OtherUser scene;
  Process rlock = scene.start({"--lease", "3s"});
  const pid_t pid = scene.pid();
  CHECK(rlock.wait(30s) == Exit{.code = 124, .signal = 0});
  CHECK(rlock.err() == named(pid) + left);
}

TEST_CASE("other user: what the job leaves behind is 71, and keeps the lock")
{
  const OtherUser scene;
  Process rlock = scene.start({"--kill-after", "200ms", "-q"}, "; exit 0");
  const pid_t pid = scene.pid();
  CHECK(rlock.wait(30s) == Exit{.code = 71, .signal = 0});
  CHECK(rlock.err() == named(pid) + left);
  CHECK(scene.held());
}

TEST_CASE("other user: a killed rlock does not release while the process runs")
{
  const OtherUser scene;
  Process rlock = scene.start({});
  const pid_t pid = scene.pid();
  rlock.signal(SIGKILL);
  wait_until(
      [&] {
        return rlock.err() == named(pid) +
                                  "rlock: rlock was killed: a process of its job still runs, and its lock is "
                                  "left to its ttl\n";
      },
      "the guardian has said so", 30s);
  CHECK(scene.held());
}

TEST_CASE("other user: a killed guardian does not make rlock release, nor wait for ever")
{
  const OtherUser scene;
  Process rlock = scene.start({}, "; kill -9 $PPID");
  const pid_t pid = scene.pid();
  CHECK(rlock.wait(30s) == Exit{.code = 71, .signal = 0});
  CHECK(rlock.err() == named(pid) + left);
  CHECK(scene.held());
}
