// SPDX-License-Identifier: Apache-2.0
// The command line of the judge.
#pragma once

#include "base/clock.h"
#include "judge/job_form.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rlock::judge {

struct JudgeOptions {
  Millis time{60'000};
  std::uint64_t seed;
  std::string topology = "unix";
  std::string rlock;                // the program
  std::vector<std::string> faults;  // empty: all
  std::vector<std::string> jobs;    // names of forms of jobs; empty: all
  double rate = 3;                  // rlocks a second
  Millis server_pause{4000};        // between two faults of the servers, on average
  std::string report;               // a file; empty: only with the evidence
  bool keep = false;                // the evidence, although nothing is wrong

  // A name of a server fault, or "servers" for all of them; "processes"; "operators".
  [[nodiscard]] bool wants(const std::string& fault) const;
  [[nodiscard]] bool wants(JobForm form) const;
  // The first of `jobs` that is no form; empty: there is none.
  [[nodiscard]] std::string unknown_job() const;
  // The first of `faults` that means nothing where the servers have these faults; empty: there is none.
  [[nodiscard]] std::string unknown_fault(const std::vector<std::string>& of_servers) const;
  [[nodiscard]] std::string repeat_command(const std::string& program) const;
};

// nullopt: the words make no sense. `seed`: when none is given.
std::optional<JudgeOptions> parse_options(const std::vector<std::string>& words, std::uint64_t seed);
std::string usage_text();

}  // namespace rlock::judge
