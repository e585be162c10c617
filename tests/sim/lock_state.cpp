// SPDX-License-Identifier: Apache-2.0
#include "sim/lock_state.h"

#include "engine/lock_keys.h"
#include "lock/holder.h"

#include <algorithm>

namespace rlock::sim {
namespace {

// The 16 bytes of the uuid, as lua/kinds/permits.lua writes them.
std::string permit_of(const std::string& owner)
{
  std::string digits = owner.substr(0, 36);
  std::erase(digits, '-');
  std::string bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

const LockKeys& keys_of(const LockKind& kind)
{
  static std::map<std::size_t, LockKeys> all;
  return all.try_emplace(kind.index(), *LockName::parse("stock"), kind).first->second;
}

std::string first_read(const LockKind& kind, const std::string& owner)
{
  return keys_of(kind).reads + owner + ":rwlock_timeout:1";
}

bool is_there(const Reply& reply) { return reply.kind == Reply::Kind::text; }

}  // namespace

LockState::LockState(const Schedule& schedule, Server& server)
    : m_schedule(schedule),
      m_server(server),
      m_is_mixed(std::any_of(schedule.clients.begin(), schedule.clients.end(), [&](const ClientPlan& plan) {
        return keys_of(plan.kind).queue != keys_of(schedule.clients.front().kind).queue;
      }))
{
}

bool LockState::is_held(const LockKind& kind, const std::string& owner)
{
  return is_written(kind, owner) && (!m_server.has_sessions() || m_server.presence_lasts_for(owner) > 0);
}

std::optional<Nanos> LockState::hold_lasts_for(const LockKind& kind, const std::string& owner)
{
  if (m_server.has_sessions()) {
    return m_server.presence_lasts_for(owner);
  }
  const auto ends = hold_ends(kind, owner);
  return ends ? std::optional((*ends * 1000 - now_us()) * 1000) : std::nullopt;
}

bool LockState::is_written(const LockKind& kind, const std::string& owner)
{
  const LockKeys& keys = keys_of(kind);
  KeySpace& redis = m_server.redis();
  if (std::holds_alternative<Plain>(kind)) {
    return is_there(redis.command({"HGET", keys.lock, owner}));
  }
  if (std::holds_alternative<Writer>(kind)) {
    return is_there(redis.command({"HGET", keys.lock, owner + ":write"}));
  }
  if (std::holds_alternative<Reader>(kind)) {
    return is_there(redis.command({"HGET", keys.lock, owner})) &&
           redis.command({"EXISTS", first_read(kind, owner)}).integer == 1;
  }
  if (std::holds_alternative<Permits>(kind)) {
    const auto ends = hold_ends(kind, owner);
    return ends && *ends >= redis.time() / 1000;
  }
  return redis.command({"GET", keys.lock}).text == owner;
}

std::optional<std::int64_t> LockState::key_ends(const std::string& key)
{
  const auto& keys = m_server.redis().keys();
  const auto found = keys.find(key);
  return found == keys.end() ? std::nullopt : found->second.expires;
}

std::optional<std::int64_t> LockState::hold_ends(const LockKind& kind, const std::string& owner)
{
  const LockKeys& keys = keys_of(kind);
  if (std::holds_alternative<Reader>(kind)) {
    return key_ends(first_read(kind, owner));
  }
  if (std::holds_alternative<Permits>(kind)) {
    const Reply score = m_server.redis().command({"ZSCORE", keys.second, permit_of(owner)});
    return is_there(score) ? std::optional(static_cast<std::int64_t>(std::stod(score.text))) : std::nullopt;
  }
  return key_ends(keys.lock);
}

std::string LockState::exclusive_holder()
{
  const auto& keys = m_server.redis().keys();
  const auto lock = keys.find("stock");
  if (lock == keys.end() || std::holds_alternative<Permits>(first_mode())) {
    return {};
  }
  if (const auto* text = std::get_if<std::string>(&lock->second.data)) {
    return *text;
  }
  const auto& hash = std::get<Hash>(lock->second.data);
  return hash.size() == 1 ? hash.front().first : std::string();
}

std::map<std::string, double> LockState::queue()
{
  const auto& keys = m_server.redis().keys();
  const auto queue = keys.find(keys_of(first_mode()).queue);
  return queue == keys.end() ? std::map<std::string, double>() : std::get<SortedSet>(queue->second.data).scores;
}

int LockState::latest_waiters()
{
  const auto& keys = m_server.redis().keys();
  const auto notes = keys.find(keys_of(first_mode()).waiters);
  if (notes == keys.end()) {
    return 0;
  }
  int count = 0;
  const auto in_line = queue();
  for (const auto& [owner, info] : std::get<Hash>(notes->second.data)) {
    count += in_line.contains(owner) && info.find("\nlatest=1\n") != std::string::npos ? 1 : 0;
  }
  return count;
}

std::map<std::string, int> LockState::priorities()
{
  const auto& keys = m_server.redis().keys();
  const auto notes = keys.find(keys_of(first_mode()).waiters);
  std::map<std::string, int> priorities;
  if (notes != keys.end()) {
    for (const auto& [owner, text] : std::get<Hash>(notes->second.data)) {
      const auto info = decode_holder(text);
      if (info && info->priority != 0) {
        priorities[owner] = info->priority;
      }
    }
  }
  return priorities;
}

bool LockState::listens(const std::string& waiter)
{
  return m_server.redis().count_subscribers(keys_of(first_mode()).owner_channel + waiter) > 0;
}

std::optional<std::string> LockState::key_without_ttl()
{
  // A named mode: for a temporary one GCC 14 warns that the reference dangles, although keys_of refers to its own map.
  const LockKind permit_mode = Permits{2};
  const LockKeys& permits = keys_of(permit_mode);
  for (const auto& [key, entry] : m_server.redis().keys()) {
    const bool is_permits =
        std::holds_alternative<Permits>(first_mode()) && (key == permits.lock || key == permits.second);
    if (!entry.expires && !is_permits) {
      return key;
    }
  }
  return std::nullopt;
}

}  // namespace rlock::sim
