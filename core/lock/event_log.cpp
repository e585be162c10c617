// SPDX-License-Identifier: Apache-2.0
#include "lock/event_log.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace rlock {
namespace {

std::uint64_t number(std::string_view digits)
{
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

}  // namespace

class EventLogReader::Words {
 public:
  explicit Words(const EventLogEntry& entry) : m_entry(entry) {}
  [[nodiscard]] std::string_view first() const
  {
    return m_entry.words.empty() ? "" : std::string_view(m_entry.words.front().first);
  }
  // The owner that the entry is about. A release names the hold first: only the last hold of an owner ends the lock.
  [[nodiscard]] std::string subject() const { return text(first() == "released" ? "owner" : first()); }
  [[nodiscard]] bool ends() const
  {
    return first() == "forced" || first() == "lost" || (first() == "released" && !has("left"));
  }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  [[nodiscard]] std::string text(std::string_view name) const
  {
    const std::string* value = find(name);
    return value != nullptr ? *value : "";
  }

 private:
  [[nodiscard]] const std::string* find(std::string_view name) const
  {
    for (const auto& [word, value] : m_entry.words) {
      if (word == name) {
        return &value;
      }
    }
    return nullptr;
  }
  const EventLogEntry& m_entry;
};

std::string_view name_of(LockEvent::What what)
{
  constexpr std::array<std::string_view, 7> names{"acquired", "released", "handed_over", "renewed_late",
                                                  "expired",  "lost",     "forced"};
  return names[static_cast<std::size_t>(what)];
}

LockEvent EventLogReader::event(LockEvent::What what, std::int64_t time_ms, const std::string& owner) const
{
  LockEvent event{.what = what, .time_ms = time_ms, .owner = Owner::of(owner)};
  if (const auto known = m_known.find(owner); known != m_known.end()) {
    event.fence = known->second.fence;
    event.info = known->second.info;
  }
  return event;
}

std::optional<HolderInfo> EventLogReader::info_of(const std::string& owner) const
{
  const auto known = m_known.find(owner);
  return known == m_known.end() ? std::nullopt : known->second.info;
}

std::string EventLogReader::next_holder(const Words& words) const
{
  const std::string known = m_holder == words.subject() ? "" : m_holder;
  const std::string holder =
      words.has("holder") ? words.text("holder") : known;  // missing in entries of an older version
  return holder.empty() ? "" : describe_who(Owner::of(holder), info_of(holder));
}

std::optional<Owner> EventLogReader::holder() const
{
  return m_holder.empty() ? std::nullopt : std::optional(Owner::of(m_holder));
}

LockEvent EventLogReader::expired(std::int64_t time_ms)
{
  const std::string owner = std::exchange(m_holder, "");
  LockEvent expired = event(LockEvent::What::expired, time_ms, owner);
  expired.by = m_known[owner].wanted_by;
  return expired;
}

// The end of a hold, unless the same entry hands the lock over.
void EventLogReader::add_end(const Words& words, std::int64_t time_ms, std::vector<LockEvent>& events)
{
  using enum LockEvent::What;
  const std::string_view first = words.first();
  const std::string owner = words.subject();
  if (first == "asked") {
    m_known[owner].wanted_by = words.text("by");
  } else if (first == "renewed_late" || first == "lost") {
    events.push_back(event(first == "lost" ? lost : renewed_late, time_ms, owner));
    events.back().by = first == "lost" && words.text("by").empty() ? next_holder(words) : words.text("by");
    events.back().now = words.text("what");
    events.back().left = Millis(number(words.text("left")));
  } else if (first == "forced") {
    events.push_back(event(forced, time_ms, owner));
    events.back().by = words.text("by");
  } else if (words.ends() && !words.has("to")) {
    events.push_back(event(released, time_ms, owner));
    events.back().by = m_known[owner].wanted_by;
  }
}

void EventLogReader::add_grant(const Words& words, const EventLogEntry& entry, std::vector<LockEvent>& events)
{
  using enum LockEvent::What;
  const bool found_free = words.first() == "acquired";
  const std::string taker = found_free ? words.subject() : words.text("to");
  const std::string mode = words.text("wish");
  const bool is_exclusive = mode.empty() || mode == "write";
  if (is_exclusive && found_free && !m_holder.empty() && m_holder != taker) {
    events.push_back(this->expired(entry.time_ms));
  }
  m_known[taker] = {.fence = entry.fence, .info = decode_holder(words.text("info")), .wanted_by = {}};
  events.push_back(event(found_free ? acquired : handed_over, entry.time_ms, taker));
  if (!found_free) {
    events.back().from = words.subject();
    events.back().from_info = info_of(words.subject());
    events.back().by = words.first() == "released" ? m_known[words.subject()].wanted_by : words.text("by");
  }
  m_holder = is_exclusive ? taker : "";
}

std::vector<LockEvent> EventLogReader::read(std::span<const EventLogEntry> entries)
{
  std::vector<LockEvent> events;
  for (const EventLogEntry& entry : entries) {
    const Words words(entry);
    add_end(words, entry.time_ms, events);
    if (words.ends()) {
      m_holder = m_holder == words.subject() ? "" : m_holder;
    }
    if (words.first() == "acquired" || words.has("to")) {
      add_grant(words, entry, events);
    }
    if (words.ends()) {
      m_known.erase(words.subject());
    }
  }
  return events;
}

EventLogEntry EventLogEntry::of(std::string text)
{
  EventLogEntry entry{.text = std::move(text)};
  std::vector<std::string> parts;
  std::string_view rest = entry.text;
  for (bool more = true; more;) {
    const auto end = rest.find('\0');
    parts.emplace_back(rest.substr(0, end));
    more = end != std::string_view::npos;
    rest.remove_prefix(more ? end + 1 : rest.size());
  }
  entry.fence = number(parts.front());
  const auto point = parts.front().find('.');
  entry.time_ms = static_cast<std::int64_t>(point == std::string::npos
                                                ? entry.fence / 1000
                                                : entry.fence * 1000 +
                                                      number(std::string_view(parts.front()).substr(point + 1)) / 1000);
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) {
    entry.words.emplace_back(std::move(parts[i]), std::move(parts[i + 1]));
  }
  return entry;
}

}  // namespace rlock
