// SPDX-License-Identifier: Apache-2.0
// The locks of --shards as one: how many of a pool are free, and how many callers wait for any of them.
#pragma once

#include "cli/output/output.h"
#include "lock/requests.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rlock::cli {

struct ShownPool {
  Pool pool;                           // as the newest record has it
  std::size_t held = 0;                // locks
  std::vector<Waiter> waiting = {};    // callers that need any one, each once although it waits in several lines
  std::vector<std::string> free = {};  // names; empty: they are not known
  bool is_counted = true;              // false: only `pool` is known
};

// "0", "1" and so on where the locks have numbers; empty: the names are not known.
std::vector<std::string> shard_names(const Pool& pool);

// The pool in the newest record of a holder or a waiter of the lock; nullopt: the lock is no shard.
std::optional<Pool> pool_of(const LockState& state);

// The pools of which `states` has a lock, sorted by key. `pattern`: the glob by which the states were listed: a pool of which it
// leaves out a lock is left out.
std::vector<ShownPool> pools_of(const std::vector<LockState>& states, const std::string& pattern);

// Takes the waiters that these pools have out of the lines of the locks, so that they are shown once.
void take_waiters_out(std::vector<LockState>& states, const std::vector<ShownPool>& pools);

// "2 of 5 free", and "phones: 2 of 5 free, 3 wait", and "pixel-7, pixel-8". Printable.
std::string show_free(const ShownPool& pool);
std::string show_pool(const ShownPool& pool, const Colors& colors = Colors());
std::string show_free_names(const ShownPool& pool);

}  // namespace rlock::cli
