// SPDX-License-Identifier: Apache-2.0
// What happened to a lock lately, as the scripts wrote it down on the server.
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

// One entry, as the scripts wrote it.
struct EventLogEntry {
  std::string text;
  std::int64_t time_ms = 0;
  std::uint64_t fence = 0;  // of whom it lets in
  std::vector<std::pair<std::string, std::string>> words;
  static EventLogEntry of(std::string text);
};

// Which entries of a lock's event log to read.
struct EventLogQuery {
  LockName name;
  std::string after;  // EventLogEntry::text of the last entry that was read; "": all that are left
};

struct LockEvent {
  enum class What { acquired, released, handed_over, renewed_late, expired, lost, forced };

  What what;
  std::int64_t time_ms;     // the server's clock; of `expired`: when it was found out
  Owner owner;              // whom it happened to; of `handed_over`: who has it now
  std::uint64_t fence = 0;  // of that owner; 0: not known any more
  std::string by = {};      // for people: who wanted it from that owner; of `lost`: who holds it now; empty: unknown
  std::string from = {};    // handed_over: the token of the owner before
  std::optional<HolderInfo> from_info = {};  // of that owner, if it is still known
  std::string now = {};                      // lost: "none", "held" or what the key holds
  Millis left{0};                            // renewed_late: what was left of the lease
  std::optional<HolderInfo> info = {};       // of the owner, if it is still known
};

std::string_view name_of(LockEvent::What what);  // "handed_over"

// Makes events of the entries of one lock: what they leave out is known from those before. Pure.
class EventLogReader {
 public:
  std::vector<LockEvent> read(std::span<const EventLogEntry> entries);

  // Who has it by the trail, where only one can; when the server says otherwise its lease has ended.
  [[nodiscard]] std::optional<Owner> holder() const;
  LockEvent expired(std::int64_t time_ms);  // of holder(), who has it no more

 private:
  struct Known {
    std::uint64_t fence = 0;
    std::optional<HolderInfo> info;
    std::string wanted_by;
  };
  class Words;
  [[nodiscard]] LockEvent event(LockEvent::What what, std::int64_t time_ms, const std::string& owner) const;
  [[nodiscard]] std::optional<HolderInfo> info_of(const std::string& owner) const;
  // For people: who holds the lock that the owner has lost; empty: no client.
  [[nodiscard]] std::string next_holder(const Words& words) const;
  void tell_end(const Words& words, std::int64_t time_ms, std::vector<LockEvent>& events);
  void tell_grant(const Words& words, const EventLogEntry& entry, std::vector<LockEvent>& events);

  std::map<std::string, Known> m_known;
  std::string m_holder;
};

}  // namespace rlock
