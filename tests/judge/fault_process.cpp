// SPDX-License-Identifier: Apache-2.0
// The faults of a server's process, and what a server needs to bear them.
#include "judge/faults.h"

#include "support/text_file.h"
#include "support/wait_until.h"

#include <filesystem>
#include <thread>

#include <sys/resource.h>

namespace rlock::judge {
namespace {

bool is_stopped(const ServerTarget& target)
{
  const std::string stat = test::text_of("/proc/" + std::to_string(target.server->pid()) + "/stat");
  return stat.find(") T ") != std::string::npos;
}

bool pause(const ServerTarget& target, const std::string&, Rng&)
{
  target.server->stop_signal();
  return false;  // not known before the end
}

bool go_on(const ServerTarget& target, const std::string&)
{
  const bool stopped = is_stopped(target);
  target.server->cont();
  return stopped;
}

bool kill(const ServerTarget& target, const std::string&, Rng&)
{
  target.server->kill_hard();
  return true;
}

bool kill_and_empty(const ServerTarget& target, const std::string&, Rng&)
{
  target.server->kill_hard();
  return std::filesystem::remove_all(target.server->log_path().parent_path() / "appendonlydir") > 0;
}

bool start(const ServerTarget& target, const std::string&)
{
  target.server->restart();
  return false;
}

}  // namespace

bool pause_server(test::RedisServer& server, Millis time)
{
  server.stop_signal();
  std::this_thread::sleep_for(time);
  server.cont();
  return true;
}

std::span<const Recipe> process_recipes()
{
  static const std::vector<Recipe> all{
      {.name = "pause", .begin = pause, .end = go_on},
      {.name = "restart-with-data", .begin = kill, .end = start},
      {.name = "restart-empty", .excuse = Excuse::data_loss, .begin = kill_and_empty, .end = start},
  };
  return all;
}

// `no` for fsync: each change is written before its answer is sent, so it survives the end of the process, though not
// that of the machine; with `everysec` the write may come after the answer.
test::RedisOptions fault_options()
{
  test::RedisOptions options;
  options.args = {"--appendonly", "yes", "--appendfsync", "no"};
  options.alone = true;
  options.own_clock = true;
  return options;
}

void mend(const ServerTarget& target)
{
  target.proxy->end();
  target.server->cont();
  const rlimit unlimited{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  ::prlimit(target.server->pid(), RLIMIT_FSIZE, &unlimited, nullptr);
  if (!target.server->try_command({"CONFIG", "SET", "maxmemory", "0"})) {
    target.server->kill_hard();  // SIGTERM would wait for a script
    target.server->restart();
  }
  test::wait_until([&] { return bool(target.server->try_command({"PING"})); }, "the server answers");
}

}  // namespace rlock::judge
