// SPDX-License-Identifier: Apache-2.0
// Where the system refuses rlock a thread, the main thread renews the lock: a job that forks up to a limit must not lose it.
#include "base/fd.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/sentinel_group.h"
#include "support/skip.h"
#include "support/three_servers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

const std::string refused = "Resource temporarily unavailable";

std::string no_thread_for(const std::string& key)
{
  return "rlock: no thread to renew " + key + ": " + refused + "; the main thread renews it\n";
}

// `which`: the first call of pthread_create that fails, and whether the later ones fail as well.
ProcessOptions without_threads(const std::string& which = "1 11 good runner")
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip("nothing can be loaded before a sanitizer");
#endif
  return {.env = {{"LD_PRELOAD", RLOCK_PRELOAD_FAIL_CALL},
                  {"RLOCK_TEST_FAIL", "pthread_create " + which},
                  {"RLOCK_TEST_FAIL_FILE", (make_temp_dir("refused") / "yes").string()}}};
}

// Its job lives three times as long as a lock that is not renewed.
Process start(const std::string& url, Words words, const ProcessOptions& options)
{
  words.insert(words.begin() + 1, {"-S", url, "--ttl", "1.5s"});
  return start_rlock(joined(words, {"sleep", "4.5"}), options);
}

bool is_told(Process& process, const std::string& text) { return has(process.err(), text); }

// A user whose processes and threads are few, and a job that forks until there is none left.
class CrowdedUser {
 public:
  CrowdedUser()
  {
    skip_if(::geteuid() != 0 || !fs::exists("/usr/bin/setpriv") || !fs::exists("/usr/bin/perl"),
            "needs root, setpriv(1) and perl(1)");
    ::chmod(m_dir.parent_path().c_str(), 0755);
    ::chmod(m_dir.c_str(), 0777);
    fs::copy_file(rlock_argv({}).front(), m_dir / "rlock");
  }

