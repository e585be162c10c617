// SPDX-License-Identifier: Apache-2.0
// Exit codes: each job is accounted for, and no loss is told without a cause.
#include "judge/checks.h"

#include <algorithm>
#include <array>
#include <csignal>

namespace rlock::judge {
namespace {

constexpr int unavailable = 69;
constexpr int os_refused = 71;
constexpr int busy = 75;
constexpr int lost = 121;
constexpr int time_over = 124;
constexpr std::array never{64, 70, 77, 78, 126, 127};

bool has_deadline(const RunRecord& run) { return run.fixed || run.limited; }

bool is_stop_signal(int number) { return number == SIGTERM || number == SIGINT; }

bool was_told_to_stop(const RunRecord& run)
{
  return std::any_of(run.signals.begin(), run.signals.end(),
                     [](const SentSignal& sent) { return is_stop_signal(sent.number); });
}

bool was_killed(const RunRecord& run)
{
  return std::any_of(run.signals.begin(), run.signals.end(),
                     [](const SentSignal& sent) { return sent.number == SIGKILL; });
}

// A guardian that is stopped for too long is killed as well.
bool lost_guardian(const RunRecord& run)
{
  return was_sent(run, Target::guardian, SIGKILL) || was_sent(run, Target::guardian, SIGSTOP);
}

// The kernel's last resort kills a guardian that got no processor for most of a ttl, as it kills one that was stopped.
bool may_have_starved(const Records& records, const RunRecord& run)
{
  return stalled(records, run.spawned - run.ttl, run.ended.value_or(run.evidence.last)) > run.ttl / 10;
}

// Every rlock of the judge has --kill-after, so a job that outlives a signal that its rlock passes on is killed.
bool may_have_outlived_signal(const RunRecord& run)
{
  return was_sent(run, Target::runner, SIGTERM) || was_sent(run, Target::runner, SIGINT);
}

// A shell tells of a signal by 128 + its number, setsid(1) by the number.
bool tells_signal(const RunRecord& run, int code)
{
  const int base = run.form == JobForm::setsid_wait ? 0 : 128;
  return is_wrapped(run.form) && std::any_of(run.signals.begin(), run.signals.end(),
                                             [&](const SentSignal& sent) { return code == base + sent.number; });
}

// Empty: the exit fits.
std::string wrong_death(const RunRecord& run, int signal)
{
  if (was_killed(run) || (signal == SIGKILL && may_have_outlived_signal(run)) ||
      (is_stop_signal(signal) && was_told_to_stop(run))) {
    return "";
  }
  return "died of signal " + std::to_string(signal) + ", which it was not sent";
}

// A caller of rlock once that waited ends as the one that ran the job, if that one failed.
bool shares_failure(const Records& records, const RunRecord& run, int code)
{
  const auto has_result = [&](const RunRecord& other) {
    const bool is_same = other.kind == Kind::once && other.keys == run.keys && other.evidence.begin && other.exit;
    return is_same && (other.exit->code == code || (other.exit->signal != 0 && 128 + other.exit->signal == code));
  };
  return run.kind == Kind::once && !run.evidence.begin && std::ranges::any_of(records.runs, has_result);
}

std::string wrong_code(const Records& records, const RunRecord& run, int code)
{
  const bool began = run.evidence.begin.has_value();
  const bool by_itself = run.evidence.end && run.evidence.end->code == code;
  if (by_itself || code == lost || tells_signal(run, code) ||
      (code != os_refused && shares_failure(records, run, code))) {
    return "";
  }
  switch (code) {
    case unavailable: return began ? "says that its job never started" : "";
    case busy:
      return began ? "says that its job never started" : run.patient ? "gave up although it waits for ever" : "";
    case time_over: return has_deadline(run) ? "" : "says that its time was over";
    case os_refused: return lost_guardian(run) || may_have_starved(records, run) ? "" : "says that the system refused";
    case 0: return !began && run.kind == Kind::once ? "" : "says that its job succeeded";
    default: return "has a code that is neither its job's nor one that fits";
  }
}

// The shell of a script and the script itself are one process; the keeper sends TERM to it, and then KILL.
std::string wrong_script(const RunRecord& run, const test::Exit& exit)
{
  if (exit.signal != 0) {
    return exit.signal == SIGTERM || exit.signal == SIGKILL || was_told_to_stop(run) ? ""
                                                                                     : wrong_death(run, exit.signal);
  }
  const bool by_itself = run.evidence.end && run.evidence.end->code == exit.code;
  const bool never_began = !run.evidence.begin && (exit.code == busy || exit.code == unavailable || exit.code == lost);
  return by_itself || never_began || was_killed(run) ? "" : "has a code that is not the script's";
}

std::string wrong_exit(const Records& records, const RunRecord& run)
{
  const test::Exit& exit = *run.exit;
  const bool is_jobs_code = run.evidence.end && run.evidence.end->code == exit.code;
  if (std::find(never.begin(), never.end(), exit.code) != never.end() && !is_jobs_code) {
    return "has a code that nothing explains";
  }
  if (run.kind == Kind::script) {
    return wrong_script(run, exit);
  }
  return exit.signal != 0 ? wrong_death(run, exit.signal) : wrong_code(records, run, exit.code);
}

// A renewal comes late by a part of the ttl only when the machine or the server was late by as much.
bool is_explained(const Records& records, const RunRecord& run)
{
  const Instant since = run.spawned - run.ttl;
  const Instant until = run.ended.value_or(run.evidence.last);
  const bool had_fault = std::any_of(run.keys.begin(), run.keys.end(),
                                     [&](const std::string& key) { return had_fault_of(key, records, since, until); });
  return !run.signals.empty() || had_fault || may_have_starved(records, run) ||
         sum_of(records.server_stalls, since, until) > run.ttl / 10;
}

}  // namespace

Violations check_exits(const Records& records)
{
  Violations violations;
  for (const RunRecord& run : records.runs) {
    const std::string wrong = run.exit ? wrong_exit(records, run) : "never ended";
    if (!wrong.empty()) {
      violations.push_back({"each job accounted for",
                            describe(run) + (run.exit ? " ended with " + test::show(*run.exit) + " and " : " ") +
                                wrong + "; its job " +
                                (run.evidence.end     ? "ended with " + std::to_string(run.evidence.end->code)
                                 : run.evidence.begin ? "was killed"
                                                      : "never began"),
                            {run.id}});
    }
  }
  return violations;
}

Losses check_losses(const Records& records)
{
  Losses result;
  for (const RunRecord& run : records.runs) {
    if (!run.exit || run.exit->code != lost) {
      continue;
    }
    ++result.told;
    if (!is_explained(records, run)) {
      result.violations.push_back({"no loss without a cause", describe(run) + " lost its lock", {run.id}});
    }
  }
  return result;
}

}  // namespace rlock::judge
