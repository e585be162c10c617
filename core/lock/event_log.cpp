// SPDX-License-Identifier: Apache-2.0
#include "lock/event_log.h"

#include "base/text.h"
#include "lock/lock_kind.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <utility>

namespace rlock {
namespace {

constexpr Millis longest_wait = std::chrono::years{10};  // that is believed

// 0 where there is none.
template <typename Number>
Number number(std::string_view digits)
{
  Number value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

Millis time_of(std::string_view digits)
{
  return std::clamp(Millis{number<std::int64_t>(digits)}, Millis{0}, longest_wait);
}

std::optional<int> exit_code(std::string_view digits)
{
  int value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return failed == std::errc{} ? std::optional(value) : std::nullopt;
}

void set_time(EventLogEntry& entry, std::string_view time)
{
  const auto point = time.find('.');
  entry.fence = number<std::uint64_t>(time);
  entry.time_us = static_cast<std::int64_t>(
      point == std::string_view::npos ? entry.fence
                                      : entry.fence * 1'000'000 + number<std::uint64_t>(time.substr(point + 1)));
  entry.time_ms = entry.time_us / 1000;
}

void set_word(EventLogEntry& entry, EventWord word, std::string_view value)
{
  switch (word) {
    case EventWord::to: entry.taker = value; break;
    case EventWord::owner: entry.owner = value; break;
    case EventWord::info: entry.info = decode_holder(value); break;
    case EventWord::wish:
      entry.has_mode = true;
      entry.is_shared = value != writer_mode;
      break;
    case EventWord::waited: entry.waited = time_of(value); break;
    case EventWord::claim: entry.is_claim = true; break;
    case EventWord::left: entry.left = number<std::int64_t>(value); break;
    case EventWord::exit: entry.result.exit_code = exit_code(value); break;
    case EventWord::outcome: entry.result.outcome = find_word(endings, value); break;
    case EventWord::fence:  // after the taker: its own, where that is not the time
      (entry.taker || entry.found_free() ? entry.fence : entry.result.fence) = number<std::uint64_t>(value);
      break;
    case EventWord::attempt: entry.result.attempt = number<int>(value); break;
    case EventWord::retry: entry.result.kept_for = time_of(value); break;
    case EventWord::by: entry.by = value; break;
    case EventWord::what: entry.loss = find_word(losses, value); break;
    case EventWord::holder: entry.holder = value; break;
    case EventWord::times: entry.times = std::max<std::int64_t>(1, number<std::int64_t>(value)); break;
  }
}

}  // namespace

// A user's name has no colon, and a host's name no parenthesis, so the first end of a pid ends the name of the client.
WhoAndWhy who_and_why(std::string_view text)
{
  const std::string_view separator = "): ";
  const auto at = text.find(separator);
  return at == std::string_view::npos
             ? WhoAndWhy{.by = text, .reason = {}}
             : WhoAndWhy{.by = text.substr(0, at + 1), .reason = text.substr(at + separator.size())};
}

std::string text_of(const WhoAndWhy& request)
{
  return std::string(request.by) + (request.reason.empty() ? "" : ": " + std::string(request.reason));
}

std::string text_of_busy(const Owner& holder, const std::optional<HolderInfo>& info)
{
  const bool is_freeze = info && !info->freeze.empty();
  return holder.text().empty() ? "" : holder_text(holder, info) + (is_freeze ? ", freeze: " + info->freeze : "");
}

std::string_view name_of(LockEvent::What what)
{
  constexpr std::array<std::string_view, 10> names{"acquired", "released", "handed_over", "renewed_late", "expired",
                                                   "lost",     "forced",   "skipped",     "frozen",       "thawed"};
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
  return known != m_known.end() ? known->second.info : m_ended == owner ? m_ended_info : std::nullopt;
}

std::string EventLogReader::next_holder(const EventLogEntry& entry) const
{
  const std::string known = m_holder == entry.owner ? "" : m_holder;
  const std::string holder = entry.holder.value_or(known);  // missing in entries of an older version
  return text_of_busy(Owner::of(holder), info_of(holder));
}

std::optional<Owner> EventLogReader::holder() const
{
  return m_holder.empty() ? std::nullopt : std::optional(Owner::of(m_holder));
}

bool EventLogReader::is_freeze(const std::string& owner) const
{
  const auto known = m_known.find(owner);
  return known != m_known.end() && known->second.info && !known->second.info->freeze.empty();
}

LockEvent EventLogReader::expired(std::int64_t time_ms)
{
  const std::string owner = std::exchange(m_holder, "");
  LockEvent expired = event(is_freeze(owner) ? LockEvent::What::thawed : LockEvent::What::expired, time_ms, owner);
  expired.by = m_known[owner].wanted_by;
  return expired;
}

// Whether the release and the grant of one entry are two events, because one of them is the end or the beginning of a freeze.
bool EventLogReader::is_told_apart(const EventLogEntry& entry) const
{
  return is_freeze(entry.owner) || (entry.info && !entry.info->freeze.empty());
}

// The end of a hold, unless the same entry hands the lock over.
void EventLogReader::add_end(const EventLogEntry& entry, std::vector<LockEvent>& events)
{
  using enum LockEvent::What;
  const auto add = [&](LockEvent::What what) -> LockEvent& {
    return events.emplace_back(event(what, entry.time_ms, entry.owner));
  };
  if (entry.kind == EventKind::asked) {
    m_known[entry.owner].wanted_by = entry.by;
  } else if (entry.kind == EventKind::renewed_late || entry.kind == EventKind::lost) {
    LockEvent& trouble = add(entry.kind == EventKind::lost ? lost : renewed_late);
    trouble.is_taken = entry.loss == Loss::held;
    trouble.by = trouble.is_taken ? next_holder(entry) : entry.by;
    trouble.left = Millis(entry.left.value_or(0));
    if (trouble.fence == 0) {  // the log had forgotten the grant
      trouble.fence = entry.result.fence;
      trouble.info = entry.info;
    }
  } else if (entry.kind == EventKind::forced) {
    add(is_freeze(entry.owner) ? thawed : forced).by = entry.by;
  } else if (entry.kind == EventKind::skipped) {
    LockEvent& skip = add(skipped);
    skip.info = entry.info;
    skip.exit_code = entry.result.exit_code;
    skip.is_replaced = !entry.by.empty();
    skip.by = skip.is_replaced ? text_of_newer(entry.by) : skip.exit_code ? "" : next_holder(entry);
    skip.times = entry.times;
  } else if (entry.ends() && (!entry.taker || is_told_apart(entry))) {
    LockEvent& release = add(is_freeze(entry.owner) ? thawed : released);
    release.by = m_known[entry.owner].wanted_by;
    release.exit_code = entry.result.exit_code;
    release.outcome = outcome_of(entry.result);
  }
}

void EventLogReader::add_grant(const EventLogEntry& entry, std::vector<LockEvent>& events)
{
  using enum LockEvent::What;
  const std::string& taker = *entry.taker;
  if (!entry.is_shared && entry.found_free() && !m_holder.empty() && m_holder != taker) {
    events.push_back(this->expired(entry.time_ms));
  }
  m_known[taker] = {.fence = entry.fence, .info = entry.info, .wanted_by = {}};
  const bool is_handover = !entry.found_free() && !is_told_apart(entry);
  events.push_back(event(is_freeze(taker) ? frozen : is_handover ? handed_over : acquired, entry.time_ms, taker));
  if (is_handover) {
    LockEvent& handover = events.back();
    handover.from = entry.owner;
    handover.from_info = info_of(entry.owner);
    handover.by = entry.kind == EventKind::released ? m_known[entry.owner].wanted_by : entry.by;
    handover.exit_code = entry.result.exit_code;
    handover.outcome = outcome_of(entry.result);
  }
  m_holder = entry.is_shared ? "" : taker;
}

namespace {

// Whether a later entry corrects a loss: the run was over before its lease, and told its result when the lease was over.
bool is_corrected(const EventLogEntry& entry, std::span<const EventLogEntry> later)
{
  return entry.kind == EventKind::lost && std::ranges::any_of(later, [&](const EventLogEntry& each) {
           return each.kind == EventKind::released && each.ends() && each.owner == entry.owner;
         });
}

}  // namespace

std::vector<LockEvent> EventLogReader::read(std::span<const EventLogEntry> entries)
{
  std::vector<LockEvent> events;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const EventLogEntry& entry = entries[i];
    if (is_corrected(entry, entries.subspan(i + 1))) {
      continue;
    }
    add_end(entry, events);
    if (entry.ends()) {
      m_holder = m_holder == entry.owner ? "" : m_holder;
    }
    if (entry.taker) {
      add_grant(entry, events);
    }
    if (entry.ends()) {
      m_ended_info = info_of(entry.owner);
      m_ended = entry.owner;
      m_known.erase(entry.owner);
    }
  }
  return events;
}

EventLogEntry EventLogEntry::of(std::string text)
{
  EventLogEntry entry{.text = std::move(text)};
  const auto parts = split(entry.text, '\0');
  set_time(entry, parts.front());
  if (parts.size() < 3) {
    return entry;
  }
  entry.kind = find_word(event_kinds, parts[1]);
  entry.owner = parts[2];
  for (std::size_t i = 3; i + 1 < parts.size(); i += 2) {
    if (const auto word = find_word(event_words, parts[i])) {
      set_word(entry, *word, parts[i + 1]);
    }
  }
  entry.taker = entry.found_free() ? entry.owner : entry.taker;
  entry.is_outermost = entry.owner == parts[2];
  entry.result.outcome = entry.result.outcome ? entry.result.outcome : outcome_by(entry.result.exit_code);
  return entry;
}

}  // namespace rlock
