// SPDX-License-Identifier: Apache-2.0
#include "run/environment.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>
#include <variant>
#include <vector>
#include "base/fd.h"
#include "base/text.h"
#include "lock/holder.h"
#include "process/launch.h"
#include "process/proc.h"

namespace rlock {
namespace {

constexpr uid_t no_uid = static_cast<uid_t>(-1);

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
  unset_variable(inherited, shard_name_variable);
  set_variable(inherited, key_variable, locks.held.front().name.text());
  set_variable(inherited, token_variable, locks.held.front().hold.token());
  set_variable(inherited, lease_variable, std::to_string(locks.held.front().lease.count()));
  set_server(inherited, locks.server);
  set_variable(inherited, held_locks_variable, held);
  if (const auto& shard = locks.held.front().shard) {
    set_variable(inherited, shard_variable, std::to_string(shard->number));
    if (!shard->name.empty()) {
      set_variable(inherited, shard_name_variable, shard->name);
    }
  }
  return inherited;
}

std::vector<HeldLockLine> parse_held_locks(std::string_view value)
{
  std::vector<HeldLockLine> lines;
  while (!value.empty()) {
    const std::string_view line = value.substr(0, value.find('\n'));
    value.remove_prefix(std::min(value.size(), line.size() + 1));
    const auto space = line.find(' ');
    const bool is_valid = space != std::string_view::npos && space > 0;
    lines.push_back({.whole = line,
                     .token = is_valid ? line.substr(0, space) : std::string_view{},
                     .key = is_valid ? line.substr(space + 1) : std::string_view{}});
  }
  return lines;
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

bool waits_for_itself(const LockKind& kind, const Busy& busy)
{
  if (std::holds_alternative<Permits>(kind) || !busy.holder || !busy.holder->info) {
    return false;
  }
  const HolderInfo& holder = *busy.holder->info;
  return holder.automatic && holder.host == host_name() && is_ancestor(holder.pid) &&
         has_command(holder.pid, holder.command);
}

std::string host_name()
{
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

namespace {

// A look-up in the user database costs more than everything else at the start, so root is not looked up.
std::string name_of_user(uid_t uid)
{
  if (uid == 0) {
    return "root";
  }
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? found->pw_name : std::to_string(uid);
}

// The user who logged in, by loginuid in proc(5); nullopt: the process belongs to no login, as a service does.
std::optional<uid_t> login_uid()
{
  const Fd file(::open("/proc/self/loginuid", O_RDONLY | O_CLOEXEC));
  std::array<char, 16> text{};
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : -1;
  uid_t uid = no_uid;
  if (length > 0) {
    std::from_chars(text.data(), text.data() + length, uid);
  }
  return uid != no_uid ? std::optional(uid) : std::nullopt;
}

}  // namespace

std::string user_name() { return name_of_user(::geteuid()); }

std::string sudo_user(const std::vector<std::string>& environment, const std::string& user)
{
  const std::string_view of_sudo = environment_value(environment, "SUDO_USER");
  if (!of_sudo.empty()) {
    return of_sudo == user ? "" : std::string(of_sudo);
  }
  const auto login = login_uid();
  return login && *login != ::geteuid() ? name_of_user(*login) : "";
}

std::string own_identity(const std::vector<std::string>& environment)
{
  const std::string user = user_name();
  return user_text({.user = user, .sudo_user = sudo_user(environment, user)}) + "@" + host_name() + " (pid " +
         std::to_string(::getpid()) + ")";
}

Error exec_command(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                   const Signals& signals)
{
  ASSIGN_OR_RETURN(const auto path, find_command(argv.front(), find_variable(environment, "PATH")));
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) {
    words.push_back(const_cast<char*>(word.c_str()));  // execv takes char* but does not write
  }
  words.push_back(nullptr);
  signals.restore();
  ::execv(path.c_str(), words.data());
  return {ErrorCode::not_executable,
          "cannot execute " + printable(argv.front()) + ": " + std::generic_category().message(errno)};
}

}  // namespace rlock
