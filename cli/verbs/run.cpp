// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/run.h"

#include "base/duration.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/run.h"
#include "cli/verbs/dispatch.h"

#include <array>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr DurationRule lease_rule{"--lease", shortest_ttl, longest_ttl, "auto or --lease 5m"};
constexpr DurationRule min_hold_rule{"--min-hold", 0ms, longest_ttl, "1m"};
constexpr DurationRule max_runtime_rule{"--max-runtime", 1ms, longest_duration, "1h"};
constexpr DurationRule kill_after_rule{"--kill-after", 0ms, longest_duration, default_kill_after};

constexpr std::array leftovers_choices{Choice<Leftovers>{"stop", Leftovers::stop},
                                       Choice<Leftovers>{"wait", Leftovers::wait},
                                       Choice<Leftovers>{"leave", Leftovers::leave}};

constexpr std::array<std::string_view, 7> examples{
    "rlock run -k stock -- ./job.sh",
    "rlock run -k report -n -E 0 --max-runtime 1h -- ./report.sh",
    "rlock run -k nightly -n -E 0 --wait-server 30m -- ./nightly.sh",
    "rlock run -k deploy:main --latest --cancel-in-progress -- ./deploy.sh",
    "rlock run -S local: -k stock --lease 5m -w 10s -- sh -c 'make && make install'",
    "rlock run -k account:7 -k account:9 -- ./transfer.sh 7 9",
    "rlock run -k stock --shards 5 -- sh -c './sell.sh segment-$RLOCK_SHARD'",
};

Result<Done> apply_lease(const std::string& value, RunRequest& request)
{
  request.automatic = value == "auto";
  return request.automatic ? Result(Done{}) : assign(resolve_duration(value, lease_rule), request.ttl);
}

Result<Done> apply_ttl(const std::string& value, RunRequest& request)
{
  if (!request.automatic) {
    return usage("--ttl is for --lease auto: a fixed lease is its own ttl (try --lease " + show(request.ttl) +
                 " alone)");
  }
  return assign(resolve_duration(value, ttl_rule), request.ttl);
}

// An option of run and once with one value that nothing else depends on. A new one is a row here and a field of RunRequest.
struct RunOption {
  const char* group;  // heading of help; nullptr: none
  const char* names;
  const char* value_name;
  HelpText help;
  Result<Done> (*apply)(const std::string& value, RunRequest& request);
};
constexpr const char* job_group = "Job";
constexpr std::array run_options{
    RunOption{nullptr,
              "-E,--conflict-exit-code",
              "N",
              {busy_code_help, ExitCode::busy},
              [](const std::string& value, RunRequest& request) {
                return assign(resolve_number(value, busy_code_rule), request.busy_code);
              }},
    RunOption{
        nullptr, "--lease", "auto|DUR",
        "auto: rlock renews the lock while the job runs; DUR: rlock never renews it and stops the job before DUR is "
        "over (auto)",
        apply_lease},
    RunOption{nullptr,
              "--ttl",
              "DUR",
              {"with --lease auto: how long the lock outlives a dead rlock", default_ttl},
              apply_ttl},
    RunOption{nullptr, "--min-hold", "DUR",
              "keep the lock for at least DUR, even if the job ends earlier; rlock itself does not wait for that (0)",
              [](const std::string& value, RunRequest& request) {
                return assign(resolve_duration(value, min_hold_rule), request.min_hold);
              }},
    RunOption{nullptr, "--on-lost", "stop|warn",
              "what rlock does when the lock is lost: stop the job, or only say so (stop)",
              [](const std::string& value, RunRequest& request) {
                return assign(resolve_choice(value, "--on-lost", on_lost_choices), request.on_lost);
              }},
    RunOption{job_group, "--max-runtime", "DUR", "stop the job after DUR",
              [](const std::string& value, RunRequest& request) {
                return assign(resolve_duration(value, max_runtime_rule), request.max_runtime);
              }},
    RunOption{job_group, "--signal", "SIG", "signal that asks the job to stop (TERM)",
              [](const std::string& value, RunRequest& request) {
                return assign(resolve_signal(value), request.stop_signal);
              }},
    RunOption{job_group,
              "--kill-after",
              "DUR",
              {"time from that signal to KILL, and from a TERM, INT, HUP or QUIT that rlock passes on when DUR is "
               "given; 0: KILL at once",
               default_kill_after},
              [](const std::string& value, RunRequest& request) {
                request.kills_after_signal = true;
                return assign(resolve_duration(value, kill_after_rule), request.kill_after);
              }},
    RunOption{
        job_group, "--notify", "CMD", notify_help,
        [](const std::string& value, RunRequest& request) { return assign(resolve_notify(value), request.notify); }},
    RunOption{job_group, "--leftovers", "stop|wait|leave",
              "what rlock does with processes that the job leaves behind: stop them, wait for them, or leave them "
              "alone (stop)",
              [](const std::string& value, RunRequest& request) {
                return assign(resolve_choice(value, "--leftovers", leftovers_choices), request.leftovers);
              }},
};

