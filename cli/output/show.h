// SPDX-License-Identifier: Apache-2.0
// Locks as text for operators. Text from the server is made safe to print.
#pragma once

#include "cli/output/colours.h"
#include "lock/event_log.h"
#include "lock/store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rlock::cli {

// "2026-11-21 12:00:00 UTC (5m 3s ago)"; no age when the clock of the holder's host is ahead.
std::string since_and_age(std::int64_t since_ms, std::int64_t now_ms);

// A paragraph: "stock: held" with its holders, or "stock: free"; and the first ten waiters.
std::string show_status(const LockState& state, std::int64_t now_ms, const Colours& colours = Colours());

// "failed (exit 3)"; "released" where nothing is known of a job.
std::string show_outcome(const PastRun& run);

// A table of runs; empty when there is none.
std::string show_history(const std::vector<PastRun>& runs, const Colours& colours = Colours());

// A table of held locks; empty when no lock is held.
std::string show_list(const std::vector<LockState>& states, std::int64_t now_ms, const Colours& colours = Colours());

// An event, and the lock that it is about.
struct ShownEvent {
  LockName name;
  LockEvent event;
};

// A line: the time, the lock, the event and its details.
std::string show_event(const ShownEvent& shown);

}  // namespace rlock::cli
