// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/run.h"

#include "cli/label.h"
#include "cli/options/limits.h"
#include "cli/output/logging.h"
#include "cli/sync.h"
#include "cli/verbs/table.h"

#include <array>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr Millis some = 1ms;
constexpr Millis any_length = std::chrono::hours{10 * 366 * 24};  // parse_duration's own limit

constexpr DurationRule lease_rule{"--lease", shortest_ttl, longest_ttl, "auto or --lease 5m"};
constexpr DurationRule min_hold_rule{"--min-hold", 0ms, longest_ttl, "1m"};
constexpr DurationRule max_runtime_rule{"--max-runtime", some, any_length, "1h"};
constexpr DurationRule kill_after_rule{"--kill-after", 0ms, any_length, "5s"};

constexpr std::array leftovers_choices{Choice<Leftovers>{"stop", Leftovers::stop},
                                       Choice<Leftovers>{"wait", Leftovers::wait},
                                       Choice<Leftovers>{"leave", Leftovers::leave}};

constexpr std::array<std::string_view, 5> examples{
    "rlock run -k stock -- ./job.sh",
    "rlock run -k report -n -E 0 --max-runtime 1h -- ./report.sh",
    "rlock run -S local: -k stock --lease 5m -w 10s -- sh -c 'make && make install'",
    "rlock run -k account:7 -k account:9 -- ./transfer.sh 7 9",
    "rlock run -k stock --shards 5 -- sh -c './sell.sh segment-$RLOCK_SHARD'",
};

constexpr std::array exits{
    ExitLine{"the job's own", "it ran; killed by a signal: rlock dies of the same one"},
    usage_exit,
    server_exit,
    ExitLine{"70, 71", "internal error; the operating system refused (fork, memory)"},
    ExitLine{"75", "busy (or -E N)"},
    refused_exit,
    config_exit,
    ExitLine{"121", "the lock was lost or taken by force while the job ran"},
    ExitLine{"124", "stopped because its time was over (--max-runtime, a fixed --lease)"},
    ExitLine{"126, 127", "the job cannot be executed, was not found"},
};

void add_lease_options(Options& options, RawRun& raw)
{
  options.text("--lease", raw.lease, "auto|DUR",
               "auto: renewed for as long as the job runs; DUR: never renewed, the job is stopped "
               "before it is over (auto)");
  options.text("--ttl", raw.ttl, "DUR", "with --lease auto: how long the lock outlives a dead rlock (30s)");
  options.text("--min-hold", raw.min_hold, "DUR",
               "keep the lock at least DUR from when it was taken, by its ttl, not by sleeping (0)");
  options.text("--on-lost", raw.on_lost, "stop|warn", "what a lost lock does to the job (stop)");
  add_sync_option(options, raw.sync);
  add_label_option(options, raw.label);
}

void add_job_options(Options& options, RawRun& raw)
{
  Options group = options.in("Job");
  group.text("--max-runtime", raw.max_runtime, "DUR", "stop the job after DUR");
  group.text("--signal", raw.signal, "SIG", "what stops the job (TERM)");
  group.text("--kill-after", raw.kill_after, "DUR", "from that signal to KILL; 0: KILL at once (5s)");
  group.text("--leftovers", raw.leftovers, "stop|wait|leave",
             "what becomes of processes that the job leaves behind (stop)");
}

Result<Done> apply_waiting(const RawRun& raw, RunRequest& request)
{
  const Result<std::optional<Millis>> wait = resolve_wait_options(raw.wait_options);
  if (!wait) {
    return wait.error();
  }
  request.wait = *wait;
  if (raw.busy_code) {
    const Result<int> code = resolve_number(*raw.busy_code, busy_code_rule);
    if (!code) {
      return code.error();
    }
    request.busy_code = *code;
  }
  return Done{};
}

Result<Done> apply_label(const RawRun& raw, RunRequest& request)
{
  Result<std::string> label = resolve_label(raw.label);
  if (!label) {
    return label.error();
  }
  request.label = *std::move(label);
  return Done{};
}

Result<Done> apply_shards(const RawRun& raw, RunRequest& request)
{
  if (raw.shards && request.names.size() > 1) {
    return usage("--shards is for one key: its locks are KEY:0, KEY:1 and so on (try -k stock --shards 5)");
  }
  auto shards = resolve_shards(raw.shards, *request.names.begin());
  if (!shards) {
    return shards.error();
  }
  request.shards = *std::move(shards);
  return Done{};
}

Result<Done> apply_mode(const RawRun& raw, RunRequest& request)
{
  const Result<Mode> mode = resolve_mode(raw.mode);
  if (!mode) {
    return mode.error();
  }
  request.mode = *mode;
  return Done{};
}

Result<Done> apply_lease(const RawRun& raw, RunRequest& request)
{
  request.automatic = raw.lease.value_or("auto") == "auto";
  if (!request.automatic && raw.ttl) {
    return usage("--ttl is for --lease auto: a fixed lease is its own ttl (try --lease " + printable(*raw.lease) +
                 " alone)");
  }
  const Text& typed_ttl = request.automatic ? raw.ttl : raw.lease;
  if (typed_ttl) {
    const Result<Millis> ttl = resolve_duration(*typed_ttl, request.automatic ? ttl_rule : lease_rule);
    if (!ttl) {
      return ttl.error();
    }
    request.ttl = *ttl;
  }
  if (raw.on_lost) {
    const Result<OnLost> on_lost = resolve_choice(*raw.on_lost, "--on-lost", on_lost_choices);
    if (!on_lost) {
      return on_lost.error();
    }
    request.on_lost = *on_lost;
  }
  return Done{};
}

