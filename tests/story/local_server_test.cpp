// SPDX-License-Identifier: Apache-2.0
// `local:` one private server for each user, started by whoever comes first.
#include "support/redis_fixture.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <sys/stat.h>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// A runtime directory of its own, and an end for the server that was started in it.
class RuntimeDir {
 public:
  RuntimeDir() : m_dir(make_temp_dir("xdg")) {}
  ~RuntimeDir()
  {
    if (std::filesystem::exists(socket())) {
      shut_down(socket());
    }
  }
  RuntimeDir(const RuntimeDir&) = delete;
  RuntimeDir& operator=(const RuntimeDir&) = delete;

  [[nodiscard]] ProcessOptions options() const { return {.env = {{"XDG_RUNTIME_DIR", m_dir.string()}}}; }
  [[nodiscard]] std::filesystem::path home() const { return m_dir / "rlock"; }
  [[nodiscard]] std::filesystem::path socket() const { return home() / "redis.sock"; }

 private:
  std::filesystem::path m_dir;
};

// Asks the server itself, through a job that needs nothing but redis-cli's protocol by hand.
std::set<std::string> servers_in(const RuntimeDir& dir)
{
  std::set<std::string> pids;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(process.path() / "cmdline", std::ios::binary);
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    if (line.find(dir.socket().string()) != std::string::npos && line.find("-server") != std::string::npos) {
      pids.insert(process.path().filename());
    }
  }
  return pids;
}

}  // namespace

TEST_CASE("local: starts one, private and detached, and the next finds it")
{
  const RuntimeDir dir;
  const Finished first = run_rlock({"run", "-S", "local:", "-k", "k", "--", "echo", "ran"}, dir.options());
  REQUIRE(first.code == 0);
  CHECK(first.out == "ran\n");
  CHECK(first.err == "");
  struct stat about{};
  REQUIRE(::stat(dir.home().c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0700);

  const auto servers = servers_in(dir);
  CHECK(servers.size() == 1);
  CHECK(run_rlock({"run", "-S", "local:", "-k", "k", "--", "true"}, dir.options()).code == 0);
  CHECK(servers_in(dir) == servers);
}

TEST_CASE("local: twelve that come at the same moment start one and exclude each other")
{
  const RuntimeDir dir;
  const std::filesystem::path count = make_temp_dir("count") / "n";
  std::ofstream(count) << "0\n";
  std::vector<Process> crowd;
  for (int i = 0; i < 12; ++i) {
    crowd.emplace_back(rlock_argv({"run", "-S", "local:", "-k", "k", "--", "sh", "-c",
                                   "n=$(cat " + count.string() + "); sleep 0.01; echo $((n+1)) > " + count.string()}),
                       dir.options());
  }
  for (Process& one : crowd) {
    CHECK(one.wait(30s) == Exit{.code = 0, .signal = 0});
  }
  int sum = 0;
  std::ifstream(count) >> sum;
  CHECK(sum == 12);
  CHECK(servers_in(dir).size() == 1);
}

TEST_CASE("local: a crash of the server loses no lock")
{
  const RuntimeDir dir;
  Process holder(rlock_argv({"run", "-S", "local:", "-k", "k", "--ttl", "10s", "--", "sleep", "30"}), dir.options());
  wait_until([&] { return run_rlock({"status", "-S", "local:", "-k", "k"}, dir.options()).code == 0; },
             "the lock is taken");
  for (const std::string& pid : servers_in(dir)) {
    ::kill(std::stoi(pid), SIGKILL);
  }
  wait_until([&] { return servers_in(dir).empty(); }, "the server is gone");
  const Finished busy = run_rlock({"run", "-S", "local:", "-k", "k", "-n", "--", "true"}, dir.options());
  CHECK(busy.code == 75);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == Exit{.code = -1, .signal = SIGTERM});
}

TEST_CASE("local: a directory that others could enter is refused, and one that is a link")
{
  const RuntimeDir dir;
  std::filesystem::create_directory(dir.home());
  std::filesystem::permissions(dir.home(), std::filesystem::perms::all);
  const Finished open = run_rlock({"run", "-S", "local:", "-k", "k", "--", "true"}, dir.options());
  CHECK(open.code == 78);
  CHECK(open.err.find(dir.home().string()) != std::string::npos);

  std::filesystem::remove(dir.home());
  std::filesystem::create_directory_symlink("/tmp", dir.home());
  CHECK(run_rlock({"run", "-S", "local:", "-k", "k", "--", "true"}, dir.options()).code == 78);
  std::filesystem::remove(dir.home());
}

TEST_CASE("local: says what to install where there is no server program")
{
  const RuntimeDir dir;
  ProcessOptions options = dir.options();
  options.env["PATH"] = make_temp_dir("empty").string();
  const Finished end = run_rlock({"run", "-S", "local:", "-k", "k", "--", "/bin/true"}, options);
  CHECK((end.code == 69 || end.code == 78));
  CHECK(end.err.find("redis-server") != std::string::npos);
  CHECK(end.err.find("install") != std::string::npos);
}

TEST_CASE("local: is never chosen silently")
{
  const Finished end = run_rlock({"run", "-S", "redis://127.0.0.1:1", "-k", "k", "--", "true"});
  CHECK(end.code == 69);
  CHECK(end.err.find("local:") != std::string::npos);
}
