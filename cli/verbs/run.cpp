// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/run.h"

#include "base/duration.h"
#include "cli/options/output.h"
#include "cli/verbs/dispatch.h"
#include "doctor/eviction.h"
#include "run/run.h"

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

bool is_auto(std::string_view lease) { return lease == "auto"; }

Result<Done> read_lease(const Given& given, RunRequest& request)
{
  request.automatic = is_auto(given.value);
  return request.automatic ? Result(Done{}) : read_value(given, request.ttl);
}

std::string kill_after_help()
{
  return "time from that signal to KILL; 0: KILL at once. Default " + show(default_kill_after) +
         " for stops by rlock. For a TERM, INT, HUP or QUIT sent to rlock it counts only if you give the option; "
         "otherwise rlock never kills";
}

Result<Done> read_kill_after(const Given& given, RunRequest& request)
{
  request.kills_after_signal = true;
  return read_value(given, request.kill_after);
}

// The rows are in the order of help.
constexpr OptionRow<RunRequest> which_run_rows[] = {
    {{.names = "--latest",
      .help = "of the runs that wait with --latest keep only this, the newest, in line; those before it end as if busy",
      .excludes = {"--no-wait,--shards"}},
     set<&RunRequest::latest>},
    {{.names = "--replaced-exit-code",
      .value = "N",
      .help = {"exit code when a newer run with --latest has taken the place of this one", ExitCode::busy},
      .range = Numbers{0, 255, "0"},
      .needs = {"--latest", " (try --latest --replaced-exit-code 0)"}},
     set<&RunRequest::replaced_code>},
    {{.names = "--cancel-in-progress",
      .help = "ask the holder to stop its job, as force-unlock does, and then run; with --latest: only the newest run",
      .excludes = {"--no-wait,--shards,--permits"}},
     set<&RunRequest::cancel_in_progress>},
};

constexpr OptionRow<RunRequest> busy_row = busy_code_row(ExitCode::busy);
constexpr OptionRow<RawShards> shard_row =
    shards_row("the job finds its number in RLOCK_SHARD, and its name in RLOCK_SHARD_NAME");

constexpr OptionRow<RunRequest> lease_rows[] = {
    {{.names = "--lease",
      .value = "auto|DUR",
      .help = "auto: rlock renews the lock while the job runs; DUR: rlock never renews it and stops the job before DUR "
              "is over (auto)",
      .range = Durations{shortest_ttl, longest_ttl, "auto or --lease 5m"},
      .excludes = {"--ttl", ": a fixed lease is its own ttl (leave out --ttl)"},
      .is_neutral = is_auto},
     read_lease},
    {{.names = "--ttl",
      .value = "DUR",
      .help = {"with --lease auto: how long the lock outlives a dead rlock", default_ttl},
      .range = ttl_range},
     set<&RunRequest::ttl>},
    {{.names = "--min-hold",
      .value = "DUR",
      .help = "keep the lock for at least DUR, even if the job ends earlier; rlock itself does not wait for that (0)",
      .range = Durations{Millis{0}, longest_ttl, "1m"}},
     set<&RunRequest::min_hold>},
    {{.names = "--on-lost",
      .value = "stop|warn",
      .help = "what rlock does when the lock is lost: stop the job, or only say so (stop)"},
     choose_field<&RunRequest::on_lost, OnLost::stop, OnLost::warn>},
};

constexpr OptionRow<RunRequest> job_rows[] = {
    {{.names = "--max-runtime",
      .value = "DUR",
      .help = "stop the job after DUR",
      .range = Durations{1ms, longest_duration, "1h"}},
     set<&RunRequest::max_runtime>},
    {{.names = "--signal", .value = "SIG", .help = "signal that asks the job to stop (TERM)"},
     [](const Given& given, RunRequest& request) { return read_signal(given, request.stop_signal); }},
    {{.names = "--kill-after",
      .value = "DUR",
      .help = kill_after_help,
      .range = Durations{Millis{0}, longest_duration, "5s"}},
     read_kill_after},
    notify_row,
    {{.names = "--leftovers",
      .value = "stop|wait|leave",
      .help = "what rlock does with processes that the job leaves behind: stop them, wait for them, or leave them "
              "alone (stop)"},
     choose_field<&RunRequest::leftovers, Leftovers::stop, Leftovers::wait, Leftovers::leave>},
};

constexpr OptionRow<RawTake> verbosity_rows[] = {
    quiet_row,
    {{.names = "-v,--verbose",
      .help = "print each step, and whether the server may evict locks",
      .excludes = {"--quiet"}},
     set<&RawTake::verbose>},
};

