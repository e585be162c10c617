// SPDX-License-Identifier: Apache-2.0
#include "support/runtime_dir.h"

#include "support/job_runner.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/wait_until.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <system_error>

namespace rlock::test {

RuntimeDir::RuntimeDir() : m_dir(make_temp_dir("xdg")) {}

RuntimeDir::~RuntimeDir()
{
  for (const pid_t server : servers()) {
    ::kill(server, SIGKILL);
  }
}

std::filesystem::path RuntimeDir::home() const
{
  return m_dir / ("rlock-" + clean_environment().at("RLOCK_LOCAL_NAME"));
}

std::set<pid_t> RuntimeDir::servers() const
{
  std::set<pid_t> pids;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const std::string line = text_of(process.path() / "cmdline");
    if (line.find(socket().string()) != std::string::npos && line.find("-server") != std::string::npos) {
      pids.insert(std::stoi(process.path().filename()));
    }
  }
  return pids;
}

std::set<pid_t> RuntimeDir::watchers() const
{
  std::set<pid_t> pids;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::error_code gone;
    if (text_of(process.path() / "comm") == "rlock-local\n" &&
        std::filesystem::read_symlink(process.path() / "cwd", gone) == home()) {
      pids.insert(std::stoi(process.path().filename()));
    }
  }
  return pids;
}

void RuntimeDir::kill_servers() const
{
  const std::set<pid_t> killed = servers();
  for (const pid_t server : killed) {
    ::kill(server, SIGKILL);
  }
  // A running rlock may start the next one at once.
  wait_until([&] { return std::none_of(killed.begin(), killed.end(), is_alive); }, "the server is gone");
}

}  // namespace rlock::test
