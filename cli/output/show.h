// SPDX-License-Identifier: Apache-2.0
// The order in which locks are shown: `--sort`, and the keys of `rlock watch`.
// Locks, and the settings of rlock, as text for operators. Text from the server is made safe to print.
#pragma once

#include "cli/output/output.h"
#include "cli/output/pools.h"
#include "lock/event_log.h"
#include "lock/store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

enum class SortBy { key, age, ttl, waiting, rate };

// How long the first holder has had the lock; missing: unknown, or its host's clock is ahead.
std::optional<Millis> age_of(const LockState& state, std::int64_t wall_ms);

// By key, the oldest first, the next to expire first, or the longest queue first. SortBy::rate: the server does not say
// a rate, so the order is that of the keys.
bool comes_before(const LockState& one, const LockState& other, SortBy sort, std::int64_t wall_ms);

// Equal ones by key.
void sort_locks(std::vector<LockState>& states, SortBy sort, std::int64_t wall_ms);

// " (revoked)" or " (1 of 3 revoked)" for a lock with holders whose renewals are refused; else empty.
std::string revoked_mark(const LockState& state);
// Whether no holder has a job any more (HolderInfo::over). False for a free lock.
bool is_job_over(const LockState& state);

// "2026-11-21 13:00:00 +01:00 (5m 3s ago)"; no age when the clock of the holder's host is ahead.
std::string since_and_age(std::int64_t since_ms, std::int64_t now_ms);

// A paragraph: "stock: held" with its holders, or "stock: free"; and the first ten waiters. `server_option`: what a command that
// the user may copy needs to ask the same server (OpenedStore::server_option).
std::string show_status(const LockState& state, std::int64_t now_ms, const Colors& colors = Colors(),
                        std::string_view server_option = {});

// The same for a pool, of which show_status shows the locks: "phones: 2 of 5 free", which are free, and the first ten waiters.
std::string show_pool_status(const ShownPool& pool, std::int64_t now_ms, const Colors& colors = Colors());

// "failed (exit 3)"; "released" where nothing is known of a job.
std::string show_outcome(const PastRun& run);

// A run, and the lock under which it ran. Views.
struct ShownRun {
  const LockName* name;
  const PastRun* run;
};

// A table of runs; empty when there is none. `names_locks`: it has a column with the locks.
std::string show_history(const std::vector<ShownRun>& runs, bool names_locks, const Colors& colors = Colors());
// The runs of one lock.
std::string show_history(const LockState& state);

// A table of held locks, a pool before its first lock; empty when no lock is held.
std::string show_list(const std::vector<LockState>& states, std::int64_t now_ms, const Colors& colors = Colors(),
                      const std::vector<ShownPool>& pools = {});

// A table of locks, held or free: how their last runs ended. Empty when there is no lock.
std::string show_all(const std::vector<LockState>& states, std::int64_t now_ms, const Colors& colors = Colors());

// An event, and the lock that it is about.
struct ShownEvent {
  LockName name;
  LockEvent event;
};

// A line: the time, the lock, the event and its details.
std::string show_event(const ShownEvent& shown);

// A setting, and where it comes from.
struct ShownSetting {
  std::string name;                  // "server", "run.wait"
  std::optional<std::string> value;  // without secrets; nullopt: none
  std::string_view origin;           // "option", "variable", "file" or "default"
  std::string variable{};            // its name
  std::string from;                  // the origin for people: "--server @prod, /etc/rlock.toml:9"
  std::string place{};               // "/etc/rlock.toml:9": the line with the value; empty: in no file
};

// A table.
std::string show_settings(const std::vector<ShownSetting>& settings, const Colors& colors);

}  // namespace rlock::cli
