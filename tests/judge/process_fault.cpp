// SPDX-License-Identifier: Apache-2.0
#include "judge/process_fault.h"

#include "judge/leftovers.h"
#include "support/guardian_of.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

namespace rlock::judge {
namespace {

Millis random_time(Rng& rng, Millis longest)
{
  return Millis(static_cast<std::int64_t>(below(rng, static_cast<std::uint64_t>(longest.count()) + 1)));
}

// Half of the faults are single; the rest are pairs, and sometimes all three.
std::vector<Target> draw_targets(Rng& rng)
{
  std::vector<Target> targets{Target::runner, Target::guardian, Target::job};
  const std::uint64_t dice = below(rng, 10);
  for (std::size_t count = dice < 5 ? 1 : dice < 9 ? 2 : 3; targets.size() > count;) {
    targets.erase(targets.begin() + static_cast<std::ptrdiff_t>(below(rng, targets.size())));
  }
  return targets;
}

// Just after the trigger, or while a usual job runs, or at any time of the lease, or just before its end.
Millis draw_moment(Rng& rng, Millis ttl)
{
  switch (below(rng, 8)) {
    case 0: return ttl - random_time(rng, ttl / 8);
    case 1: return random_time(rng, ttl);
    case 2:
    case 3: return random_time(rng, Millis(4));
    default: return random_time(rng, Millis(200));
  }
}

constexpr Millis for_good{10'000};  // longer than any lease

// A stop lasts a moment, or about as long as the lease, or much longer.
void add_signals(FaultPlan& plan, Rng& rng, Target target, Millis at, Millis ttl)
{
  const bool kill = below(rng, 5) < 3;
  plan.steps.push_back({at, target, kill ? SIGKILL : SIGSTOP});
  if (kill) {
    return;
  }
  const std::array durations{random_time(rng, ttl / 2), ttl * 3 / 4 + random_time(rng, ttl), for_good};
  plan.steps.push_back({at + durations[below(rng, durations.size())], target, SIGCONT});
}

// While the job runs and has still some time to go: the runner alone, which leaves the job to the guardian; or both, as
// `killall -9 rlock` does, which leaves it to the kernel.
FaultPlan kill_rlock(Rng& rng)
{
  const Millis at = random_time(rng, Millis(200));
  FaultPlan plan{.trigger = Trigger::begin, .steps = {{at, Target::runner, SIGKILL}}};
  if (below(rng, 2) == 0) {
    plan.steps.insert(below(rng, 2) == 0 ? plan.steps.begin() : plan.steps.end(), {at, Target::guardian, SIGKILL});
  }
  return plan;
}

const char* name_of_signal(int number)
{
  switch (number) {
    case SIGKILL: return "KILL";
    case SIGSTOP: return "STOP";
    case SIGTERM: return "TERM";
    case SIGINT: return "INT";
    default: return "CONT";
  }
}

Fd open_process(pid_t pid) { return Fd(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1); }

}  // namespace

std::string FaultPlan::name() const
{
  std::string text;
  for (const Step& step : steps) {
    if (step.number != SIGCONT) {
      text += (text.empty() ? "" : " + ") + std::string(name_of_signal(step.number)) + " " + name_of(step.target);
    }
  }
  return text;
}

FaultPlan draw_fault(Rng& rng, Kind kind, Millis ttl)
{
  static constexpr std::array triggers{Trigger::spawn, Trigger::handover, Trigger::begin, Trigger::begin, Trigger::end};
  if (kind != Kind::script && below(rng, 3) == 0) {
    return kill_rlock(rng);
  }
  FaultPlan plan{.trigger = triggers[below(rng, triggers.size())], .steps = {}};
  const bool near = plan.trigger == Trigger::end || plan.trigger == Trigger::handover;
  const Millis at = near ? random_time(rng, Millis(4)) : draw_moment(rng, ttl);
  if (below(rng, 8) == 0 && kind != Kind::script) {
    plan.steps.push_back({at, Target::runner, below(rng, 2) == 0 ? SIGTERM : SIGINT});
    return plan;
  }
  if (kind == Kind::script) {
    add_signals(plan, rng, below(rng, 2) == 0 ? Target::keeper : Target::job, at, ttl);
  } else {
    for (const Target target : draw_targets(rng)) {
      add_signals(plan, rng, target, at + random_time(rng, Millis(3)), ttl);
    }
  }
  std::stable_sort(plan.steps.begin(), plan.steps.end(),
                   [](const FaultPlan::Step& a, const FaultPlan::Step& b) { return a.after < b.after; });
  return plan;
}

std::optional<FaultPlan> possible_fault(FaultPlan plan, JobForm form)
{
  const bool hits_runner =
      std::any_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) { return step.target == Target::runner; });
  std::erase_if(plan.steps, [&](const FaultPlan::Step& step) {
    const bool stops = step.number == SIGSTOP || step.number == SIGCONT;
    return (leaves_group(form) || outlasts_kill(form)) &&
           ((step.target == Target::guardian && hits_runner) ||
            (step.target != Target::job && stops && outlasts_kill(form)));
  });
  return plan.steps.empty() ? std::nullopt : std::optional(std::move(plan));
}

bool ProcessFault::is_triggered(Instant freed) const
{
  switch (m_plan.trigger) {
    case Trigger::spawn: return true;
    case Trigger::handover: return freed > m_run.spawned;
    case Trigger::begin: return m_run.evidence.begin.has_value();
    case Trigger::end: return m_run.evidence.end.has_value();
  }
  return false;
}

void ProcessFault::find_processes(pid_t runner)
{
  const auto add = [&](Target target, pid_t pid) {
    if (Fd process = open_process(pid)) {
      m_processes.emplace_back(target, std::move(process));
    }
  };
  m_processes.clear();
  add(Target::runner, runner);
  add(Target::guardian, test::find_guardian(runner));
  add(Target::job, m_run.evidence.begin ? m_run.evidence.begin->pid : 0);
  if (m_run.kind == Kind::script) {
    for (const RunningProcess& process : processes_of_run(m_run.id)) {
      add(Target::keeper, process.name == "rlock-keeper" ? process.pid : 0);
    }
  }
}

std::vector<SentSignal> ProcessFault::send(Target target, int number)
{
  const Instant at = BootClock().now();
  for (const auto& [known, process] : m_processes) {
    if (known == target && ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0) == 0) {
      return {{at, target, number}};
    }
  }
  return {};
}

// The processes are looked for until the first signal: a guardian may not exist when the runner is started.
std::vector<SentSignal> ProcessFault::go_on(pid_t runner, Instant freed, Instant now)
{
  if (!m_triggered && is_triggered(freed)) {
    m_triggered = now;
  }
  std::vector<SentSignal> sent;
  while (m_triggered && m_next < m_plan.steps.size() && *m_triggered + m_plan.steps[m_next].after <= now) {
    if (m_next == 0) {
      find_processes(runner);
    }
    const FaultPlan::Step& step = m_plan.steps[m_next++];
    const std::vector<SentSignal> done = send(step.target, step.number);
    sent.insert(sent.end(), done.begin(), done.end());
    if (step.number == SIGSTOP && !done.empty()) {
      m_stopped.push_back(step.target);
    }
  }
  return sent;
}

std::vector<SentSignal> ProcessFault::make_up()
{
  m_next = m_plan.steps.size();
  m_triggered = Instant{};
  std::vector<SentSignal> sent;
  for (const Target target : m_stopped) {
    const std::vector<SentSignal> done = send(target, SIGCONT);
    sent.insert(sent.end(), done.begin(), done.end());
  }
  return sent;
}

}  // namespace rlock::judge