// --latest and --cancel-in-progress are about the one queue of a lock.
Result<Done> check_queue(const RunRequest& request)
{
  if (!request.latest && !request.cancel_in_progress) {
    return Done{};
  }
  const std::string name = request.latest ? "--latest" : "--cancel-in-progress";
  return request.names.size() > 1 ? usage(name + " is for one lock (try one -k)") : check_has_line(request, name);
}

Result<Done> check_min_hold(const RunRequest& request)
{
  return ends_with_session(request.beside) && request.min_hold > Millis{0}
             ? usage("--min-hold: a lock with --format " + std::string(name_of(request.beside)) +
                     " ends with the session of its rlock (leave out --min-hold, or let the job last longer)")
             : Result(Done{});
}

Result<RunEnd> execute(const RawRun& raw, const Call& call)
{
  return run_request(raw, call, resolve_run(raw, call.operands, call.environment));
}

}  // namespace

void add_run_options(OptionTable& options, RawRun& raw)
{
  add_key_options(options, raw.take.keys, all_keys_row);
  options.add(shard_row, raw.take.shards);
  add_kind_options(options, raw.request);
  options.add(which_run_rows, raw.request);
  add_common_run_options(options, raw);
}

void add_common_run_options(OptionTable& options, RawRun& raw)
{
  add_wait_options(options, raw.request);
  add_line_options(options, raw.request);
  options.add(busy_row, raw.request);
  options.add(lease_rows, raw.request);
  options.add(job_rows, raw.request, "Job");
  options.add(sync_row, raw.request);
  add_record_options(options, raw.request);
  options.add(verbosity_rows, raw.take);
  add_log_format_option(options, raw.take);
  add_utc_option(options);
  add_server_options(options, raw.take.server);
}

Result<RunRequest> resolve_run(const RawRun& raw, const std::vector<std::string>& command,
                               const Environment& environment)
{
  ASSIGN_OR_RETURN(const auto names, resolve_keys_to_take(raw.take.keys));
  if (command.empty()) {
    return usage("no command to run (try rlock run -k " + printable(names.front().text()) + " -- ./job.sh)");
  }
  RunRequest request = raw.request;
  request.names = {names.begin(), names.end()};
  request.argv = command;
  RETURN_IF_ERROR(finish_request(raw.take, environment, request));
  RETURN_IF_ERROR(resolve_shards(raw.take.shards, request));
  RETURN_IF_ERROR(check_queue(request));
  RETURN_IF_ERROR(check_min_hold(request));
  return request;
}

Result<RunEnd> run_request(const RawRun& raw, const Call& call, const Result<RunRequest>& request)
{
  if (!request) {
    return request.error();
  }
  if (request->names.size() == 1) {
    name_in_log(raw.take, request->name());
  }
  const BootClock clock;
  SystemRng rng;
  const Log log(raw.take.verbosity());
  if (raw.take.verbose) {
    if (const auto warning = eviction_warning(request->server, clock)) {
      log.detail(*warning, {.event = "server"});
    }
  }
  return run(*request, {clock, rng, call.signals, log});
}

const Verb run_verb{
    .name = "run",
    .summary = "run a command under a lock",
    .synopsis = "-k KEY [OPTION...] [--] CMD [ARG...]",
    .examples = {"rlock run -k stock -- ./job.sh", "rlock run -k report -n -E 0 --max-runtime 1h -- ./report.sh",
                 "rlock run -k nightly -n -E 0 --wait-server 30m -- ./nightly.sh",
                 "rlock run -k deploy:main --latest --cancel-in-progress -- ./deploy.sh",
                 "rlock run -k deploy:main --priority 10 --label hotfix -- ./deploy.sh",
                 "rlock run -k test-machine --max-waiting 3 -- ./test.sh",
                 "rlock run -S local: -k stock --lease 5m -w 10s -- sh -c 'make && make install'",
                 "rlock run -k account:7 -k account:9 -- ./transfer.sh 7 9",
                 "rlock run -k stock --shards 5 -- sh -c './sell.sh segment-$RLOCK_SHARD'",
                 "rlock run -k phones --shards red,blue -- sh -c './test.sh $RLOCK_SHARD_NAME'"},
    .own_exits = {job_exit},
    .common_exits = job_codes,
    .operands = Operands::command,
    .add_options = bound<RawRun, add_run_options, execute>,
};

}  // namespace rlock::cli
