// SPDX-License-Identifier: Apache-2.0
// Runs one schedule: simulated clients, each of which runs the real acquire_all and supervise of `rlock run` on the real
// store, connections and watchdogs, against the simulated server.
#pragma once

#include "sim/records.h"
#include "sim/schedule.h"
#include "sim/server.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rlock::sim {

struct SimulationResult {
  std::optional<std::string> broken;  // the rule that was broken
  std::uint64_t steps = 0;
  std::uint64_t jobs = 0;
  std::uint64_t faults = 0;
  int conflicts = 0;               // of commits to a store of records
  std::vector<std::string> story;  // a line for everything that happened
};

// `directory`: for the socket of the simulated server. `changed`: breaks the scripts on purpose. `mistake`: the same for the store
// of records.
SimulationResult simulate(const Schedule& schedule, const std::filesystem::path& directory,
                          const std::vector<Replacement>& changed = {}, RecordMistake mistake = RecordMistake::none);

}  // namespace rlock::sim