void add_table_options(Options& options, RawRun& raw)
{
  raw.values.resize(run_options.size());
  for (std::size_t i = 0; i < run_options.size(); ++i) {
    const RunOption& option = run_options[i];
    Options group = option.group == nullptr ? options : options.in(option.group);
    group.text(option.names, raw.values[i], option.value_name, option.help);
  }
}

Result<Done> apply_table_options(const RawRun& raw, RunRequest& request)
{
  for (std::size_t i = 0; i < raw.values.size(); ++i) {
    const Result<Done> applied = raw.values[i] ? run_options[i].apply(*raw.values[i], request) : Result(Done{});
    if (!applied) {
      return applied;
    }
  }
  return Done{};
}

Result<Done> apply_wait(const RawRun& raw, RunRequest& request)
{
  const Result<WaitTimes> times = resolve_wait_options(raw.wait_options);
  if (!times) {
    return times.error();
  }
  request.wait = times->lock;
  request.wait_server = times->server;
  return Done{};
}

Result<Done> apply_label(const RawRun& raw, RunRequest& request)
{
  return assign(resolve_label(raw.label), request.label);
}

Result<Done> apply_history(const RawRun& raw, RunRequest& request)
{
  return assign(resolve_history(raw.history), request.history);
}

Result<Done> apply_shards(const RawRun& raw, RunRequest& request)
{
  if (raw.shards && request.names.size() > 1) {
    return usage("--shards is for one key: its locks are KEY:0, KEY:1 and so on (try -k stock --shards 5)");
  }
  return assign(resolve_shards(raw.shards, *request.names.begin()), request.shards);
}

Result<Done> apply_mode(const RawRun& raw, RunRequest& request) { return assign(resolve_mode(raw.mode), request.mode); }

Result<Done> apply_sync(const RawRun& raw, RunRequest& request)
{
  return assign(resolve_sync(raw.sync, request.server), request.sync);
}

Result<Done> apply_concurrency(const RawRun& raw, RunRequest& request)
{
  return resolve_concurrency(raw.concurrency, request);
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

Result<RunEnd> execute(const RawRun& raw, const Call& call)
{
  return run_request(raw, call, resolve_run(raw, call.operands, call.environment));
}

}  // namespace

void add_run_options(Options& options, RawRun& raw)
{
  add_key_list_options(options, raw.keys);
  add_shards_option(options, raw.shards, "the job finds its number in RLOCK_SHARD");
  add_mode_options(options, raw.mode);
  add_concurrency_options(options, raw.concurrency);
  add_common_run_options(options, raw);
}

void add_common_run_options(Options& options, RawRun& raw)
{
  add_wait_options(options, raw.wait_options);
  add_table_options(options, raw);
  add_sync_option(options, raw.sync);
  add_label_option(options, raw.label);
  add_history_option(options, raw.history);
  options.flag("-q,--quiet", raw.quiet, "print only why rlock ends with an exit code of its own");
  options.flag("-v,--verbose", raw.verbose, "print each step");
  add_log_format_option(options, raw.log_format);
  add_server_options(options, raw.server);
}

Result<RunRequest> resolve_run(const RawRun& raw, const std::vector<std::string>& command,
                               const Environment& environment)
{
  const Result<std::vector<LockName>> names = resolve_keys_to_take(raw.keys);
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
      .history = std::nullopt,
      .argv = command,
      .environment = environment.all(),
      .max_runtime = std::nullopt,
  };
  for (const auto apply : {apply_label, apply_history, apply_wait, apply_shards, apply_mode, apply_table_options,
                           apply_sync, apply_concurrency}) {
    const Result<Done> applied = apply(raw, request);
    if (!applied) {
      return applied.error();
    }
  }
  return request;
}

Result<RunEnd> run_request(const RawRun& raw, const Call& call, const Result<RunRequest>& request)
{
  const Result<Verbosity> verbosity = resolve_verbosity(raw);
  if (!verbosity) {
    return verbosity.error();
  }
  const bool has_one_lock = request && request->names.size() == 1;
  const Result<Done> logging = use_log_format(raw.log_format, has_one_lock ? &*request->names.begin() : nullptr);
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

const Verb run_verb{
    .name = "run",
    .summary = "run a command under a lock",
    .synopsis = "-k KEY [OPTION...] [--] CMD [ARG...]",
    .examples = examples,
    .own_exits = job_exits,
    .common_exits = job_codes,
    .operands = Operands::command,
    .add_options = bound<RawRun, add_run_options, execute>,
};

}  // namespace rlock::cli
