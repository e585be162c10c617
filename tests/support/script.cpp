// SPDX-License-Identifier: Apache-2.0
#include "support/script.h"

#include "support/paths.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/topology.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <fstream>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;

std::string first_of(const std::string& urls) { return urls.substr(0, urls.find(' ')); }

}  // namespace

fs::path rlock_program()
{
  if (!is_quorum_topology()) {
    return RLOCK_BINARY;
  }
  const fs::path program = make_temp_dir("program") / "rlock";
  std::ofstream(program) << R"(#!/bin/bash
args=("$1" --no-restart-guard --server-timeout 5s)
for word in "${@:2}"; do
  case $word in
    *" unix:"*) unset "args[-1]"; for url in $word; do args+=(-S "$url"); done ;;
    *) args+=("$word") ;;
  esac
done
exec )" << RLOCK_BINARY << " \"${args[@]}\"\n";
  fs::permissions(program, fs::perms::owner_all);
  return program;
}

Process script(const RedisServer& server, const std::string& text, ProcessOptions options)
{
  const std::string path = clean_environment()["PATH"];
  options.env["PATH"] = rlock_program().parent_path().string() + ":" + path;
  options.env["URL"] = server.url();
  return Process({"bash", "-c", text}, options);
}

std::vector<pid_t> keepers(const RedisServer& server)
{
  std::vector<pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    const bool is_process = std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c); });
    if (is_process && text_of(entry.path() / "comm") == "rlock-keeper\n" &&
        text_of(entry.path() / "cmdline").find(first_of(server.url())) != std::string::npos) {
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

void wait_for_end(const RedisServer& server)
{
  wait_until([&] { return keepers(server).empty(); }, "the keeper is gone");
}

void give_to_another(const RedisServer& server)
{
  server.command({"DEL", "x"});
  server.command({"HSET", "x", "somebody:1", "1"});
  server.command({"PEXPIRE", "x", "60000"});
}

}  // namespace rlock::test
