// SPDX-License-Identifier: Apache-2.0
#include "engine/bound_owners.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>
#include "engine/lock_keys.h"

namespace rlock::record {
namespace {

// How long what is bound to a living presence that no client renews lasts at least, after its time has come.
constexpr std::int64_t least_left_ms = 1000;

// The dead holders of which the scripts are told, at most, for each queue.
constexpr std::size_t most_ended = 16;
const std::string ended_field = "#ended";

// One kind for each queue.
const std::array<LockKind, 4> kinds_with_queues{Plain{}, Writer{}, Permits{0}, StringLock{}};

// The keys of a lock. They are made once for all its owners, of which there may be hundreds.
struct Names : LockKeys {
  struct OfQueue {
    std::string queue;
    std::string waiters;
  };
  explicit Names(const LockName& name) : LockKeys(name)
  {
    for (std::size_t i = 0; i < queues.size(); ++i) {
      LockKeys of_kind(name, kinds_with_queues.at(i));
      queues.at(i) = {.queue = std::move(of_kind.queue), .waiters = std::move(of_kind.waiters)};
    }
  }
  std::array<OfQueue, kinds_with_queues.size()> queues;
};

// permit_of of lua/kinds/permits.lua.
std::string permit_of(const std::string& owner)
{
  constexpr std::size_t uuid_size = 36;
  constexpr std::size_t bytes = 16;
  std::string hex = owner.substr(0, uuid_size);
  std::erase(hex, '-');
  std::string permit;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    const auto parsed = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (parsed.ptr != hex.data() + i + 2) {
      return owner;
    }
    permit += static_cast<char>(byte);
  }
  return hex.size() == 2 * bytes ? permit : owner;
}

bool holds_permit(const KeySpace::Keys& keys, const LockKeys& names, const std::string& owner)
{
  const auto* set = data_at<SortedSet>(keys, names.second);
  return set != nullptr && set->scores.contains(permit_of(owner));
}

// In the layouts of the other kinds.
bool holds_lock(const KeySpace::Keys& keys, const LockKeys& names, const std::string& owner)
{
  if (const auto* text = data_at<std::string>(keys, names.lock)) {
    return *text == owner;
  }
  const auto* hash = data_at<Hash>(keys, names.lock);
  return value_in(hash, owner) != nullptr || value_in(hash, owner + ":write") != nullptr;
}

// The keys of a record, with what belongs to one owner.
struct Owned {
  KeySpace::Keys& keys;
  const Names& names;
  const std::string& owner;

  // Of a reader: a key for each of its holds.
  template <typename Act>
  void each_timeout(const Act& act)
  {
    const std::string prefix = names.reads + owner + ":rwlock_timeout:";
    for (auto key = keys.lower_bound(prefix); key != keys.end() && key->first.starts_with(prefix);) {
      key = act(key);
    }
  }

  void end_hold()
  {
    if (auto* set = data_at<SortedSet>(keys, names.second); set != nullptr && holds_permit(keys, names, owner)) {
      set->add(permit_of(owner), 1);  // expired: the scripts count and remove it
    }
    if (!holds_lock(keys, names, owner)) {
      return;
    }
    each_timeout([this](auto key) { return keys.erase(key); });
    auto* hash = data_at<Hash>(keys, names.lock);
    if (hash != nullptr) {
      std::erase_if(*hash,
                    [this](const auto& field) { return field.first == owner || field.first == owner + ":write"; });
    }
    if (hash == nullptr || hash->empty() || (hash->size() == 1 && hash->front().first == "mode")) {
      keys.erase(names.lock);
      keys.erase(names.holder);
    }
  }

  bool raise(const std::string& key, std::int64_t ends_ms)
  {
    const auto found = keys.find(key);
    const bool is_later = found != keys.end() && found->second.expires && *found->second.expires < ends_ms;
    if (is_later) {
      found->second.expires = ends_ms;
    }
    return is_later;
  }
  // False: it lasts until then already.
  bool lengthen_hold(std::int64_t ends_ms)
  {
    bool is_later = false;
    if (holds_permit(keys, names, owner)) {
      auto* set = data_at<SortedSet>(keys, names.second);
      is_later = set->scores[permit_of(owner)] < static_cast<double>(ends_ms);
      set->add(permit_of(owner), std::max(set->scores[permit_of(owner)], static_cast<double>(ends_ms)));
    } else if (holds_lock(keys, names, owner)) {
      is_later = raise(names.lock, ends_ms);
      each_timeout([&](auto key) {
        is_later = raise(key->first, ends_ms) || is_later;
        return ++key;
      });
    } else {
      return false;
    }
    raise(names.holder, ends_ms);
    raise(names.force, ends_ms);
    return is_later;
  }

  void leave(const Names::OfQueue& of_kind)
  {
    if (auto* queue = data_at<SortedSet>(keys, of_kind.queue)) {
      queue->remove(owner);
      if (queue->order.empty()) {
        keys.erase(of_kind.queue);
      }
    }
    if (auto* waiters = data_at<Hash>(keys, of_kind.waiters)) {
      std::erase_if(*waiters, [this](const auto& field) {
        return field.first == owner || field.first == "wish:" + owner || field.first == "passed:" + owner;
      });
      if (waiters->empty()) {
        keys.erase(of_kind.waiters);
      }
    }
  }

