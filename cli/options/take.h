// SPDX-License-Identifier: Apache-2.0
// The options that verbs which take locks share: run, once, flock and acquire. What depends on one option is set in the
// RunRequest by the row of the option; the rest is in a RawTake, and finish_request() makes it part of the request.
#pragma once

#include "base/defaults.h"
#include "base/duration.h"
#include "base/log.h"
#include "cli/options/lock.h"
#include "cli/options/server.h"
#include "cli/options/shards.h"

#include <optional>

namespace rlock::cli {

struct RawTake {
  RawKeys keys;
  RawServer server;
  RawShards shards;
  std::optional<LogFormat> log_format;
  bool quiet = false;
  bool verbose = false;

  [[nodiscard]] Verbosity verbosity() const
  {
    return quiet ? Verbosity::quiet : verbose ? Verbosity::verbose : Verbosity::normal;
  }
};

// A third of the ttl must be enough for one round trip, and the rest for killing the job.
inline constexpr Millis shortest_ttl{100};
inline constexpr Millis longest_ttl = fence_memory;
inline constexpr Durations ttl_range{shortest_ttl, longest_ttl, "30s"};
inline constexpr Durations fixed_lease_range{shortest_ttl, longest_ttl, "5m"};

// Effects.
Result<Done> read_signal(const Given& given, int& target);  // the number of a signal, from its name or number
Result<Done> read_notify(const Given& given, RunRequest& request);
Result<Done> read_text(const Given& given, std::string& text);  // longest_label bytes at most

inline constexpr OptionRow<RunRequest> notify_row{
    {.names = "--notify",
     .value = "CMD",
     .help = "run CMD by /bin/sh once, when the run is over and the lock released, with RLOCK_OUTCOME (succeeded, "
             "failed, cancelled, lost, forced, timed_out, busy, replaced, unreachable), RLOCK_EXIT_CODE, "
             "RLOCK_DURATION_MS, RLOCK_MESSAGE and others (rlock-run(1)); it has 30s and changes no exit code"},
    read_notify};

inline constexpr OptionRow<RawTake> quiet_row{
    {.names = "-q,--quiet",
     .help = "print on stderr only why rlock fails; the exit code alone says that the lock is busy"},
    set<&RawTake::quiet>};

inline constexpr OptionRow<RunRequest> wait_server_row{
    {.names = "--wait-server",
     .value = "DUR",
     .help = "try again for DUR when the server cannot be reached or cannot serve, such as during a fail-over; the "
             "time of -w runs meanwhile (0)",
     .range = Durations{Millis{0}, longest_duration, "10m"}},
    set<&RunRequest::wait_server>};

inline constexpr OptionRow<RunRequest> sync_row{
    {.names = "--sync",
     .value = "N",
     .help = "the lock counts as acquired only when N replicas have it; else rlock gives it back. Renewals do not wait "
             "for replicas (0)",
     .range = Numbers{0, 1000, "1"}},
    set<&RunRequest::sync>};

constexpr OptionRow<RunRequest> busy_code_row(ExitCode default_code)
{
  return {{.names = "-E,--conflict-exit-code",
           .value = "N",
           .help = {"exit code when the lock is busy", default_code},
           .range = Numbers{0, 255, "0"}},
          set<&RunRequest::busy_code>};
}

void add_wait_options(OptionTable& options, RunRequest& request);    // -n, -w and --wait-server
void add_line_options(OptionTable& options, RunRequest& request);    // --priority and --max-waiting
void add_record_options(OptionTable& options, RunRequest& request);  // --label and --history
// Sets the format of all lines of this process on stderr at once, so that it holds for errors of other options, too.
void add_log_format_option(OptionTable& options, RawTake& raw);

// An option that is about the one queue of a lock, and for callers that wait in it.
Result<Done> check_has_line(const RunRequest& request, const std::string& option);

// Sets what depends on several options or on the environment. ErrorCode::usage, ErrorCode::config: see resolve_server;
// --sync was given, and there are several servers.
Result<Done> finish_request(const RawTake& raw, const Environment& environment, RunRequest& request);

// `lock`: the lock that all lines of the log are about, unless a line names another.
void name_in_log(const RawTake& raw, const LockName& lock);

}  // namespace rlock::cli
