// SPDX-License-Identifier: Apache-2.0
#include "engine/foreign_face.h"

#include <algorithm>

namespace rlock::record {
namespace {

// The end of the last key, or that of a key without an end.
std::int64_t forget_time(const KeySpace::Keys& keys)
{
  std::int64_t last = 1;
  for (const auto& [key, entry] : keys) {
    if (!entry.expires) {
      return 0;
    }
    last = std::max(last, *entry.expires * 1000);
  }
  return last;
}

// The first owner in the lock's own key, in the layouts of all kinds.
std::string first_holder(const Entry& lock)
{
  if (const auto* hash = std::get_if<Hash>(&lock.data)) {
    const auto owner = std::ranges::find_if(*hash, [](const auto& field) { return field.first != "mode"; });
    return owner == hash->end() ? "?" : owner->first;
  }
  const auto* text = std::get_if<std::string>(&lock.data);
  return text != nullptr ? *text : "?";
}

// Permits have their holders in a key of their own. The lock's own key is the number of free ones.
bool has_permit_holders(const KeySpace::Keys& keys, const LockKeys& names)
{
  const auto* set = data_at<SortedSet>(keys, names.second);
  return set != nullptr && !set->order.empty();
}

// The list of kept runs has a record of its own (lua/single/runs.lua). No kind of lock has a list in its own key.
bool is_kept_runs(const Entry& entry) { return std::holds_alternative<List>(entry.data); }

}  // namespace

Face face_of(const KeySpace::Keys& keys, const LockKeys& names)
{
  Face face{.holder = {}, .until_us = 0, .forget_us = forget_time(keys)};
  const auto lock = keys.find(names.lock);
  if (has_permit_holders(keys, names)) {
    face.holder = "a permit";
  } else if (lock != keys.end() && !keys.contains(names.own_number) && !is_kept_runs(lock->second)) {
    face.holder = first_holder(lock->second);
    face.until_us = lock->second.expires.value_or(0) * 1000;
  }
  return face;
}

void fit_to_face(LockRecord& record, const Face& seen, const LockKeys& names, std::int64_t time_us)
{
  KeySpace space;
  space.set_time(time_us);
  space.replace(record.keys);
  const Face known = face_of(space.keys(), names);
  const bool is_held = seen.until_us > time_us;
  const bool agrees = is_held ? known.holder == seen.holder && known.until_us == seen.until_us : known.holder.empty();
  if (agrees) {
    return;
  }
  record.keys = space.take_keys();
  record.keys.erase(names.lock);
  if (is_held) {
    record.keys[names.lock] = {.data = Hash{{seen.holder.empty() ? "?" : seen.holder, "1"}},
                               .expires = (seen.until_us + 999) / 1000};
  }
}

}  // namespace rlock::record
