// SPDX-License-Identifier: Apache-2.0
// What the judge has seen of one storm. The checks (checks.h) are functions of these records alone. All times are
// CLOCK_BOOTTIME of this machine, on which all processes run.
#pragma once

#include "base/clock.h"
#include "judge/job_form.h"
#include "judge/servers.h"
#include "support/process.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rlock::judge {

// What the processes of a job have written (job.cpp).
struct Evidence {
  struct Begin {
    Instant at;
    pid_t pid;
    std::uint64_t fence;  // 0: not known
    std::string key;
    Millis lease{};  // that was granted, which is longer than --ttl where the store has no shorter one; 0: not known
  };
  struct End {
    Instant at;
    int code;
  };
  std::optional<Begin> begin;
  std::optional<End> end;
  Instant last{};  // of all lines: a process of the job lived then; also what the storm has seen of its main process
};

enum class Kind { plain, reader, writer, permits, string, shards, several, nested, script, once };
const char* name_of(Kind kind);

enum class Target { runner, guardian, job, keeper };
const char* name_of(Target target);

struct SentSignal {
  Instant at;
  Target target;
  int number;
};

// One rlock that the storm has started, and its job.
struct RunRecord {
  std::size_t id = 0;
  Kind kind = Kind::plain;
  JobForm form = JobForm::direct;
  std::vector<std::string> keys;  // as given to rlock
  unsigned permits = 1;
  Millis ttl{};
  bool fixed = false;    // --lease DUR
  bool limited = false;  // --max-runtime
  bool patient = false;  // waits for ever
  Instant spawned{};
  std::optional<Instant> queued;  // it was certainly in the queue then
  std::optional<Instant> ended;
  std::optional<test::Exit> exit;
  Evidence evidence;
  std::vector<SentSignal> signals;
  std::string command;
};

// A fault of the servers, or an operator's command.
struct FaultRecord {
  std::string name;
  Excuse excuse = Excuse::none;
  std::string key;  // empty: all
  Instant begin{};
  Instant end{};
  bool done = true;  // false: tried in vain
};

// The machine did not run a thread and a process of the judge for this time, or a server did not answer it.
struct Stall {
  Instant from;
  Instant to;
};

struct Records {
  std::vector<RunRecord> runs;
  std::vector<FaultRecord> faults;
  std::vector<Stall> stalls;               // of the machine
  std::vector<Stall> server_stalls = {};   // of a server, by a fault or because the machine is busy
  std::vector<Stall> freezes = {};         // of the file system to which jobs of JobForm::frozen write
  bool has_queue = true;                   // a quorum has none
  std::chrono::nanoseconds wall_offset{};  // from an Instant to the time of day
};

// How much of the time between `from` and `to` these were.
Millis sum_of(const std::vector<Stall>& stalls, Instant from, Instant to);
inline Millis stalled(const Records& records, Instant from, Instant to) { return sum_of(records.stalls, from, to); }

// Whether a fault that concerns this lock, or one of its shards, went on between `from` and `to`.
bool had_fault_of(const std::string& lock, const Records& records, Instant from, Instant to);

bool was_sent(const RunRecord& run, Target target, int number);

// That was granted; while its job has not begun, that it asked for.
Millis lease_of(const RunRecord& run);

// Whether a run that lost its lock said so, or could not.
bool was_told(const RunRecord& run);

}  // namespace rlock::judge
