// SPDX-License-Identifier: Apache-2.0
#include "judge/leftovers.h"

#include "support/text_file.h"

#include <charconv>
#include <filesystem>
#include <optional>

#include <unistd.h>

namespace rlock::judge {
namespace {

std::string mark_of_judge() { return std::to_string(::getpid()) + "-"; }

// Empty: not a process of this judge's storm. A zombie has no environment.
std::string mark_of(const std::filesystem::path& process)
{
  const std::string environment = test::text_of(process / "environ");
  const std::string start = run_variable + std::string("=") + mark_of_judge();
  const auto at = environment.starts_with(start) ? 0 : environment.find(std::string(1, '\0') + start);
  if (at == std::string::npos) {
    return "";
  }
  const auto value = environment.find('=', at) + 1;
  return environment.substr(value, environment.find('\0', value) - value);
}

std::string name_of_process(const std::filesystem::path& process)
{
  std::string name = test::text_of(process / "comm");
  return name.substr(0, name.find('\n'));
}

bool is_permits(const std::string& lock) { return lock.starts_with("permits"); }

// When each permit expires: sorted set {permit: ms}.
std::string expiries_of(const std::string& lock) { return "{" + lock + "}:timeout"; }

// The number of permits and their expiries.
bool may_lack_ttl(const std::string& key)
{
  return is_permits(key) || (key.starts_with("{permits") && key.ends_with("}:timeout"));
}

// nullopt: the server does not tell them all.
std::optional<std::vector<std::string>> keys_of(const Ask& ask)
{
  std::vector<std::string> keys;
  std::string cursor = "0";
  do {
    const Result<Reply> page = ask({"SCAN", cursor, "COUNT", "1000"});
    if (!page || page->kind != Reply::Kind::array || page->elements.size() != 2) {
      return std::nullopt;
    }
    cursor = page->elements[0].text;
    for (const Reply& key : page->elements[1].elements) {
      keys.push_back(key.text);
    }
  } while (cursor != "0");
  return keys;
}

// As PTTL: -1 without one, -2 without the key. A cluster node answers with an error for a key that belongs to another node.
std::int64_t ttl_of(const Ask& ask, const std::string& key)
{
  const Result<Reply> reply = ask({"PTTL", key});
  return reply && !reply->is_error() ? reply->integer : -2;
}

// How long the last of the permits is still held; -2: none is.
std::int64_t permits_held_for(const Ask& ask, const std::string& lock)
{
  const Result<Reply> time = ask({"TIME"});
  const Result<Reply> last = ask({"ZRANGE", expiries_of(lock), "-1", "-1", "WITHSCORES"});
  if (!time || time->elements.size() != 2 || !last || last->elements.size() != 2) {
    return -2;
  }
  const std::int64_t now = std::stoll(time->elements[0].text) * 1000 + std::stoll(time->elements[1].text) / 1000;
  const std::int64_t end = std::stoll(last->elements[1].text);
  return end > now ? end - now : -2;
}

}  // namespace

std::string run_mark(std::size_t run) { return mark_of_judge() + std::to_string(run); }

std::vector<RunningProcess> processes_of_storm()
{
  std::vector<RunningProcess> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size()) {
      continue;
    }
    if (const std::string mark = mark_of(entry.path()); !mark.empty()) {
      found.push_back({pid, name_of_process(entry.path()), mark.substr(mark_of_judge().size())});
    }
  }
  return found;
}

std::vector<RunningProcess> processes_of_run(std::size_t run)
{
  std::vector<RunningProcess> all = processes_of_storm();
  std::erase_if(all, [&](const RunningProcess& process) { return process.run != std::to_string(run); });
  return all;
}

Violations check_ttls(Servers& servers)
{
  Violations violations;
  servers.ask_each([&](const Ask& ask) {
    const auto keys = keys_of(ask);
    if (!keys) {
      violations.push_back({"every key has a ttl", "a server that should serve again does not tell its keys", {}});
      return;
    }
    for (const std::string& key : *keys) {
      if (!may_lack_ttl(key) && ttl_of(ask, key) == -1) {
        violations.push_back({"every key has a ttl", key + " has none", {}});
      }
    }
  });
  return violations;
}

Violations check_locks_are_free(Servers& servers, const Words& keys)
{
  Violations violations;
  servers.ask_each([&](const Ask& ask) {
    for (const std::string& key : keys) {
      const std::int64_t left = is_permits(key) ? permits_held_for(ask, key) : ttl_of(ask, key);
      if (left != -2) {
        violations.push_back({"no lock is left", key + " is held for " + std::to_string(left) + " ms", {}});
      }
    }
  });
  return violations;
}

}  // namespace rlock::judge
