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

std::optional<int> exit_code_in(const EventLogEntry& entry)
{
  return entry.has("exit") ? std::optional(static_cast<int>(number(entry.word("exit")))) : std::nullopt;
}

}  // namespace

bool EventLogEntry::has(std::string_view name) const
{
  return std::any_of(words.begin(), words.end(), [&](const auto& each) { return each.first == name; });
}

std::string_view EventLogEntry::word(std::string_view name) const
{
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& each) { return each.first == name; });
  return found == words.end() ? "" : std::string_view(found->second);
}

std::string_view name_of(LockEvent::What what)
{
  constexpr std::array<std::string_view, 8> names{"acquired", "released", "handed_over", "renewed_late",
                                                  "expired",  "lost",     "forced",      "skipped"};
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

std::string EventLogReader::next_holder(const EventLogEntry& entry) const
{
  const std::string known = m_holder == entry.subject() ? "" : m_holder;
  const std::string holder =
      entry.has("holder") ? std::string(entry.word("holder")) : known;  // missing in entries of an older version
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
void EventLogReader::add_end(const EventLogEntry& entry, std::vector<LockEvent>& events)
{
  using enum LockEvent::What;
  const std::string_view first = entry.first();
  const std::string owner = entry.subject();
  if (first == "asked") {
    m_known[owner].wanted_by = entry.word("by");
  } else if (first == "renewed_late" || first == "lost") {
    events.push_back(event(first == "lost" ? lost : renewed_late, entry.time_ms, owner));
    const bool is_taken = first == "lost" && entry.word("what") == "held";
    events.back().by = is_taken ? next_holder(entry) : entry.word("by");
    events.back().now = entry.word("what");
    events.back().left = Millis(number(entry.word("left")));
    if (events.back().fence == 0) {  // the log had forgotten the grant
      events.back().fence = number(entry.word("fence"));
      events.back().info = decode_holder(entry.word("info"));
    }
  } else if (first == "forced") {
    events.push_back(event(forced, entry.time_ms, owner));
    events.back().by = entry.word("by");
  } else if (first == "skipped") {
    events.push_back(event(skipped, entry.time_ms, owner));
    events.back().info = decode_holder(entry.word("info"));
    events.back().exit_code = exit_code_in(entry);
    events.back().by = events.back().exit_code ? "" : next_holder(entry);
    events.back().times = std::max<std::int64_t>(1, static_cast<std::int64_t>(number(entry.word("times"))));
  } else if (entry.ends() && !entry.has("to")) {
    events.push_back(event(released, entry.time_ms, owner));
    events.back().by = m_known[owner].wanted_by;
    events.back().exit_code = exit_code_in(entry);
  }
}

void EventLogReader::add_grant(const EventLogEntry& entry, std::vector<LockEvent>& events)
{
  using enum LockEvent::What;
  const bool found_free = entry.first() == "acquired";
  const std::string taker = found_free ? entry.subject() : std::string(entry.word("to"));
  const std::string_view mode = entry.word("wish");
  const bool is_exclusive = mode.empty() || mode == "write";
  if (is_exclusive && found_free && !m_holder.empty() && m_holder != taker) {
    events.push_back(this->expired(entry.time_ms));
  }
  m_known[taker] = {.fence = entry.fence, .info = decode_holder(entry.word("info")), .wanted_by = {}};
  events.push_back(event(found_free ? acquired : handed_over, entry.time_ms, taker));
  if (!found_free) {
    events.back().from = entry.subject();
    events.back().from_info = info_of(entry.subject());
    events.back().by = entry.first() == "released" ? m_known[entry.subject()].wanted_by : entry.word("by");
    events.back().exit_code = exit_code_in(entry);
  }
  m_holder = is_exclusive ? taker : "";
}

std::vector<LockEvent> EventLogReader::read(std::span<const EventLogEntry> entries)
{
  std::vector<LockEvent> events;
  for (const EventLogEntry& entry : entries) {
    add_end(entry, events);
    if (entry.ends()) {
      m_holder = m_holder == entry.subject() ? "" : m_holder;
    }
    if (entry.first() == "acquired" || entry.has("to")) {
      add_grant(entry, events);
    }
    if (entry.ends()) {
      m_known.erase(entry.subject());
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
  entry.time_us = static_cast<std::int64_t>(
      point == std::string::npos ? entry.fence
                                 : entry.fence * 1'000'000 + number(std::string_view(parts.front()).substr(point + 1)));
  entry.time_ms = entry.time_us / 1000;
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) {
    entry.words.emplace_back(std::move(parts[i]), std::move(parts[i + 1]));
  }
  return entry;
}

}  // namespace rlock
