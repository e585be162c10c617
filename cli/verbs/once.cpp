// SPDX-License-Identifier: Apache-2.0
// rlock once, and rlock forget, which forgets the success that once remembers.
#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/options/output.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/ask.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/known_locks.h"
#include "cli/verbs/run.h"
#include "lock/period.h"
#include "run/request.h"

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

// How much longer than usual a period may be whose clocks are set back.
constexpr Millis clock_change = one_hour;

Result<Done> read_period(const Given& given, RunRequest& request)
{
  const std::string_view word = given.value;
  const std::optional<Millis> length = word == "hour"   ? one_hour
                                       : word == "day"  ? one_day
                                       : word == "week" ? one_week
                                                        : parse_duration(word);
  const bool is_week_of_days = length == one_week && word != "week";
  if (!length || !is_period(*length) || is_week_of_days) {
    return usage("--per: '" + printable(word) +
                 "' is neither hour, day or week nor a part of a day such as 6h or 15m (try --per day)");
  }
  request.per = *length;
  return Done{};
}

// The rows of run, and its own.
constexpr OptionRow<RunRequest> once_rows[] = {
    {{.names = "--for",
      .value = "DUR",
      .help = "do not run CMD if it succeeded under KEY within DUR; a caller that arrives while CMD runs waits, and "
              "shares its result",
      .range = Durations{1ms, longest_duration, "1h"},
      .excludes = {"--per", " (try --per day alone)"}},
     set<&RunRequest::once>},
    {{.names = "--per",
      .value = "hour|day|week|DUR",
      .help = "do not run CMD if a run that succeeded began in this hour, day or week, or, with DUR such as 6h, in "
              "these six hours of the day; periods begin at local midnight and on Monday, by the server's clock in the "
              "time zone of this process"},
     read_period},
    {{.names = "--attempts",
      .value = "N",
      .help = "run CMD up to N times until it succeeds, here or on a host that waits; a caller that comes later, when "
              "--min-hold is over, runs it again (1)",
      .range = Numbers{1, 1000, "2"}},
     set<&RunRequest::attempts>},
    {{.names = "--retry-delay",
      .value = "DUR",
      .help = "time before the second attempt; it doubles before each further one (10s)",
      .range = Durations{Millis{0}, std::chrono::hours{24}, "1m"},
      .needs = {"--attempts", " (try --attempts 2 --retry-delay 1m)"}},
     set<&RunRequest::retry_delay>},
    {{.names = "--again",
      .help = "run CMD even if it succeeded, or failed while this call waited; the server remembers the new success"},
     set<&RunRequest::again>},
};

Result<RunRequest> resolve_once(const RawRun& raw, const Call& call)
{
  if (!raw.request.once && !raw.request.per) {
    return usage("--per or --for is missing: they say how long a success counts (try --per day, or --for 1h)");
  }
  auto request = resolve_run(raw, call.operands, call.environment);
  if (request && request->per) {
    request->once = *request->per + clock_change;
  }
  if (request && request->names.size() > 1) {
    return usage("--key: given for " + std::to_string(request->names.size()) +
                 " locks, but a success is remembered under one (try one -k)");
  }
  if (request && !kind_of(request->kind).is_always_exclusive) {
    return usage(
        "--shared, --exclusive and --permits make no sense with once, which runs one job at a time (try rlock run)");
  }
  return request;
}

Result<RunEnd> execute_once(const RawRun& raw, const Call& call)
{
  return run_request(raw, call, resolve_once(raw, call));
}

void add_once_options(OptionTable& options, RawRun& raw)
{
  options.add(once_rows, raw.request);
  add_key_options(options, raw.take.keys);
  add_kind_options(options, raw.request, "");
  add_common_run_options(options, raw);
}

}  // namespace

const Verb once_verb{
    .name = "once",
    .summary = "run a command unless it has succeeded lately, on any host",
    .synopsis = "-k KEY (--for DUR|--per PERIOD) [OPTION...] [--] CMD [ARG...]",
    .examples = {"rlock once -k report --per day -- ./report.sh",
                 "rlock once -k backup --per day --attempts 2 --retry-delay 5m -- ./backup.sh",
                 "rlock once -k migrate:v42 --for 30d -- ./migrate.sh",
                 "rlock once -k cache:front --for 30s -w 5s -- ./rebuild.sh",
                 "rlock once -k migrate:v42 --for 30d --again -- ./migrate.sh"},
    .own_exits = {job_exit,
                  {ExitCode::ok, "the job succeeded, now, within DUR or in this period, on this host or another"},
                  {"that of the job elsewhere",
                   "the job failed on another host while this call waited; 128 + n: signal n"}},
    .common_exits = job_codes,
    .operands = Operands::command,
    .add_options = bound<RawRun, add_once_options, execute_once>,
};

namespace {

struct RawForget {
  RawOneLock lock;
  bool json = false;
};

// "stock: forgot the success of once, the history"
std::string forgotten_text(const LockName& name, bool success, const Forgotten& rest)
{
  std::string all;
  for (const auto& [is_forgotten, what] : {std::pair{success, "the success of once"},
                                           {rest.runs, "the history"},
                                           {rest.permits, "the number of permits"}}) {
    all += is_forgotten ? (all.empty() ? "" : ", ") + std::string(what) : "";
  }
  return printable(name.text()) + ": forgot " + all + "\n";
}

// Says why the history of the lock stays, or that there was none.
void tell_kept(const OneLock& lock, bool success_forgotten)
{
  const std::string name = printable(lock.name.text());
  const auto state = lock.opened.store->inspect(lock.name, lock.opened.limit());
  if (state && state->held()) {
    Log(Verbosity::normal).notice(name + " is held, so its history stays until it is free");
  } else if (!success_forgotten) {
    Log(Verbosity::normal)
        .notice("there is nothing to forget: the server knows no lock " + name +
                (is_glob(lock.name.text()) ? " (forget takes a name, not a pattern)" : ""));
  }
}

Result<RunEnd> execute(const RawForget& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto lock, open_lock(raw.lock, call));
  ASSIGN_OR_RETURN(const auto forgotten, lock.opened.store->forget_success(lock.name, lock.opened.limit()));
  ASSIGN_OR_RETURN(const auto rest, lock.opened.store->forget_runs(lock.name, lock.opened.limit()));
  const bool has_rest = rest.runs || rest.permits;
  if (raw.json) {
    print(forget_json(lock.name, forgotten, rest));
    return ended(forgotten || has_rest ? ExitCode::ok : ExitCode::no);
  }
  if (forgotten || has_rest) {
    print(forgotten_text(lock.name, forgotten, rest));
  }
  if (!has_rest) {
    tell_kept(lock, forgotten);
  }
  return ended(forgotten || has_rest ? ExitCode::ok : ExitCode::no);
}

void add_forget_options(OptionTable& options, RawForget& raw)
{
  add_key_options(options, raw.lock.keys);
  options.add(json_lines_row, raw.json);
  add_server_options(options, raw.lock.server);
}

}  // namespace

const Verb forget_verb{
    .name = "forget",
    .summary = "forget the success of once, and what is left of a free lock",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = {"rlock forget -k migrate:v42"},
    .own_exits =
        {{ExitCode::ok, "forgotten: the next rlock once runs its command; a free lock is in no list any more"},
         {ExitCode::no,
          "there was nothing to forget, or the lock is held; standard error says which, unless --json is given"}},
    .add_options = bound<RawForget, add_forget_options, execute>,
};

}  // namespace rlock::cli
