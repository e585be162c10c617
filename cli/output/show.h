// SPDX-License-Identifier: Apache-2.0
// Locks as operators read them. What comes from the server is made safe to print.
#pragma once

#include "lock/event_log.h"
#include "lock/store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rlock::cli {

// "2026-11-21 12:00:00 UTC (5m 3s ago)"; no age when the holder's clock is ahead of ours.
std::string since_and_age(std::int64_t since_ms, std::int64_t now_ms);

// A paragraph: "stock: held" and what is known of it, or "stock: free"; and the first ten who wait.
std::string show_status(const LockState& state, std::int64_t now_ms);

// A table of held locks; empty when there are none.
std::string show_list(const std::vector<LockState>& states, std::int64_t now_ms);

// What happened, and to which lock.
struct ShownEvent {
  LockName name;
  LockEvent event;
};

// A line: when, which lock, what, and all that is known of it.
std::string show_event(const ShownEvent& shown);

}  // namespace rlock::cli
