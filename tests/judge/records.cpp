// SPDX-License-Identifier: Apache-2.0
#include "judge/records.h"

#include <algorithm>
#include <chrono>
#include <csignal>

namespace rlock::judge {

const char* name_of(Kind kind)
{
  switch (kind) {
    case Kind::plain: return "plain";
    case Kind::reader: return "reader";
    case Kind::writer: return "writer";
    case Kind::permits: return "permits";
    case Kind::string: return "string";
    case Kind::shards: return "shards";
    case Kind::several: return "several keys";
    case Kind::nested: return "nested";
    case Kind::script: return "acquire --pid";
    case Kind::once: return "once";
  }
  return "";
}

const char* name_of(Target target)
{
  switch (target) {
    case Target::runner: return "runner";
    case Target::guardian: return "guardian";
    case Target::job: return "job";
    case Target::keeper: return "keeper";
  }
  return "";
}

Millis sum_of(const std::vector<Stall>& stalls, Instant from, Instant to)
{
  std::chrono::nanoseconds sum{0};
  for (const Stall& stall : stalls) {
    sum += std::max(std::min(stall.to, to) - std::max(stall.from, from), std::chrono::nanoseconds(0));
  }
  return std::chrono::ceil<Millis>(sum);
}

bool had_fault_of(const std::string& lock, const Records& records, Instant from, Instant to)
{
  return std::any_of(records.faults.begin(), records.faults.end(), [&](const FaultRecord& fault) {
    const bool concerns = fault.key.empty() || fault.key == lock || fault.key.starts_with(lock + ":");
    return concerns && fault.begin <= to && fault.end >= from;
  });
}

bool was_sent(const RunRecord& run, Target target, int number)
{
  return std::any_of(run.signals.begin(), run.signals.end(),
                     [&](const SentSignal& sent) { return sent.target == target && sent.number == number; });
}

Millis lease_of(const RunRecord& run)
{
  return run.evidence.begin ? std::max(run.ttl, run.evidence.begin->lease) : run.ttl;
}

bool was_told(const RunRecord& run)
{
  const auto sent = [&](Target target, int number) { return was_sent(run, target, number); };
  if (!run.exit || sent(Target::runner, SIGKILL) || sent(Target::runner, SIGTERM) || sent(Target::runner, SIGINT)) {
    return true;  // it could not exit with a code of its own
  }
  if (run.kind == Kind::script) {
    return run.exit->signal == SIGTERM || run.exit->signal == SIGKILL || !run.signals.empty();
  }
  const bool killed_otherwise =
      (run.exit->signal == SIGKILL && sent(Target::job, SIGKILL)) ||
      (run.exit->code == 71 && (sent(Target::guardian, SIGKILL) || sent(Target::guardian, SIGSTOP)));
  const bool tells_end_of_time = (run.fixed || run.limited) && !outlasts_kill(run.form);
  return killed_otherwise || run.exit->code == 121 || (tells_end_of_time && run.exit->code == 124);
}

}  // namespace rlock::judge
