// SPDX-License-Identifier: Apache-2.0
#include "cli/output/export.h"

#include "base/text.h"
#include "cli/options/endpoints.h"
#include "lock/held_locks.h"
#include "store/open.h"

namespace rlock::cli {
namespace {

std::string line(std::string_view name, std::string_view value)
{
  return "export " + std::string(name) + "=" + shell_quoted(value) + "\n";
}

// RLOCK_HELD without the entries of `key`: a caller that takes the key again no longer holds it by the earlier token.
std::string held_of_others(std::string_view held, std::string_view key)
{
  std::string others;
  for (const HeldLockLine& line : parse_held_locks(held)) {
    if (line.key != key) {
      others += (others.empty() ? "" : "\n") + std::string(line.whole);
    }
  }
  return others;
}

// RLOCK_SERVER of the environment without passwords, as JobServer::urls; empty: no URL in it has a password.
std::string known_with_password(const Environment& environment)
{
  std::string known;
  bool has_password = false;
  for (const std::string& url : urls_in(environment.value(server_variable))) {
    const Result<Endpoint> endpoint = parse_server(url);
    if (!endpoint) {
      return {};
    }
    known += (known.empty() ? "" : " ") + endpoint->without_passwords();
    has_password = has_password || !endpoint->password.empty();
  }
  return has_password ? known : "";
}

// Removes what the environment must not have beside the file.
std::string password_file_lines(const JobServer& server, const Environment& environment)
{
  if (!server.password_file) {
    return {};
  }
  std::string lines;
  if (!environment.value(password_variable).empty()) {
    lines += "unset " + std::string(password_variable) + "\n";
  }
  if (!server.password_file->empty()) {
    return lines + line(password_file_variable, *server.password_file);
  }
  const bool has_other = !environment.value(password_file_variable).empty();
  return lines + (has_other ? "unset " + std::string(password_file_variable) + "\n" : "");
}

}  // namespace

std::string shell_quoted(std::string_view text)
{
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string copied_word(std::string_view text)
{
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (without_controls(text) == text) {
    const bool is_plain = !text.empty() && text.find_first_not_of(plain) == std::string_view::npos;
    return is_plain ? std::string(text) : shell_quoted(text);
  }
  std::string word = "$'";
  for (const char c : printable(text)) {
    word += c == '\'' ? "\\'" : std::string(1, c);
  }
  return word + "'";
}

std::string export_lines(const JobLocks& lock, std::uint64_t fence, const Environment& environment)
{
  const HeldLock& taken = lock.held.front();
  const std::string_view held = environment.value(held_locks_variable);
  const std::string others = taken.hold.is_nested() ? std::string(held) : held_of_others(held, taken.name.text());
  const auto variables = job_environment({std::string(held_locks_variable) + "=" + others}, lock);

  std::string lines;
  for (const std::string_view name : {key_variable, token_variable, fence_variable, lease_variable, shard_variable,
                                      server_variable, held_locks_variable}) {
    if (name == shard_variable && !taken.shard) {
      continue;
    }
    if (name == fence_variable) {
      lines += line(name, std::to_string(fence));
    } else if (name != server_variable || known_with_password(environment) != lock.server.urls) {
      lines += line(name, environment_value(variables, name));
    }
  }
  return lines + password_file_lines(lock.server, environment);
}

}  // namespace rlock::cli