Result<Done> apply_sync(const RawRun& raw, RunRequest& request)
{
  const Result<unsigned> replicas = resolve_sync(raw.sync, request.server);
  if (!replicas) {
    return replicas.error();
  }
  request.sync = *replicas;
  return Done{};
}

Result<Done> apply_times(const RawRun& raw, RunRequest& request)
{
  if (raw.min_hold) {
    const Result<Millis> min_hold = resolve_duration(*raw.min_hold, min_hold_rule);
    if (!min_hold) {
      return min_hold.error();
    }
    request.min_hold = *min_hold;
  }
  if (raw.max_runtime) {
    const Result<Millis> limit = resolve_duration(*raw.max_runtime, max_runtime_rule);
    if (!limit) {
      return limit.error();
    }
    request.max_runtime = *limit;
  }
  if (raw.kill_after) {
    const Result<Millis> kill_after = resolve_duration(*raw.kill_after, kill_after_rule);
    if (!kill_after) {
      return kill_after.error();
    }
    request.kill_after = *kill_after;
  }
  return Done{};
}

Result<Done> apply_stopping(const RawRun& raw, RunRequest& request)
{
  if (raw.signal) {
    const std::optional<int> signal = signal_number(*raw.signal);
    if (!signal) {
      return usage("--signal: '" + printable(*raw.signal) + "' is not a signal (try --signal TERM)");
    }
    request.stop_signal = *signal;
  }
  if (raw.leftovers) {
    const Result<Leftovers> leftovers = resolve_choice(*raw.leftovers, "--leftovers", leftovers_choices);
    if (!leftovers) {
      return leftovers.error();
    }
    request.leftovers = *leftovers;
  }
  return Done{};
}

Result<Verbosity> resolve_verbosity(const RawRun& raw)
{
  if (raw.quiet && raw.verbose) {
    return usage("--quiet and --verbose exclude each other");
  }
  if (raw.quiet) {
    return Verbosity::quiet;
  }
  return raw.verbose ? Verbosity::verbose : Verbosity::normal;
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawRun>();
  add_run_options(options, *raw);
  return [raw](const Call& call) { return execute(*raw, call, resolve_run(*raw, call.operands, call.environment)); };
}

}  // namespace

Result<RunEnd> execute(const RawRun& raw, const Call& call, const Result<RunRequest>& request)
{
  const Result<Verbosity> verbosity = resolve_verbosity(raw);
  if (!verbosity) {
    return verbosity.error();
  }
  const bool is_one = request && request->names.size() == 1;
  const Result<Done> logging = use_log_format(raw.log_format, is_one ? &*request->names.begin() : nullptr);
  if (!logging) {
    return logging.error();
  }
  if (!request) {
    return request.error();
  }
  const BootClock clock;
  SystemRng rng;
  const Log log(*verbosity);
  return run(*request, {clock, rng, call.signals, log});
}

void add_run_options(Options& options, RawRun& raw)
{
  add_key_list_options(options, raw.keys);
  add_shards_option(options, raw.shards, "the job finds its number in RLOCK_SHARD");
  add_mode_options(options, raw.mode);
  add_common_run_options(options, raw);
}

void add_common_run_options(Options& options, RawRun& raw)
{
  add_wait_options(options, raw.wait_options);
  options.text("-E,--conflict-exit-code", raw.busy_code, "N", "what a busy lock returns (75)");
  add_lease_options(options, raw);
  options.flag("-q,--quiet", raw.quiet, "say nothing but why rlock ends with a code of its own");
  options.flag("-v,--verbose", raw.verbose, "say what is done");
  add_log_format_option(options, raw.log_format);
  add_job_options(options, raw);
  add_server_options(options, raw.server);
}

Result<RunRequest> resolve_run(const RawRun& raw, const std::vector<std::string>& command,
                               const Environment& environment)
{
  const Result<std::vector<LockName>> names = resolve_keys(raw.keys, {});
  if (!names) {
    return names.error();
  }
  if (command.empty()) {
    return usage("no command to run (try rlock run -k " + printable(names->front().text()) + " -- ./job.sh)");
  }
  Result<ServerSpec> server = resolve_server(raw.server, environment);
  if (!server) {
    return server.error();
  }

  RunRequest request{
      .server = *std::move(server),
      .names = {names->begin(), names->end()},
      .shards = {},
      .wait = std::nullopt,
      .label = {},
      .argv = command,
      .environment = environment.all(),
      .max_runtime = std::nullopt,
  };
  for (const auto mean :
       {apply_label, apply_waiting, apply_shards, apply_mode, apply_lease, apply_sync, apply_times, apply_stopping}) {
    const Result<Done> meant = mean(raw, request);
    if (!meant) {
      return meant.error();
    }
  }
  return request;
}

const Verb run_verb{
    .name = "run",
    .summary = "run a command under a lock",
    .synopsis = "-k KEY [OPTION...] [--] CMD [ARG...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::command,
    .add_options = add_options,
};

}  // namespace rlock::cli
