// SPDX-License-Identifier: Apache-2.0
#include "engine/native_line.h"

#include <algorithm>
#include <array>
#include "engine/bound_owners.h"
#include "engine/lock_keys.h"
#include "engine/record_codec.h"

namespace rlock::record {
namespace {

// A hash beside the keys of the scripts: format_field, and for each owner with a contender "NAME PRESENCE".
const std::string line_key = "rlock:native";
const std::string format_field = "format";

constexpr std::string_view writer_suffix = ":write";

// Behind the name of the clients.
constexpr std::string_view read_write_suffix = "-rw";

Hash* line_in(LockRecord& record) { return data_at<Hash>(record.keys, line_key); }
const Hash* line_in(const LockRecord& record) { return data_at<Hash>(record.keys, line_key); }

struct Noted {
  std::string name;
  PresenceId presence;
};

Noted noted_in(const std::string& text)
{
  const auto space = std::min(text.find(' '), text.size());
  return {.name = text.substr(0, space), .presence = text.substr(std::min(space + 1, text.size()))};
}

std::string text_of(const Noted& noted) { return noted.name + " " + noted.presence; }

bool is_owner(const Hash::value_type& field) { return field.first != format_field; }

void forget(LockRecord& record, const std::string& owner)
{
  if (Hash* const line = line_in(record)) {
    std::erase_if(*line, [&](const auto& field) { return field.first == owner; });
  }
}

// The presence of the owner with the longest lease, and of these the last one; nullptr: it has none.
const BoundPresence* longest_of(const LockRecord& record, const std::string& owner)
{
  const auto bound = record.bindings.find(owner);
  if (bound == record.bindings.end()) {
    return nullptr;
  }
  const BoundPresence* longest = nullptr;
  for (const BoundPresence& each : bound->second) {
    longest = longest == nullptr || each.lease_ms >= longest->lease_ms ? &each : longest;
  }
  return longest;
}

}  // namespace

bool may_be_beside(std::string_view bytes) { return bytes.find(line_key) != std::string_view::npos; }

LineFormat beside_of(const LockRecord& record)
{
  const std::string* const format = value_in(line_in(record), format_field);
  if (format == nullptr) {
    return no_line;
  }
  std::string_view name = *format;
  const bool has_readers = name.ends_with(read_write_suffix);
  name.remove_suffix(has_readers ? read_write_suffix.size() : 0);
  const auto* const known = std::ranges::find(native_formats, name);
  return known == native_formats.end()
             ? no_line
             : LineFormat(static_cast<NativeFormat>(known - native_formats.begin()), has_readers);
}

void put_beside(LockRecord& record, LineFormat format)
{
  if (line_in(record) == nullptr) {
    const std::string name = std::string(name_of(format.clients)).append(format.has_readers ? read_write_suffix : "");
    record.keys[line_key] = {.data = Hash{{format_field, name}}, .expires = std::nullopt};
  }
}

std::string exclusive_holder(const LockRecord& record, const LockName& lock)
{
  const auto found = record.keys.find(lock.text());
  if (found == record.keys.end()) {
    return {};
  }
  if (const auto* text = std::get_if<std::string>(&found->second.data)) {
    return *text;
  }
  const auto* hash = std::get_if<Hash>(&found->second.data);
  if (hash == nullptr) {
    return {};
  }
  const std::string* const mode = value_in(hash, "mode");
  const auto field = std::ranges::find_if(*hash, [](const auto& each) { return each.first != "mode"; });
  if (field == hash->end() || (mode != nullptr && *mode == reader_mode)) {
    return {};
  }
  const bool writes = hash->size() > 1 && field->first.ends_with(writer_suffix);
  return writes ? field->first.substr(0, field->first.size() - writer_suffix.size()) : field->first;
}

std::vector<std::string> holders_of(const LockRecord& record, const LockName& lock)
{
  if (std::string only = exclusive_holder(record, lock); !only.empty()) {
    return {std::move(only)};
  }
  std::vector<std::string> readers;
  const Hash* const hash = data_at<Hash>(record.keys, lock.text());
  for (const auto& [field, count] : hash == nullptr ? Hash{} : *hash) {
    if (field != "mode") {
      readers.push_back(field);
    }
  }
  return readers;
}

std::string first_waiter(const LockRecord& record, const LockName& lock)
{
  for (const LockKind& kind : std::array<LockKind, 3>{Plain{}, Writer{}, StringLock{}}) {
    const auto* set = data_at<SortedSet>(record.keys, LockKeys(lock, kind).queue);
    if (set == nullptr) {
      continue;
    }
    const auto first =
        std::ranges::find_if(set->order, [&](const auto& waiter) { return record.bindings.contains(waiter.second); });
    if (first != set->order.end()) {
      return first->second;
    }
  }
  return {};
}

namespace {

// Of a holder or a waiter of a read-write lock.
std::string_view mode_of(const LockRecord& record, const LockName& lock, const std::string& owner)
{
  const auto text_at = [&](const std::string& key, const std::string& field) -> std::string_view {
    const std::string* const value = value_in(data_at<Hash>(record.keys, key), field);
    return value == nullptr ? std::string_view() : std::string_view(*value);
  };
  const std::string as_writer = owner + std::string(writer_suffix);
  const bool holds = !text_at(lock.text(), owner).empty() || !text_at(lock.text(), as_writer).empty();
  const bool reads = holds ? text_at(lock.text(), as_writer).empty()
                           : text_at(LockKeys(lock, Writer{}).waiters, "wish:" + owner) == reader_mode;
  return reads ? reader_mode : writer_mode;
}

// A holder by the record becomes the first waiter. `mode`: of a read-write lock.
void put_in_front(LockRecord& record, const LockKeys& names, const std::string& owner, std::string_view mode = {})
{
  const std::string* const info = value_in(data_at<Hash>(record.keys, names.holder), owner);
  if (info == nullptr) {
    return;
  }
  auto& queue = make_at<SortedSet>(record.keys, names.queue);
  queue.add(owner, queue.order.empty() ? 1 : queue.order.begin()->first - 1);
  Hash& waiters = make_at<Hash>(record.keys, names.waiters);
  waiters.emplace_back(owner, *info);
  if (!mode.empty()) {
    waiters.emplace_back("wish:" + owner, mode);
  }
}

}  // namespace

std::string contender_of(const LockRecord& record, const std::string& owner)
{
  const std::string* const noted = owner == format_field ? nullptr : value_in(line_in(record), owner);
  return noted == nullptr ? "" : noted_in(*noted).name;
}

std::string owner_of(const LockRecord& record, const std::string& contender)
{
  const Hash* const line = line_in(record);
  for (const auto& field : line == nullptr ? Hash{} : *line) {
    if (is_owner(field) && noted_in(field.second).name == contender) {
      return field.first;
    }
  }
  return {};
}

bool is_native(const LockRecord& record, const Contender& contender)
{
  return owner_of(record, contender.name).empty();
}

void end_hold(LockRecord& record, const LockName& lock, const std::string& owner)
{
  if (standing_of(record.keys, lock, owner).holds) {
    end_owner(record, lock, owner);
    record.bindings.erase(owner);
  }
}

void lose_contender(LockRecord& record, const LockName& lock, const std::string& owner)
{
  forget(record, owner);
  end_hold(record, lock, owner);
}

void end_without_contender(LockRecord& record, const LockName& lock, const std::vector<PresenceId>& gone)
{
  const Hash* const line = line_in(record);
  for (const auto& [owner, text] : line == nullptr || gone.empty() ? Hash{} : *line) {
    if (owner != format_field && std::ranges::find(gone, noted_in(text).presence) != gone.end()) {
      lose_contender(record, lock, owner);
    }
  }
}

void show_native(LockRecord& record, const LockName& lock, const Contender& first, std::int64_t time_us)
{
  const LockKeys names(lock);
  put_in_front(record, names, exclusive_holder(record, lock));
  for (const std::string& key : {names.holder, names.force, names.reserved}) {
    record.keys.erase(key);
  }
  const auto ends = first.lasts ? std::optional(time_us / 1000 + first.lasts->count()) : std::nullopt;
  record.keys[names.lock] = {.data = Hash{{first.name, "1"}}, .expires = ends};
}

void show_holders(LockRecord& record, const LockName& lock, const LineView& view)
{
  const LockKeys names(lock, Writer{});
  const std::string mode(view.is_read_by_holders ? reader_mode : writer_mode);
  std::vector<std::string> behind = holders_of(record, lock);
  const Hash* const locked = data_at<Hash>(record.keys, names.lock);
  const Hash known = locked == nullptr ? Hash{} : *locked;
  Hash shown{{"mode", mode}};
  for (const Contender& each : view.holders) {
    const std::string owner = owner_of(record, each.name);
    if (owner.empty()) {
      shown.emplace_back(each.name + std::string(view.is_read_by_holders ? "" : writer_suffix), "1");
      record.keys[names.reads + each.name + ":rwlock_timeout:1"] = {.data = std::string("1"), .expires = std::nullopt};
      continue;
    }
    std::ranges::copy_if(known, std::back_inserter(shown), [&](const auto& field) {
      return field.first == owner || field.first == owner + std::string(writer_suffix);
    });
    std::erase(behind, owner);
  }
  for (const std::string& owner : behind) {
    put_in_front(record, names, owner, mode_of(record, lock, owner));
  }
  record.keys[names.lock] = {.data = std::move(shown), .expires = std::nullopt};
}

void show_writer(LockRecord& record, const LockName& lock, const std::string& name)
{
  record.keys[lock.text()] = {
      .data = Hash{{"mode", std::string(writer_mode)}, {name + std::string(writer_suffix), "1"}},
      .expires = std::nullopt};
}

namespace {

// The presence with which a new contender of the owner ends; empty: the owner has none.
PresenceId presence_for(const LockRecord& after, const std::string& owner, const NativeLine& line,
                        const Committer& committer)
{
  if (line.binds_sessions()) {
    return owner == committer.owner ? committer.presence : PresenceId();
  }
  const BoundPresence* const longest = longest_of(after, owner);
  return longest == nullptr ? PresenceId() : longest->id;
}

// The lease of the holder's contender is the longest of its presences.
std::optional<LineChange::Stand> stand_of_holder(const LockRecord& after, const std::string& holder, const Noted& noted)
{
  const BoundPresence* const longest = longest_of(after, holder);
  const auto bound = after.bindings.find(holder);
  if (longest == nullptr || longest->id == noted.presence) {
    return std::nullopt;
  }
  const auto known = std::ranges::find(bound->second, noted.presence, &BoundPresence::id);
  if (known != bound->second.end() && known->lease_ms >= longest->lease_ms) {
    return std::nullopt;
  }
  return LineChange::Stand{.name = noted.name, .presence = longest->id, .is_new = false};
}

// Whether the contender of a waiter stands in front of a holder: of the only one, or of the one that commits.
bool is_in_the_way(const std::string& contender, const std::vector<std::string>& holders, const NativeLine& line,
                   const std::optional<LineView>& view, const Committer& committer)
{
  const bool may_be =
      line.has_readers() ? std::ranges::find(holders, committer.owner) != holders.end() : !holders.empty();
  return may_be && view && view->first && view->first->name == contender;
}

}  // namespace

LineChange change_line(LockRecord& after, const LockName& lock, const NativeLine& line,
                       const std::optional<LineView>& view, const Committer& committer)
{
  LineChange change{.format = line.format()};
  Hash& noted = *line_in(after);
  const std::vector<std::string> holders = holders_of(after, lock);
  const auto holds = [&](const std::string& owner) { return std::ranges::find(holders, owner) != holders.end(); };
  std::string next = first_waiter(after, lock);
  std::erase_if(noted, [&](const auto& field) {
    if (!is_owner(field) || holds(field.first)) {
      return false;
    }
    const std::string contender = noted_in(field.second).name;
    const bool lets_pass = is_in_the_way(contender, holders, line, view, committer);
    if (!lets_pass && field.first == next) {
      return false;
    }
    change.leaves.push_back(contender);
    if (lets_pass) {
      next.clear();  // it stands again after a later change
    }
    return true;
  });
  std::vector<std::string> standing = holders;
  standing.push_back(next);
  for (const std::string& owner : standing) {
    if (change.stand || owner.empty()) {
      continue;
    }
    if (const std::string* const there = value_in(&noted, owner)) {
      const bool may_move = holds(owner) && !line.binds_sessions();
      change.stand = may_move ? stand_of_holder(after, owner, noted_in(*there)) : std::nullopt;
    } else if (const PresenceId presence = presence_for(after, owner, line, committer); !presence.empty()) {
      change.stand = LineChange::Stand{.name = line.contender_for(presence),
                                       .presence = presence,
                                       .is_new = true,
                                       .reads = mode_of(after, lock, owner) == reader_mode};
    }
    if (change.stand) {
      std::erase_if(noted, [&](const auto& each) { return each.first == owner; });
      noted.emplace_back(owner, text_of({.name = change.stand->name, .presence = change.stand->presence}));
    }
  }
  if (change.stand) {
    std::erase(change.leaves, change.stand->name);
  }
  return change;
}

}  // namespace rlock::record
