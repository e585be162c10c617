// SPDX-License-Identifier: Apache-2.0
#include "cli/output/pools.h"

#include "base/text.h"

#include <algorithm>
#include <map>
#include <set>

#include <fnmatch.h>

namespace rlock::cli {
namespace {

// The record of the newest client says what the pool is now.
void choose_newest(const std::optional<HolderInfo>& info, const HolderInfo*& newest)
{
  if (info && info->pool && (newest == nullptr || info->since_ms > newest->since_ms)) {
    newest = &*info;
  }
}

const HolderInfo* newest_record(const LockState& state)
{
  const HolderInfo* newest = nullptr;
  for (const Holder& holder : state.holders) {
    choose_newest(holder.info, newest);
  }
  for (const Waiter& waiter : state.waiting) {
    choose_newest(waiter.info, newest);
  }
  return newest;
}

bool is_lock_of(const LockState& state, const Pool& pool)
{
  const auto own = pool_of(state);
  return own && own->key == pool.key;
}

bool needs_any_of(const Waiter& waiter, std::string_view key)
{
  return waiter.info && waiter.info->pool && waiter.info->pool->key == key;
}

void add_waiters(const LockState& state, ShownPool& shown)
{
  for (const Waiter& waiter : state.waiting) {
    const bool is_known = std::ranges::find(shown.waiting, waiter.owner, &Waiter::owner) != shown.waiting.end();
    if (needs_any_of(waiter, shown.pool.key) && !is_known) {
      shown.waiting.push_back(waiter);
    }
  }
}

// A lock of the pool may also be held without --shards. A pool that has lost a name has holders under that name until they end.
ShownPool counted(const Pool& pool, const std::vector<LockState>& states)
{
  const auto names = shard_names(pool);
  std::set<std::string> keys;
  for (const std::string& name : names) {
    keys.insert(pool.key + ":" + name);
  }
  std::set<std::string> held;
  ShownPool shown{.pool = pool};
  for (const LockState& state : states) {
    const std::string& key = state.name.text();
    if (keys.empty() ? !is_lock_of(state, pool) : !keys.contains(key)) {
      continue;
    }
    if (state.held()) {
      held.insert(key);
    }
    add_waiters(state, shown);
  }
  std::ranges::stable_sort(shown.waiting, {}, [](const Waiter& waiter) { return waiter.info->since_ms; });
  shown.held = std::min(held.size(), pool.size);
  std::ranges::copy_if(names, std::back_inserter(shown.free),
                       [&](const std::string& name) { return !held.contains(pool.key + ":" + name); });
  return shown;
}

// Whether the glob matches all locks of the pool. Of names that are not known the beginning counts.
bool covers(const std::string& pattern, const Pool& pool)
{
  const auto matches = [&](const std::string& name) {
    return ::fnmatch(pattern.c_str(), (pool.key + ":" + name).c_str(), 0) == 0;
  };
  const auto names = shard_names(pool);
  return names.empty() ? matches("") : std::ranges::all_of(names, matches);
}

}  // namespace

std::vector<std::string> shard_names(const Pool& pool)
{
  std::vector<std::string> names;
  for (std::size_t i = 0; !pool.names && i < pool.size; ++i) {
    names.push_back(std::to_string(i));
  }
  const std::string listed = pool.names.value_or("");
  for (const std::string_view name : split_ended(listed, ',')) {
    names.emplace_back(name);
  }
  return names;
}

std::optional<Pool> pool_of(const LockState& state)
{
  const HolderInfo* const newest = newest_record(state);
  return newest != nullptr ? newest->pool : std::nullopt;
}

std::vector<ShownPool> pools_of(const std::vector<LockState>& states, const std::string& pattern)
{
  std::map<std::string, const HolderInfo*> newest;
  for (const LockState& state : states) {
    const HolderInfo* const record = newest_record(state);
    if (record != nullptr && state.name.text().starts_with(record->pool->key + ":")) {
      const HolderInfo*& known = newest[record->pool->key];
      known = known == nullptr || record->since_ms > known->since_ms ? record : known;
    }
  }
  std::vector<ShownPool> pools;
  for (const auto& [key, record] : newest) {
    if (covers(pattern, *record->pool)) {
      pools.push_back(counted(*record->pool, states));
    }
  }
  return pools;
}

void take_waiters_out(std::vector<LockState>& states, const std::vector<ShownPool>& pools)
{
  for (LockState& state : states) {
    std::erase_if(state.waiting, [&](const Waiter& waiter) {
      return std::ranges::any_of(pools, [&](const ShownPool& each) { return needs_any_of(waiter, each.pool.key); });
    });
  }
}

std::string show_free(const ShownPool& pool)
{
  return std::to_string(pool.pool.size - pool.held) + " of " + std::to_string(pool.pool.size) + " free";
}

std::string show_pool(const ShownPool& pool, const Colors& colors)
{
  const bool is_full = pool.held == pool.pool.size;
  const std::string waiting = std::to_string(pool.waiting.size()) + (pool.waiting.size() == 1 ? " waits" : " wait");
  return colors.paint(Style::bold, printable(pool.pool.key)) + ": " +
         colors.paint(is_full ? Style::yellow : Style::green, show_free(pool)) +
         (pool.waiting.empty() ? "" : ", " + waiting);
}

std::string show_free_names(const ShownPool& pool) { return joined(pool.free, ", ", printable); }

}  // namespace rlock::cli
