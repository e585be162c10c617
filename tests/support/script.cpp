// SPDX-License-Identifier: Apache-2.0
#include "support/script.h"

#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <utility>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;

// Of a process that ends meanwhile there is nothing to be read, which an iterator would throw.
std::string slurp(const fs::path& path)
{
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

Process script(const RedisServer& server, const std::string& text, ProcessOptions options)
{
  const std::string path = clean_environment()["PATH"];
  options.env["PATH"] = fs::path(RLOCK_BINARY).parent_path().string() + ":" + path;
  options.env["URL"] = server.url();
  return Process({"bash", "-c", text}, options);
}

std::vector<pid_t> keepers(const RedisServer& server)
{
  std::vector<pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    const bool is_process = std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c); });
    if (is_process && slurp(entry.path() / "comm") == "rlock-keeper\n" &&
        slurp(entry.path() / "cmdline").find(server.socket_path()) != std::string::npos) {
      found.push_back(std::stoi(number));
    }
  }
  return found;
}

pid_t keeper_of(const RedisServer& server, const Process& ready_script)
{
  wait_until([&] { return ready_script.out().find("ready") != std::string::npos; },
             "the script has its lock; it says " + ready_script.err());
  const std::vector<pid_t> found = keepers(server);
  REQUIRE(found.size() == 1);
  return found.front();
}

}  // namespace rlock::test
