// SPDX-License-Identifier: Apache-2.0
// How many more jobs a second run under any of N shards than under one lock, on this machine, in this run; and beside
// it how many more flock(1) runs with N files than with one, for processes that are spread over the files by hand.
//
//   rlock_shards RLOCK STAMP [ROUNDS [SHARDS [PROCESSES [JOBS [MS]]]]]      starts a redis-server, which ends with it
//
// PROCESSES loops run `rlock run … -- a job that takes MS` JOBS times each, in turns with one lock and with SHARDS
// shards. Prints the ratio of the jobs a second, from the first begin to the last end. The number for flock is what
// this machine can reach: with fewer cores than shards most of the time goes into starting the jobs.
#include "bench/lab.h"
#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/temp_dir.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace rlock::bench;
using namespace std::chrono_literals;

namespace {

struct Plan {
  std::string rlock;
  std::string stamp;
  int rounds = 3;
  int shards = 5;
  int processes = 40;
  int jobs = 25;
  int ms = 5;
};

double jobs_a_second(const std::filesystem::path& stamps)
{
  std::ifstream file(stamps);
  long long first = 0, last = 0, jobs = 0;
  for (long long begin = 0, end = 0; file >> begin >> end; ++jobs) {
    first = jobs == 0 ? begin : std::min(first, begin);
    last = std::max(last, end);
  }
  return jobs == 0 ? 0 : static_cast<double>(jobs) * 1e9 / static_cast<double>(last - first);
}

// `lock_of` returns the words before the job of the process with that number.
double measure(const Plan& plan, const std::function<std::string(int)>& lock_of)
{
  const auto stamps = make_temp_dir("shards") / "stamps";
  const std::string job = plan.stamp + " " + stamps.string() + " " + std::to_string(plan.ms);
  std::vector<Process> crowd;
  for (int i = 0; i < plan.processes; ++i) {
    const std::string loop = "i=0; while [ $i -lt " + std::to_string(plan.jobs) + " ]; do " + lock_of(i) + " " + job +
                             " || exit 1; i=$((i+1)); done";
    crowd.emplace_back(Words{"sh", "-c", loop});
  }
  for (Process& one : crowd) {
    one.wait(600s);
  }
  return jobs_a_second(stamps);
}

// One lock and many shards in turns.
void compare(const Plan& plan)
{
  const RedisServer server({.args = {"--maxclients", "5000"}});
  const std::string run = plan.rlock + " run -S " + server.url() + " -k bench ";
  const std::string files = "flock " + (make_temp_dir("flock") / "f").string();
  const auto rlock_runs = [&](bool many) {
    return measure(plan, [&](int) { return run + (many ? "--shards " + std::to_string(plan.shards) : "") + " --"; });
  };
  const auto flock_runs = [&](bool many) {
    return measure(plan, [&](int process) { return files + std::to_string(many ? process % plan.shards : 0); });
  };
  Figures figures;
  for (int round = 0; round < plan.rounds; ++round) {
    figures["rlock"].push_back(rlock_runs(true) / rlock_runs(false));
    figures["flock"].push_back(flock_runs(true) / flock_runs(false));
  }
  print(figures);
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc < 3) {
    std::fputs("usage: rlock_shards RLOCK STAMP [ROUNDS [SHARDS [PROCESSES [JOBS [MS]]]]]\n", stderr);
    return 64;
  }
  const FixtureFailures failures;
  Plan plan{.rlock = argv[1], .stamp = argv[2]};
  int* const numbers[] = {&plan.rounds, &plan.shards, &plan.processes, &plan.jobs, &plan.ms};
  for (int i = 3; i < std::min(argc, 8); ++i) {
    *numbers[i - 3] = std::stoi(argv[i]);
  }
  compare(plan);
  remove_temp_dirs();
  return 0;
}
