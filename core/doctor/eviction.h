// SPDX-License-Identifier: Apache-2.0
// Asks a Redis server whether it may evict locks, without the rest of the doctor's questions.
#pragma once

#include <optional>
#include <string>
#include "base/clock.h"
#include "stores/open.h"

namespace rlock {

// "redis://db1:6379 may forget locks: …" for the first server that may evict them. nullopt: none, or no server says so within a
// second. Takes a connection of its own to each server.
std::optional<std::string> eviction_warning(const ServerSpec& server, const Clock& clock);

}  // namespace rlock