  // Where others wait, they are told that the holder is dead: "\0OWNER\0", the newest last.
  void note_death()
  {
    for (const Names::OfQueue& each : names.queues) {
      auto* waiters = data_at<Hash>(keys, each.waiters);
      if (waiters == nullptr || !data_at<SortedSet>(keys, each.queue)) {
        continue;
      }
      std::string* note = value_in(waiters, ended_field);
      if (note == nullptr) {
        note = &waiters->emplace_back(ended_field, std::string(1, '\0')).second;
      }
      note->append(owner).append(1, '\0');
      if (std::ranges::count(*note, '\0') > static_cast<std::ptrdiff_t>(most_ended) + 1) {
        note->erase(0, note->find('\0', 1));
      }
    }
  }

  void end_all()
  {
    end_hold();
    for (const Names::OfQueue& each : names.queues) {
      leave(each);
    }
  }

  [[nodiscard]] bool holds() const { return holds_permit(keys, names, owner) || holds_lock(keys, names, owner); }
};

Standing standing_among(const KeySpace::Keys& keys, const Names& names, const std::string& owner)
{
  Standing standing;
  if (holds_permit(keys, names, owner)) {
    standing.holds = true;
    standing.ends_ms = static_cast<std::int64_t>(data_at<SortedSet>(keys, names.second)->scores.at(permit_of(owner)));
  } else if (holds_lock(keys, names, owner)) {
    standing.holds = true;
    standing.ends_ms = keys.at(names.lock).expires.value_or(0);
  }
  standing.waits = std::ranges::any_of(names.queues, [&](const Names::OfQueue& each) {
    const auto* queue = data_at<SortedSet>(keys, each.queue);
    return queue != nullptr && queue->scores.contains(owner);
  });
  return standing;
}

void add_presences(std::vector<PresenceId>& ids, const std::vector<BoundPresence>& presences)
{
  for (const BoundPresence& each : presences) {
    if (std::ranges::find(ids, each.id) == ids.end()) {
      ids.push_back(each.id);
    }
  }
}

}  // namespace

std::vector<PresenceId> presences_in(const Bindings& bindings)
{
  std::vector<PresenceId> ids;
  for (const auto& [owner, presences] : bindings) {
    add_presences(ids, presences);
  }
  return ids;
}

std::vector<PresenceId> presences_to_ask(const LockRecord& record, const LockName& lock)
{
  const Names names(lock);
  std::set<std::string_view> far_back;
  for (const Names::OfQueue& each : names.queues) {
    if (const auto* queue = data_at<SortedSet>(record.keys, each.queue); queue && queue->order.size() > asked_waiters) {
      std::for_each(std::next(queue->order.begin(), asked_waiters), queue->order.end(),
                    [&](const auto& waiter) { far_back.insert(waiter.second); });
    }
  }
  std::vector<PresenceId> ids;
  for (const auto& [owner, presences] : record.bindings) {
    const bool only_waits =
        far_back.contains(owner) && !holds_permit(record.keys, names, owner) && !holds_lock(record.keys, names, owner);
    if (!only_waits) {
      add_presences(ids, presences);
    }
  }
  return ids;
}

bool lengthen_hold(LockRecord& record, const LockName& lock, const std::string& owner, std::int64_t ends_ms)
{
  const Names names(lock);
  return Owned{.keys = record.keys, .names = names, .owner = owner}.lengthen_hold(ends_ms);
}

void end_owner(LockRecord& record, const LockName& lock, const std::string& owner)
{
  const Names names(lock);
  Owned{.keys = record.keys, .names = names, .owner = owner}.end_all();
}

std::vector<PresenceId> end_gone(LockRecord& record, const LockName& lock, std::span<const PresenceId> gone,
                                 std::int64_t time_us)
{
  std::vector<PresenceId> of_holders;
  const Names names(lock);
  const std::int64_t now_ms = time_us / 1000;
  for (auto bound = record.bindings.begin(); bound != record.bindings.end();) {
    auto& [owner, presences] = *bound;
    Owned owned{.keys = record.keys, .names = names, .owner = owner};
    const std::vector<BoundPresence> before = presences;
    std::erase_if(presences, [&](const BoundPresence& each) { return std::ranges::find(gone, each.id) != gone.end(); });
    if (presences.empty()) {
      if (owned.holds()) {
        owned.note_death();
        add_presences(of_holders, before);
      }
      owned.end_all();
      bound = record.bindings.erase(bound);
      continue;
    }
    for (const BoundPresence& each : presences) {
      owned.lengthen_hold(now_ms + (each.keeping == Keeping::kept ? each.lease_ms : least_left_ms));
    }
    ++bound;
  }
  return of_holders;
}

bool is_changed(const KeySpace::Keys& before, const KeySpace::Keys& after, std::int64_t time_us)
{
  auto next = after.begin();
  for (const auto& key : before) {
    if (key.second.has_expired(time_us)) {
      continue;
    }
    if (next == after.end() || *next != key) {
      return true;
    }
    ++next;
  }
  return next != after.end();
}

Standing standing_of(const KeySpace::Keys& keys, const LockName& lock, const std::string& owner)
{
  return standing_among(keys, Names(lock), owner);
}

std::optional<std::string> revoked_hold(const KeySpace::Keys& keys, const LockName& lock, const std::string& owner)
{
  const LockKeys names(lock);
  if (value_in(data_at<Hash>(keys, names.force), "revoked:" + owner) == nullptr) {
    return std::nullopt;
  }
  const std::string* const fence = value_in(data_at<Hash>(keys, names.holder), "fence:" + owner);
  return fence == nullptr ? std::string() : *fence;
}

void drop_idle(LockRecord& record, const LockName& lock)
{
  const Names names(lock);
  std::erase_if(record.bindings, [&](const auto& bound) {
    const Standing standing = standing_among(record.keys, names, bound.first);
    return !standing.holds && !standing.waits;
  });
}

}  // namespace rlock::record
