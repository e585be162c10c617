// SPDX-License-Identifier: Apache-2.0
#include "runner/environment.h"

#include <algorithm>

namespace rlock {
namespace {

bool is_assignment_of(std::string_view assignment, std::string_view name)
{
  return assignment.size() > name.size() && assignment.starts_with(name) && assignment[name.size()] == '=';
}

void unset(std::vector<std::string>& environment, std::string_view name)
{
  std::erase_if(environment, [&](const std::string& entry) { return is_assignment_of(entry, name); });
}

void set(std::vector<std::string>& environment, std::string_view name, const std::string& value)
{
  unset(environment, name);
  environment.push_back(std::string(name) + "=" + value);
}

}  // namespace

std::string_view environment_value(const std::vector<std::string>& environment, std::string_view name)
{
  for (const std::string& entry : environment) {
    if (is_assignment_of(entry, name)) {
      return std::string_view(entry).substr(name.size() + 1);
    }
  }
  return {};
}

std::vector<std::string> job_environment(std::vector<std::string> inherited, const HeldLock& lock)
{
  std::string held{environment_value(inherited, "RLOCK_HELD")};
  held += (held.empty() ? "" : "\n") + lock.owner.text() + " " + lock.name.text();

  unset(inherited, fence_variable);
  set(inherited, "RLOCK_KEY", lock.name.text());
  set(inherited, "RLOCK_TOKEN", lock.owner.text());
  set(inherited, "RLOCK_LEASE_MS", std::to_string(lock.lease.count()));
  set(inherited, "RLOCK_SERVER", lock.server.shown());
  set(inherited, "RLOCK_HELD", held);
  return inherited;
}

}  // namespace rlock
