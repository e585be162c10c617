// SPDX-License-Identifier: Apache-2.0
// The event log of a lock: the entries that the server stored, and the events that follow from them. Plain values and a pure
// reader; the server's side is LockStore::read_logs (lock/store.h).
#pragma once

#include "lock/holder.h"
#include "lock/names.h"
#include "lock/past_run.h"
#include "lock/requests.h"
#include "lock/schema.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// One entry: what one request did to the lock. lock/schema.h says which kind has which words.
struct EventLogEntry {
  std::string text;
  std::int64_t time_us = 0;  // by the server's clock
  std::int64_t time_ms = 0;
  std::uint64_t fence = 0;                           // of the owner that the entry grants the lock to
  std::optional<EventKind> kind = std::nullopt;      // missing: of a later version, or no entry of rlock
  std::string owner = {};                            // that the entry is about; of a hand-over, the one before
  std::optional<std::string> taker = std::nullopt;   // that the entry grants the lock to
  std::optional<HolderInfo> info = std::nullopt;     // of `taker`; without one: of `owner`
  bool has_mode = false;                             // the kind of the lock admits several holders
  bool is_shared = false;                            // and the taker holds the lock beside others
  bool is_claim = false;                             // the taker is yet to take the lock, which it found free
  Millis waited{0};                                  // by the taker, or by the owner of the skipped run
  bool is_outermost = false;                         // released: the hold is that of the acquisition, not a nested one
  std::optional<std::int64_t> left = std::nullopt;   // released: holds of the owner; renewed_late: ms of the lease
  RunResult result = {};                             // of the owner's run
  std::string by = {};                               // for people: who asked for the lock; skipped: SkippedRun::newer
  std::optional<Loss> loss = std::nullopt;           // lost: missing: the key holds something else
  std::optional<std::string> holder = std::nullopt;  // lost, skipped: the present holder, or "": none; missing: unknown
  std::int64_t times = 1;                            // skipped: how many runs the entry stands for

  static EventLogEntry of(std::string text);

  [[nodiscard]] bool found_free() const { return kind == EventKind::acquired; }
  // A release names its hold: only the last hold of an owner ends the lock.
  [[nodiscard]] bool ends() const
  {
    return kind == EventKind::forced || kind == EventKind::lost || (kind == EventKind::released && !left);
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
  // frozen: a freeze took the lock; thawed: it ended, whether it was released or its time was over.
  enum class What { acquired, released, handed_over, renewed_late, expired, lost, forced, skipped, frozen, thawed };

  What what;
  std::int64_t time_ms;     // since 1970, by the server's clock; expired: when the end was noticed
  Owner owner;              // whose hold the event is about; handed_over: the new holder
  std::uint64_t fence = 0;  // the fencing number of `owner`; 0: unknown
  std::string by = {};      // for people: the client that requested the release; lost: the new holder; skipped: the
                            // holder; empty: unknown
  std::string from = {};    // handed_over: the token of the previous owner
  std::optional<HolderInfo> from_info = {};  // of that owner, if it is known
  bool is_taken = false;                     // lost: another client holds the lock
  bool is_replaced = false;                  // skipped: `by` is the newer run that took its place
  Millis left{0};                            // renewed_late: what was left of the lease
  std::optional<HolderInfo> info = {};       // about `owner`; nullopt: unknown
  std::optional<int> exit_code = {};  // released, handed_over: of the run that is over; skipped: of a run whose command
                                      // cannot be executed; nullopt: unknown
  std::int64_t times = 1;             // skipped: how many such runs in a row this event stands for
  std::optional<Outcome> outcome =
      {};  // released, handed_over: of the run that is over; unused: no job ran; nullopt: unknown
};

// Who asked for a lock, and why: the two parts of a request's text, which the server stores and older clients show,
// "ann as root@web1 (pid 71): moving the database".
struct WhoAndWhy {
  std::string_view by;
  std::string_view reason;  // of --reason; empty: none was given
};
// `text` must outlive the result.
WhoAndWhy who_and_why(std::string_view text);
std::string text_of(const WhoAndWhy& request);

// The holder that kept a run off, for people: "ann as root@web1 (pid 71), freeze: moving the database"; of an empty owner: "".
std::string text_of_busy(const Owner& holder, const std::optional<HolderInfo>& info);

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
  [[nodiscard]] bool is_freeze(const std::string& owner) const;
  [[nodiscard]] bool is_told_apart(const EventLogEntry& entry) const;
  // The holder that the entry names, for people: of a lock that an owner has lost or did not get; empty: none.
  [[nodiscard]] std::string next_holder(const EventLogEntry& entry) const;
  void add_end(const EventLogEntry& entry, std::vector<LockEvent>& events);
  void add_grant(const EventLogEntry& entry, std::vector<LockEvent>& events);

  std::map<std::string, Known> m_known;
  std::string m_holder;
  std::string m_ended;  // the last owner whose hold ended: with --min-hold it still keeps the lock
  std::optional<HolderInfo> m_ended_info;
};

}  // namespace rlock
