// SPDX-License-Identifier: Apache-2.0
// The event log of a lock: the entries that the server stored, and the events that follow from them. Plain values and a pure
// reader; the server's side is the ability EventLog (lock/abilities.h).
#pragma once

#include "lock/holder.h"
#include "lock/lock_state.h"
#include "lock/names.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rlock {

// One entry: what one request did to the lock.
struct EventLogEntry {
  std::string text;
  std::int64_t time_us = 0;  // by the server's clock
  std::int64_t time_ms = 0;
  std::uint64_t fence = 0;                                 // the fencing number of a grant
  std::vector<std::pair<std::string, std::string>> words;  // name and value; the first name tells what happened

  // Parses TIME, name, value, name, value …, separated by NUL. TIME is the fencing number of a grant, which also counts
  // microseconds, or "SECONDS.MICROSECONDS".
  static EventLogEntry of(std::string text);

  [[nodiscard]] std::string_view first() const { return words.empty() ? "" : std::string_view(words.front().first); }
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::string_view word(std::string_view name) const;  // the value; empty: the entry has no such name
  // The owner that the entry is about. A release names the hold first: only the last hold of an owner ends the lock.
  [[nodiscard]] std::string subject() const { return std::string(word(first() == "released" ? "owner" : first())); }
  // Whether the lock has no hold of the subject after this entry.
  [[nodiscard]] bool ends() const
  {
    return first() == "forced" || first() == "lost" || (first() == "released" && !has("left"));
  }
};

// Which entries of a lock's event log to read.
struct EventLogQuery {
  LockName name;
  // EventLogEntry::text of the last entry that the caller has read; empty: the caller has read none. If the log no longer has
  // that entry, all entries are read.
  std::string after;
};

struct LockEvent {
  enum class What { acquired, released, handed_over, renewed_late, expired, lost, forced, skipped };

  What what;
  std::int64_t time_ms;     // since 1970, by the server's clock; expired: when the end was noticed
  Owner owner;              // whose hold the event is about; handed_over: the new holder
  std::uint64_t fence = 0;  // the fencing number of `owner`; 0: unknown
  std::string by = {};      // for people: the client that requested the release; lost: the new holder; skipped: the
                            // holder; empty: unknown
  std::string from = {};    // handed_over: the token of the previous owner
  std::optional<HolderInfo> from_info = {};  // about the previous owner; nullopt: unknown
  std::string now = {};                      // lost: "none", "held" or what the key holds
  Millis left{0};                            // renewed_late: what was left of the lease
  std::optional<HolderInfo> info = {};       // about `owner`; nullopt: unknown
  std::optional<int> exit_code = {};  // released, handed_over: of the run that is over; skipped: of a run whose command
                                      // cannot be executed; nullopt: unknown
  std::int64_t times = 1;             // skipped: how many such runs in a row this event stands for
};

std::string_view name_of(LockEvent::What what);  // "handed_over"

// Turns the entries of one lock into events. An entry leaves out what earlier entries tell, so a reader has to read all
// entries in their order. Not thread-safe.
class EventLogReader {
 public:
  std::vector<LockEvent> read(std::span<const EventLogEntry> entries);

  // The holder of an exclusive lock after the entries so far. If the server names another holder, or none, the lease of this
  // holder has expired.
  [[nodiscard]] std::optional<Owner> holder() const;
  LockEvent expired(std::int64_t time_ms);  // the event for holder(), which holds the lock no longer

 private:
  struct Known {
    std::uint64_t fence = 0;
    std::optional<HolderInfo> info;
    std::string wanted_by;
  };
  [[nodiscard]] LockEvent event(LockEvent::What what, std::int64_t time_ms, const std::string& owner) const;
  [[nodiscard]] std::optional<HolderInfo> info_of(const std::string& owner) const;
  // The holder that the entry names, for people: of a lock that an owner has lost or did not get; empty: none.
  [[nodiscard]] std::string next_holder(const EventLogEntry& entry) const;
  void add_end(const EventLogEntry& entry, std::vector<LockEvent>& events);
  void add_grant(const EventLogEntry& entry, std::vector<LockEvent>& events);

  std::map<std::string, Known> m_known;
  std::string m_holder;
};

}  // namespace rlock
