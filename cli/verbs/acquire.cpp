// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/acquire.h"

#include "base/exit_code.h"
#include "base/log.h"
#include "cli/label.h"
#include "cli/options/limits.h"
#include "cli/output/export.h"
#include "cli/output/json.h"
#include "cli/output/logging.h"
#include "cli/output/output.h"
#include "cli/sync.h"
#include "cli/verbs/table.h"

#include <array>
#include <climits>
#include <utility>

namespace rlock::cli {
namespace {

constexpr NumberRule pid_rule{"--pid", 1, INT_MAX, "$$"};

constexpr std::array<std::string_view, 3> examples{
    "rlock acquire -k stock --pid $$",
    "lock=$(rlock acquire -k stock --pid $$ --export) || exit; eval \"$lock\"",
    "token=$(rlock acquire -k stock -n --lease 5m) || exit",
};

constexpr std::array exits{
    ExitLine{"0", "taken, and its token is printed"},
    ExitLine{"64", "usage, a bad URL in the arguments or a --pid that does not exist among it"},
    server_exit,
    ExitLine{"70, 71",
             "internal error; no keeper could be started, or standard output not be "
             "written: nothing is held"},
    ExitLine{"75", "busy (or -E N)"},
    refused_exit,
    config_exit,
};

void add_keeper_options(Options& options, RawAcquire& raw)
{
  Options group = options.in("How long it lasts (one of --pid and --lease is needed)");
  group.text("--pid", raw.pid, "PID",
             "leave a keeper behind, a process that renews the lock until PID ends and releases it "
             "then, or when the script says rlock release; with a shell, $$");
  group.text("--ttl", raw.ttl, "DUR", "with --pid: how long the lock outlives a dead keeper (30s)");
  group.text("--signal", raw.signal, "SIG",
             "with --pid: what PID, and PID alone, gets when the lock is lost: at once, or a sixth of "
             "the ttl, 5s at most, before it could be another's; it is never followed by KILL (TERM)");
  group.text("--on-lost", raw.on_lost, "stop|warn", "with --pid: warn sends nothing; ask rlock check (stop)");
  group.text("--lease", raw.lease, "DUR",
             "leave nobody behind: over after DUR, unless renewed; where the lock is ours already, from an "
             "outer hold, not before that one ends, and what is then left of its ttl");
}

Result<Millis> resolve_ttl(const RawAcquire& raw)
{
  if (raw.pid.has_value() == raw.lease.has_value()) {
    return usage(raw.pid ? "--pid and --lease exclude each other: a lease has no keeper (try --pid $$ alone)"
                         : "--pid or --lease is needed: how long shall the lock last (try --pid $$, or --lease 5m)");
  }
  if (raw.lease) {
    return resolve_duration(*raw.lease, fixed_lease_rule);
  }
  return raw.ttl ? resolve_duration(*raw.ttl, ttl_rule) : Result<Millis>(Millis{30'000});
}

Error keeper_only(std::string_view option, const char* why)
{
  return usage(std::string(option) + " is for --pid: " + why + " (try --pid $$, or leave it out)");
}

Result<std::optional<WatchedProcess>> resolve_watched(const RawAcquire& raw)
{
  if (!raw.pid) {
    if (raw.ttl) {
      return keeper_only("--ttl", "a lease is its own ttl");
    }
    if (raw.signal || raw.on_lost) {
      return keeper_only(raw.signal ? "--signal" : "--on-lost", "without a keeper nobody tells of a loss");
    }
    return std::optional<WatchedProcess>{};
  }
  const Result<int> pid = resolve_number(*raw.pid, pid_rule);
  if (!pid) {
    return pid.error();
  }
  WatchedProcess watched{.pid = *pid};
  if (raw.signal) {
    const std::optional<int> signal = signal_number(*raw.signal);
    if (!signal) {
      return usage("--signal: '" + printable(*raw.signal) + "' is not a signal (try --signal TERM)");
    }
    watched.lost_signal = *signal;
  }
  if (raw.on_lost) {
    const Result<OnLost> on_lost = resolve_choice(*raw.on_lost, "--on-lost", on_lost_choices);
    if (!on_lost) {
      return on_lost.error();
    }
    watched.on_lost = *on_lost;
  }
  return std::optional(watched);
}

std::string shown(const RawAcquire& raw, const AcquireRequest& request, const HeldLock& lock, std::uint64_t fence,
                  const Environment& environment)
{
  if (raw.json) {
    return lease_json(lock.name, lock.hold, fence, request.ttl, lock.shard);
  }
  if (raw.exports) {
    return export_lines({.held = {lock}, .lease = request.ttl, .server = request.server.shown()}, fence, environment);
  }
  return lock.hold.token() + "\n";
}

// What eval "$(rlock acquire --export ...)" would take for success if nothing was printed.
void print_failure(const Result<RunEnd>& end)
{
  int code = end ? 0 : static_cast<int>(exit_code_of(end.error().code));
  if (end) {
    const auto* death = std::get_if<DieOf>(&*end);
    code = death != nullptr ? 128 + death->signal : std::get<ExitWith>(*end).code;
  }
  if (code != 0) {
    print("(exit " + std::to_string(code) + ")\n");
  }
}

Result<RunEnd> acquired(const RawAcquire& raw, const Call& call)
{
  const Result<AcquireRequest> request = resolve_acquire(raw, call.operands, call.environment);
  const Result<Done> logging = use_log_format(raw.log_format, request ? &request->name : nullptr);
  if (!logging) {
    return logging.error();
  }
  if (!request) {
    return request.error();
  }
  const BootClock clock;
  SystemRng rng;
  const Log log(raw.quiet ? Verbosity::quiet : Verbosity::normal);
  return acquire(*request, {clock, rng, call.signals, log}, [&](const HeldLock& lock, std::uint64_t fence) {
    print(shown(raw, *request, lock, fence, call.environment));
    return finish_output();
  });
}

Result<RunEnd> execute(const RawAcquire& raw, const Call& call)
{
  Result<RunEnd> end = acquired(raw, call);
  if (raw.exports) {
    print_failure(end);
  }
  return end;
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawAcquire>();
  add_acquire_options(options, *raw);
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

void add_acquire_options(Options& options, RawAcquire& raw)
{
  add_key_options(options, raw.keys);
  add_shards_option(options, raw.shards, "--export and --json say which");
  add_mode_options(options, raw.mode);
  add_wait_options(options, raw.wait_options);
  options.text("-E,--conflict-exit-code", raw.busy_code, "N", "what a busy lock returns (75)");
  add_sync_option(options, raw.sync);
  add_label_option(options, raw.label);
  options.flag("--export", raw.exports,
               "print export lines for eval, with the names that a job finds in its environment");
  options.flag("--json", raw.json, "print one JSON object");
  options.flag("-q,--quiet", raw.quiet, "say nothing on stderr but why it fails");
  add_log_format_option(options, raw.log_format);
  add_keeper_options(options, raw);
  add_server_options(options, raw.server);
}

Result<AcquireRequest> resolve_acquire(const RawAcquire& raw, std::span<const std::string> operands,
                                       const Environment& environment)
{
  Result<LockName> name = resolve_key(raw.keys, operands);
  if (!name) {
    return name.error();
  }
  const Result<Mode> mode = resolve_mode(raw.mode);
  if (!mode) {
    return mode.error();
  }
  const Result<Millis> ttl = resolve_ttl(raw);
  if (!ttl) {
    return ttl.error();
  }
  const Result<std::optional<WatchedProcess>> watched = resolve_watched(raw);
  if (!watched) {
    return watched.error();
  }
  const Result<std::optional<Millis>> wait = resolve_wait_options(raw.wait_options);
  if (!wait) {
    return wait.error();
  }
  const Result<int> busy_code = resolve_number(raw.busy_code.value_or("75"), busy_code_rule);
  if (!busy_code) {
    return busy_code.error();
  }
  if (raw.exports && raw.json) {
    return usage("--export and --json exclude each other (try --export alone)");
  }
  const Result<std::vector<LockName>> shards = resolve_shards(raw.shards, *name);
  if (!shards) {
    return shards.error();
  }
  if (!shards->empty() && !raw.exports && !raw.json) {
    return usage("--shards: which lock was taken is said by --export and --json only (try --export)");
  }
  Result<std::string> label = resolve_label(raw.label);
  if (!label) {
    return label.error();
  }
  Result<ServerSpec> server = resolve_server(raw.server, environment);
  if (!server) {
    return server.error();
  }
  const Result<unsigned> sync = resolve_sync(raw.sync, *server);
  if (!sync) {
    return sync.error();
  }
  return AcquireRequest{.server = *std::move(server),
                        .name = *std::move(name),
                        .shards = *shards,
                        .mode = *mode,
                        .ttl = *ttl,
                        .wait = *wait,
                        .busy_code = *busy_code,
                        .sync = *sync,
                        .label = *std::move(label),
                        .watched = *watched,
                        .environment = environment.all()};
}

const Verb acquire_verb{
    .name = "acquire",
    .summary = "take a lock for a script and return",
    .synopsis = "[-k] KEY (--pid PID | --lease DUR) [OPTION...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
