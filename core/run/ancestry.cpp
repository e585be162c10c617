// SPDX-License-Identifier: Apache-2.0
#include "run/ancestry.h"

#include "process/proc.h"
#include "run/identity.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <unistd.h>

namespace rlock {
namespace {

// 0: there is no parent, or it cannot be read.
pid_t parent_of(pid_t pid)
{
  const auto process = read_process(pid);
  return process ? process->parent : 0;
}

bool is_ancestor(std::int64_t wanted)
{
  for (pid_t pid = ::getppid(); pid > 0; pid = parent_of(pid)) {
    if (pid == wanted) {
      return true;
    }
  }
  return false;
}

// Another container may have the same host name and the same pid.
bool has_command(std::int64_t pid, const std::string& command)
{
  const std::string program = command.substr(0, command.find(' '));
  const std::vector<std::string> words = command_of(static_cast<pid_t>(pid));
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return word.find(program) != std::string::npos; });
}

}  // namespace

bool waits_for_itself(const Mode& mode, const Busy& busy)
{
  if (std::holds_alternative<Permits>(mode) || !busy.holder || !busy.holder->info) {
    return false;
  }
  const HolderInfo& holder = *busy.holder->info;
  return holder.automatic && holder.host == host_name() && is_ancestor(holder.pid) &&
         has_command(holder.pid, holder.command);
}

}  // namespace rlock
