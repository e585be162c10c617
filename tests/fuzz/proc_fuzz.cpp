// SPDX-License-Identifier: Apache-2.0
// A line of /proc/PID/stat. The name of the command is chosen by the process.
#include "fuzz/fuzzer.h"
#include "process/proc.h"

namespace rlock::test {
namespace {

std::string printed(const ProcessInfo& process, std::string_view name)
{
  return std::to_string(process.pid) + " (" + std::string(name) + ") " + process.state + " " +
         std::to_string(process.parent) + " " + std::to_string(process.group) + " " + std::to_string(process.session) +
         " 0 -1 4194304";
}

bool same(const ProcessInfo& one, const ProcessInfo& other)
{
  return one.pid == other.pid && one.parent == other.parent && one.group == other.group &&
         one.session == other.session && one.state == other.state;
}

}  // namespace

void fuzz_proc(std::string_view bytes)
{
  const auto parsed = parse_stat(bytes);
  const bool is_state = parsed && std::string_view("RSDZTtXxKWPI").find(parsed->state) != std::string_view::npos;
  const ProcessInfo process =
      is_state ? *parsed : ProcessInfo{.pid = 42, .parent = 7, .group = 42, .session = 5, .state = 'S'};
  // At most 15 bytes of any value but NUL are a name, whatever these bytes look like.
  const std::string_view name = bytes.substr(0, 15);
  for (const std::string_view each : {std::string_view("sleep"), name}) {
    const auto again = parse_stat(printed(process, each));
    promise(again && same(*again, process), "the name of a command cannot lie about its process",
            printed(process, each));
  }
}

}  // namespace rlock::test
