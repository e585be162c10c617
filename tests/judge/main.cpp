// SPDX-License-Identifier: Apache-2.0
// rlock_judge: a storm of real rlocks on real servers under faults, and a judgement of what they did. See tests/README.md.
#define DOCTEST_CONFIG_IMPLEMENT
#include "judge/leftovers.h"
#include "judge/options.h"
#include "judge/report.h"
#include "judge/server_faults.h"
#include "judge/stalls.h"
#include "judge/storm.h"
#include "support/fixture_failures.h"
#include "support/paths.h"
#include "support/temp_dir.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace {

using namespace rlock;
using namespace rlock::judge;

constexpr Millis longest_calm{180'000};     // until all rlocks have ended
constexpr Millis longest_leftover{15'000};  // until the processes that they have left have ended
constexpr Millis longest_lease{5'000};

bool has_queue(const std::string& topology) { return !topology.starts_with("quorum"); }

// A build may replace the program while the storm uses it.
std::string copy_of_job(const std::filesystem::path& dir)
{
  std::filesystem::copy_file(RLOCK_JUDGE_JOB, dir / "job");
  return dir / "job";
}

// What is wanted and possible here.
struct Forms {
  std::vector<JobForm> forms;
  std::unique_ptr<FrozenFiles> frozen;
};

Forms possible_forms(const JudgeOptions& options, const std::filesystem::path& dir)
{
  Forms possible;
  for (const JobForm form : job_forms) {
    std::string why_not;
    if (form == JobForm::hidden && options.wants(form)) {
      why_not = why_not_hidden();
    } else if (form == JobForm::frozen && options.wants(form)) {
      possible.frozen = FrozenFiles::make(dir, why_not);
    }
    if (!why_not.empty()) {
      std::cerr << "no jobs of the form " << name_of(form) << ": " << why_not << '\n';
    } else if (options.wants(form)) {
      possible.forms.push_back(form);
    }
  }
  return possible;
}

StormOptions storm_options(const JudgeOptions& options, ServerFaults& faults, const Forms& forms,
                           const std::filesystem::path& dir)
{
  const Servers& servers = faults.servers();
  StormOptions storm{.seed = options.seed,
                     .pause = Millis(static_cast<std::int64_t>(1000 / options.rate)),
                     .process_faults = options.wants("processes"),
                     .operators = options.wants("operators"),
                     .rlock = options.rlock,
                     .job = copy_of_job(dir),
                     .server_options = servers.options(),
                     // Without a queue many waiters starve each other on a busy machine.
                     .most_patient = has_queue(options.topology) ? 40U : 6U,
                     .forms = forms.forms,
                     .is_calm = [&faults] { return faults.is_calm(); },
                     .environment = {},
                     .dir = dir,
                     .frozen = forms.frozen.get()};
  for (const auto& [name, value] : servers.environment()) {
    storm.environment[name] = value;
  }
  return storm;
}

Violations check_processes()
{
  const BootClock clock;
  std::vector<RunningProcess> left = processes_of_storm();
  for (const Instant end = clock.now() + longest_leftover; !left.empty() && clock.now() < end;) {
    std::this_thread::sleep_for(Millis(50));
    left = processes_of_storm();
  }
  Violations violations;
  for (const RunningProcess& process : left) {
    violations.push_back({"nothing left running",
                          process.name + " (pid " + std::to_string(process.pid) + ") of run " + process.run,
                          {}});
    ::kill(process.pid, SIGKILL);
  }
  return violations;
}

Violations check_keys(Servers& servers)
{
  std::this_thread::sleep_for(longest_lease);
  Violations violations = check_ttls(servers);
  append(violations, check_locks_are_free(servers, storm_keys()));
  return violations;
}

// A storm without the faults that were meant would find nothing.
void demand_known_faults(const JudgeOptions& options, const std::vector<std::string>& names)
{
  const std::string unknown = options.unknown_fault(names);
  if (unknown.empty()) {
    return;
  }
  std::string text = "there is no fault '" + unknown + "' on " + options.topology + "; its server faults are:";
  for (const std::string& name : names) {
    text += " " + name;
  }
  throw std::invalid_argument(text);
}

Forms demand_forms(const JudgeOptions& options, const std::filesystem::path& dir)
{
  if (const std::string unknown = options.unknown_job(); !unknown.empty()) {
    throw std::invalid_argument("there is no form of jobs '" + unknown + "'");
  }
  Forms forms = possible_forms(options, dir);
  if (forms.forms.empty()) {
    throw std::invalid_argument("none of these jobs is possible here");
  }
  return forms;
}

Verdict run(const JudgeOptions& options, const std::filesystem::path& dir)
{
  const Forms forms = demand_forms(options, dir);
  StallMeter stalls = machine_stalls();
  ServerFaults faults({.topology = options.topology,
                       .keys = storm_keys(),
                       .seed = options.seed + 1,
                       .pause = options.server_pause,
                       .wanted = [&](const std::string& name) { return options.wants(name); },
                       .calms = has_queue(options.topology)});
  demand_known_faults(options, faults.names());
  StallMeter server_stalls = judge::server_stalls(faults.servers());
  Storm storm(storm_options(options, faults, forms, dir));
  faults.begin();
  storm.rage(options.time);
  Violations more;
  if (const std::string wrong = faults.end_and_settle(); !wrong.empty()) {
    more.push_back({"the servers serve again", wrong, {}});
  }
  append(more, check_ttls(faults.servers()));
  storm.calm(longest_calm);
  append(more, check_processes());
  append(more, check_keys(faults.servers()));
  stalls.stop();
  server_stalls.stop();
  Records records{.runs = storm.runs(),
                  .faults = faults.records(),
                  .stalls = stalls.stalls(),
                  .server_stalls = server_stalls.stalls(),
                  .has_queue = has_queue(options.topology)};
  if (forms.frozen) {
    records.freezes = forms.frozen->freezes();
  }
  records.wall_offset = std::chrono::system_clock::now().time_since_epoch() - BootClock().now().time_since_epoch();
  records.faults.insert(records.faults.end(), storm.operations().begin(), storm.operations().end());
  return judge::judge(records, more, storm.process_faults());
}

// Prints the report, and what to do about violations. Returns the exit status.
int finish(const JudgeOptions& options, const std::string& program, const Verdict& verdict,
           const std::filesystem::path& dir)
{
  const bool good = verdict.violations.empty();
  std::string text = "seed " + std::to_string(options.seed) + " on " + options.topology + "\n" + verdict.text +
                     "repeat: " + options.repeat_command(program) + "\n" + (good ? "no violation\n" : "VIOLATIONS\n");
  if (good && !options.keep) {
    test::remove_temp_dirs();
  } else {
    text += "evidence: " + dir.string() + "\n";
    std::ofstream(dir / "report.txt") << text;
  }
  if (!options.report.empty()) {
    std::ofstream(options.report) << text;
  }
  std::cout << text << std::flush;
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
  std::signal(SIGPIPE, SIG_IGN);
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::cout << usage_text();
    return 0;
  }
  // A fault that a fixture could not end is mended later (server_faults.h).
  const test::FixtureFailures failures(test::FixtureFailures::Then::throws);
  const std::optional<JudgeOptions> options = parse_options({argv + 1, argv + argc}, std::random_device{}());
  if (!options) {
    std::cerr << usage_text();
    return 2;
  }
  std::cout << "seed " << options->seed << std::endl;
  if (!mount_for_oneself()) {
    std::cerr << "without mounts of its own, because this needs root\n";
  }
  const std::filesystem::path dir = test::make_temp_dir("judge");
  try {
    return finish(*options, argv[0], run(*options, dir), dir);
  } catch (const std::invalid_argument& wrong) {
    std::cerr << wrong.what() << '\n';
    return 2;
  }
}