  // The job ends with 3 when end() was called.
  Process start(const RedisServer& server)
  {
    fs::remove(m_dir / "began");
    fs::remove(m_dir / "fifo");
    REQUIRE(::mkfifo((m_dir / "fifo").c_str(), 0666) == 0);
    ::chmod((m_dir / "fifo").c_str(), 0666);
    const std::string job =
        "while (defined($child = fork)) { if (!$child) { sleep 60; exit } } open($began, '>', 'began'); "
        "open($fifo, '<', 'fifo'); <$fifo>; exit 3";
    const Words as_user{"/usr/bin/setpriv", "--reuid", m_user,      "--regid", m_user,
                        "--clear-groups",   "prlimit", "--nproc=12"};
    return Process(joined(as_user, {m_dir / "rlock", "run", "-v", "-S", server.tcp_url(), "-k", "k", "--ttl", "1.5s",
                                    "--", "perl", "-e", job}),
                   {.cwd = m_dir});
  }
  [[nodiscard]] bool is_full() const { return fs::exists(m_dir / "began"); }
  void end() const
  {
    const Fd fifo(::open((m_dir / "fifo").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    CHECK(::write(fifo.get(), "\n", 1) == 1);
  }

 private:
  const fs::path m_dir = make_temp_dir("user");
  const std::string m_user = std::to_string(200'000 + ::getpid());  // has no other process
};

}  // namespace

SERVER_CASE("no thread: each kind of lock is renewed by the main thread, and -v says so")
{
  const std::vector<std::pair<Words, std::string>> calls{
      {{"run", "-v", "-k", "plain", "--"}, "plain"},
      {{"run", "-v", "-k", "a", "-k", "b", "--"}, "a and 1 more"},
      {{"run", "-v", "-s", "-k", "read", "--"}, "read"},
      {{"run", "-v", "--permits", "2", "-k", "permits", "--"}, "permits"},
      {{"run", "-v", "--format", "string", "-k", "string", "--"}, "string"},
      {{"run", "-v", "--shards", "1", "-k", "shard", "--"}, "shard:0"},
      {{"once", "-v", "--for", "1h", "-k", "once", "--"}, "once"},
      {{"flock", "--verbose", "file"}, "file"},
  };
  std::vector<Process> runs;
  for (const auto& [words, key] : calls) {
    runs.push_back(start(server.url(), words, without_threads()));
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CAPTURE(calls[i].second);
    CHECK(runs[i].wait(60s) == success);
    CHECK(is_told(runs[i], no_thread_for(calls[i].second)));
  }
}

TEST_CASE("no thread: one refused thread is made up for")
{
  const RedisServer server{{.alone = true}};
  Process run = start(server.url(), {"run", "-v", "-k", "k", "--"}, without_threads("1 11 once runner"));
  CHECK(run.wait(60s) == success);
  CHECK(is_told(run, no_thread_for("k")));
  CHECK(is_told(run, "rlock: a thread renews k\n"));
}

TEST_CASE("no thread: a quorum asks its servers one after the other, also beside one that hangs")
{
  const OneOfThreeHangs three({.alone = true});
  const Words calls[] = {{"run", "-v", "--no-restart-guard", "-k", "k", "--"},
                         {"flock", "--verbose", "--no-restart-guard", "file"}};
  std::vector<Process> runs;
  for (const Words& call : calls) {
    runs.push_back(start_rlock(joined(three.words(call, {"--ttl", "6s"}), {"sleep", "14"}), without_threads()));
  }
  for (Process& run : runs) {
    CHECK_MESSAGE(run.wait(60s) == success, run.err());
    CHECK(is_told(run, "; the main thread renews it\n"));
  }
  for (const int up : {0, 2}) {
    CHECK(as_int(three.servers[static_cast<std::size_t>(up)].command({"EXISTS", "k", "file"})) == 0);
  }
}

TEST_CASE("no thread: the master of a Sentinel group")
{
  const SentinelGroup group;
  Process run = start(group.url(), {"run", "-v", "-k", "k", "--"}, without_threads());
  CHECK_MESSAGE(run.wait(60s) == success, run.err());
  CHECK(is_told(run, no_thread_for("k")));
}

SERVER_CASE("no thread: a keeper renews without one")
{
  Process watched({"sleep", "60"});
  Process acquire = start_on(server, {"acquire", "-k", "k", "--ttl", "1.5s", "--pid", std::to_string(watched.pid())},
                             without_threads("1 11 good guardian"));
  CHECK_MESSAGE(acquire.wait(30s) == success, acquire.err());
  std::this_thread::sleep_for(4500ms);
  CHECK(is_held(server));
  watched.signal(SIGKILL);
  wait_until([&] { return as_int(server.command({"EXISTS", "k"})) == 0; }, "the keeper releases", 30s);
}

TEST_CASE("no thread: a lost lock is heard of, and a loss names the reason")
{
  RedisServer server{{.alone = true}};
  Process robbed = start_on(server, {"run", "-k", "stock", "--ttl", "60s", "--", "sleep", "60"}, without_threads());
  const auto listens = [&] {
    return show(server.command({"PUBSUB", "NUMSUB", "rlock:taken:{stock}"})).ends_with(" 1]");
  };
  wait_until(listens, "the main thread listens", 30s);
  CHECK(as_int(server.command({"DEL", "stock"})) == 1);
  CHECK(rlock_on(server, {"run", "-k", "stock", "--", "true"}).code == 0);
  CHECK(robbed.wait(15s) == exited(121));  // the next renewal would come after 20 s

  Process cut_off = start_on(server, {"run", "-k", "k", "--ttl", "1.5s", "--", "sleep", "60"}, without_threads());
  wait_until([&] { return is_held(server); }, "it has the lock", 30s);
  server.stop_signal();
  CHECK(cut_off.wait(30s) == exited(121));
  server.cont();
  CHECK(is_told(cut_off, "rlock: the lock k was lost: no renewal "));
  CHECK(is_told(cut_off, "; no thread of its own: " + refused));
}

TEST_CASE("no thread: the last known addresses of a host are used")
{
  const RedisServer server{{.tcp = true, .alone = true}};
  const std::string url = "redis://localhost:" + std::to_string(server.port());
  Process run = start(url, {"run", "-v", "-k", "k", "--"}, without_threads("2 11 good runner"));
  wait_until([&] { return is_told(run, no_thread_for("k")); }, "the main thread renews", 30s);
  server.command({"CLIENT", "KILL", "TYPE", "normal"});
  server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
  CHECK(run.wait(60s) == success);
}

TEST_CASE("no thread: beside a job that forks up to the limit of its user")
{
  CrowdedUser user;
  const RedisServer server{{.tcp = true, .alone = true}};
  bool was_refused = false;
  for (int i = 0; i < 5 && !was_refused; ++i) {  // on a busy machine the thread may come before the job's processes
    Process run = user.start(server);
    wait_until([&] { return user.is_full(); }, "the job has used all processes", 30s);
    std::this_thread::sleep_for(4500ms);
    was_refused = is_told(run, no_thread_for("k"));
    CHECK(run.running());
    user.end();
    const Exit end = run.wait(30s);
    CHECK_MESSAGE(end == Exit{3}, run.err());
  }
  CHECK(was_refused);
}
