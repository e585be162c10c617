// SPDX-License-Identifier: Apache-2.0
#include "engine/recorded_log.h"

#include <algorithm>
#include "base/defaults.h"
#include "lock/schema.h"

namespace rlock::record {

void set_fence_of_commit(std::string& entry, std::int64_t order)
{
  std::string fence(1, '\0');
  fence.append(word_of(event_words, EventWord::fence)).append(1, '\0').append(fence_of_commit);
  if (entry.ends_with(fence)) {
    entry.replace(entry.size() - fence_of_commit.size(), std::string::npos, std::to_string(order));
  }
}

RecordedLog log_in(const LockRecord& record, const std::string& log_key, std::int64_t time_us)
{
  const auto key = record.keys.find(log_key);
  const List* const list = key == record.keys.end() ? nullptr : std::get_if<List>(&key->second.data);
  if (list == nullptr) {
    return {.base = record.log_base, .entries = {}, .is_over = true};
  }
  if (key->second.has_expired(time_us)) {
    return {.base = record.log_base + static_cast<std::int64_t>(list->size()), .entries = {}, .is_over = true};
  }
  return {.base = record.log_base, .entries = *list, .is_over = false};
}

LogChange change_of(const RecordedLog& before, const KeySpace::Keys& keys, const std::string& log_key)
{
  const List* const list = data_at<List>(keys, log_key);
  const List after = list != nullptr ? *list : List();
  constexpr std::int64_t cut_after = event_count / 4;
  LogChange change;
  const auto same = std::ranges::mismatch(before.entries, after).in1 - before.entries.begin();
  for (auto i = static_cast<std::size_t>(same); i < after.size(); ++i) {
    change.written.push_back({.id = before.base + static_cast<std::int64_t>(i) + 1, .entry = after[i]});
  }
  if (after.size() < before.entries.size()) {
    change.last_kept = before.base + static_cast<std::int64_t>(after.size());
  }
  if (before.is_over) {
    change.first_kept = before.base > 0 ? std::optional(before.base + 1) : std::nullopt;
  } else if (after.empty()) {
    change.first_kept = before.base + 1;
  } else if (!change.written.empty()) {
    const std::int64_t last = change.written.back().id;
    const bool is_time_to_cut = last / cut_after > (change.written.front().id - 1) / cut_after;
    change.first_kept = is_time_to_cut ? std::optional(last - event_count + 1) : std::nullopt;
  }
  return change;
}

void shorten_log(LockRecord& record, const std::string& log_key, std::size_t most)
{
  List* const list = data_at<List>(record.keys, log_key);
  if (list != nullptr && list->size() > most) {
    const auto dropped = static_cast<std::ptrdiff_t>(list->size() - most);
    list->erase(list->begin(), list->begin() + dropped);
    record.log_base += dropped;
  }
}

}  // namespace rlock::record
