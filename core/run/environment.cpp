// SPDX-License-Identifier: Apache-2.0
#include "run/environment.h"

#include "lock/held_locks.h"

#include <algorithm>

namespace rlock {
namespace {

bool is_assignment_of(std::string_view assignment, std::string_view name)
{
  return assignment.size() > name.size() && assignment.starts_with(name) && assignment[name.size()] == '=';
}

}  // namespace

void unset_variable(std::vector<std::string>& environment, std::string_view name)
{
  std::erase_if(environment, [&](const std::string& entry) { return is_assignment_of(entry, name); });
}

void set_variable(std::vector<std::string>& environment, std::string_view name, const std::string& value)
{
  unset_variable(environment, name);
  environment.push_back(std::string(name) + "=" + value);
}

std::optional<std::string_view> find_variable(const std::vector<std::string>& environment, std::string_view name)
{
  for (const std::string& entry : environment) {
    if (is_assignment_of(entry, name)) {
      return std::string_view(entry).substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

std::string_view environment_value(const std::vector<std::string>& environment, std::string_view name)
{
  return find_variable(environment, name).value_or("");
}

void set_server(std::vector<std::string>& environment, const JobServer& server)
{
  set_variable(environment, server_variable, server.urls);
  if (!server.password_file) {
    return;
  }
  unset_variable(environment, password_variable);
  unset_variable(environment, password_file_variable);
  if (!server.password_file->empty()) {
    set_variable(environment, password_file_variable, *server.password_file);
  }
}

std::vector<std::string> job_environment(std::vector<std::string> inherited, const JobLocks& locks)
{
  std::string held{environment_value(inherited, held_locks_variable)};
  for (const HeldLock& lock : locks.held) {
    held += (held.empty() ? "" : "\n") + lock.hold.token() + " " + lock.name.text();
  }

  unset_variable(inherited, fence_variable);
  unset_variable(inherited, shard_variable);  // each variable but RLOCK_HELD is about the innermost lock only
  set_variable(inherited, key_variable, locks.held.front().name.text());
  set_variable(inherited, token_variable, locks.held.front().hold.token());
  set_variable(inherited, lease_variable, std::to_string(locks.lease.count()));
  set_server(inherited, locks.server);
  set_variable(inherited, held_locks_variable, held);
  if (const auto shard = locks.held.front().shard) {
    set_variable(inherited, shard_variable, std::to_string(*shard));
  }
  return inherited;
}

std::vector<Owner> ancestors_with(const std::vector<std::string>& environment, const LockName& name)
{
  std::vector<Owner> owners;
  const auto lines = parse_held_locks(environment_value(environment, held_locks_variable));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->key != name.text()) {
      continue;
    }
    const Owner owner = Hold::of_token(line->token).owner;
    if (std::find(owners.begin(), owners.end(), owner) == owners.end()) {
      owners.push_back(owner);
    }
  }
  return owners;
}

std::vector<Ancestor> ancestors_with(const std::vector<std::string>& environment, std::span<const LockSpec> any_of)
{
  std::vector<Ancestor> ancestors;
  for (std::size_t which = 0; which < any_of.size(); ++which) {
    for (const Owner& owner : ancestors_with(environment, any_of[which].name)) {
      ancestors.push_back({.which = which, .owner = owner});
    }
  }
  return ancestors;
}

}  // namespace rlock
