// SPDX-License-Identifier: Apache-2.0
// rlock list, status, ttl and wait: what locks are like, for people and for scripts.
#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/server.h"
#include "cli/options/take.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/pools.h"
#include "cli/output/prometheus.h"
#include "cli/output/show.h"
#include "cli/verbs/ask.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/known_locks.h"
#include "lock/kept_runs.h"
#include "lock/wait_until_free.h"
#include "run/request.h"
#include "run/wait_message.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock::cli {
namespace {

constexpr const char* every_lock = "*";  // a glob

struct ListOptions {
  std::string pattern;
  OutputFormat output_format = OutputFormat::text;
  SortBy sort = SortBy::key;
  Colors colors = Colors();
  std::optional<Millis> older_than = {};  // of held locks, and of which the age is known
};

// The locks that are held and match the glob.
Result<std::vector<LockState>> held_locks(const OpenedStore& opened, const std::string& pattern)
{
  auto states = opened.store->list(pattern, opened.per_answer());
  if (states) {
    std::erase_if(*states, [](const LockState& state) { return !state.held(); });
  }
  return states;
}

void print_metrics(const std::vector<LockState>& states, std::int64_t now_ms)
{
  print(prometheus_up(true) + prometheus_text(states, now_ms));
}

// A collector learns of a server that is away by a metric, because another exit code would keep the old file.
Result<RunEnd> told_to_collector(Result<RunEnd> end, OutputFormat format)
{
  if (end || format != OutputFormat::prometheus || !is_passing(end.error().code)) {
    return end;
  }
  Log(Verbosity::normal).notice(end.error().text);
  print(prometheus_up(false));
  return ended(ExitCode::ok);
}

std::string no_lock(const ListOptions& options)
{
  return options.pattern == every_lock ? "no lock" : printable("no lock that matches " + options.pattern);
}

// Tells a person that no lock matches the glob. Other formats are for programs, which see no output.
void tell_none_held(const ListOptions& options)
{
  if (options.output_format == OutputFormat::text) {
    Log(Verbosity::normal)
        .notice(no_lock(options) + " is held" +
                (options.older_than ? " for more than " + show(*options.older_than) : std::string()));
  }
}

void print_json(const std::vector<LockState>& states, const std::vector<ShownPool>& pools)
{
  for (const LockState& state : states) {
    print(status_json(state, pools));
  }
}

// What `rlock list` does, and `rlock status` without a key.
Result<RunEnd> print_held_locks(const OpenedStore& opened, const ListOptions& options)
{
  ASSIGN_OR_RETURN(auto states, held_locks(opened, options.pattern));
  const auto pools = pools_of(states, options.pattern);
  const std::int64_t now_ms = wall_clock_ms();
  std::erase_if(states, [&](const LockState& state) {
    return options.older_than && age_of(state, now_ms).value_or(Millis{0}) <= *options.older_than;
  });
  if (options.output_format == OutputFormat::json) {
    RETURN_IF_ERROR(add_runs(opened, LogPart::end, states));
  }
  if (states.empty()) {
    tell_none_held(options);
  }
  sort_locks(states, options.sort, now_ms);
  switch (options.output_format) {
    case OutputFormat::text: print(show_list(states, now_ms, options.colors, pools)); break;
    case OutputFormat::prometheus: print_metrics(states, now_ms); break;
    case OutputFormat::json: print_json(states, pools); break;
  }
  const bool is_scraped = options.output_format == OutputFormat::prometheus;
  return ended(!states.empty() || is_scraped ? ExitCode::ok : ExitCode::no);
}

void print_locks(std::vector<LockState> states, const ListOptions& options)
{
  const std::int64_t now_ms = wall_clock_ms();
  sort_locks(states, options.sort, now_ms);
  switch (options.output_format) {
    case OutputFormat::text: print(show_all(states, now_ms, options.colors)); break;
    case OutputFormat::prometheus: print_metrics(states, now_ms); break;
    case OutputFormat::json: print_json(states, pools_of(states, options.pattern)); break;
  }
}

// The states of the locks that the server knows, held or free, with their runs. A key that holds something else is left out.
Result<std::vector<LockState>> known_states(const OpenedStore& opened, const std::string& pattern)
{
  ASSIGN_OR_RETURN(const auto names, opened.store->find_known(pattern, opened.per_answer()));
  auto states = opened.store->states_of(names, opened.per_answer());
  RETURN_IF_ERROR(states ? add_runs(opened, LogPart::all, *states) : states.error());
  // ZooKeeper also finds a lock whose events were forgotten.
  std::erase_if(*states, [](const LockState& state) { return !state.held() && state.runs.empty() && !state.once; });
  return states;
}

// `rlock list --all`.
Result<RunEnd> print_known_locks(const OpenedStore& opened, const ListOptions& options)
{
  ASSIGN_OR_RETURN(auto states, known_states(opened, options.pattern));
  if (states.empty() && options.output_format == OutputFormat::text) {
    Log(Verbosity::normal).notice("the server knows " + no_lock(options));
  }
  print_locks(std::move(states), options);
  return ended(ExitCode::ok);
}

// A check that checked nothing must not look like one that found nothing. A collector misses the metric.
void tell_none_checked(const ListOptions& options)
{
  if (options.output_format != OutputFormat::prometheus) {
    Log(Verbosity::normal).notice("the server knows " + no_lock(options) + " with --every: nothing was checked");
  }
}

// `rlock list --overdue`. `has_pattern`: the caller expects that the server knows such a lock.
Result<RunEnd> print_overdue_locks(const OpenedStore& opened, const ListOptions& options, bool has_pattern)
{
  ASSIGN_OR_RETURN(auto states, known_states(opened, options.pattern));
  std::erase_if(states, [](const LockState& state) { return !summary_of(state).every; });
  const bool is_unchecked = states.empty();
  if (is_unchecked) {
    tell_none_checked(options);
  }
  const std::int64_t now_ms = wall_clock_ms();
  std::erase_if(states, [&](const LockState& state) { return !overdue_since(summary_of(state), now_ms); });
  const bool is_bad = is_unchecked ? has_pattern : !states.empty();
  print_locks(std::move(states), options);
  return ended(is_bad && options.output_format != OutputFormat::prometheus ? ExitCode::no : ExitCode::ok);
}

struct RawList {
  RawKeys keys;
  RawServer server;
  RawOutputFormat output_format;
  SortBy sort = SortBy::key;
  ColorWhen color = ColorWhen::automatic;
  bool all = false;
  bool overdue = false;
  std::optional<Millis> older_than;
};

constexpr OptionRow<RawList> list_rows[] = {
    {{.names = "-a,--all",
      .help = "also the free locks of which the server knows runs, with the age of the last success and failure, and "
              "how many runs were skipped"},
     set<&RawList::all>},
    {{.names = "--overdue",
      .help = "only locks of which no run has succeeded within its --every; exit code 1 if there is one, or if PATTERN "
              "matches no lock with --every (0 with -o prometheus)"},
     set<&RawList::overdue>},
    {{.names = "--older-than",
      .value = "DUR",
      .help = "only locks that are held for more than DUR; exit code 1 if there is none",
      .range = Durations{Millis{0}, longest_duration, "1h"},
      .excludes = {"--all,--overdue"}},
     set<&RawList::older_than>},
};

Result<RunEnd> execute(const RawList& raw, const Call& call)
{
  if (call.operands.size() > 1) {
    return several_patterns(list_verb.name);
  }
  const ListOptions options{
      .pattern = resolve_pattern(raw.keys, call.operands.empty() ? every_lock : call.operands.front()),
      .output_format = raw.output_format.format(),
      .sort = raw.sort,
      .colors = resolve_colors(raw.color, call.environment),
      .older_than = raw.older_than};
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return told_to_collector(opened.error(), options.output_format);
  }
  return told_to_collector(raw.overdue ? print_overdue_locks(*opened, options, !call.operands.empty())
                           : raw.all   ? print_known_locks(*opened, options)
                                       : print_held_locks(*opened, options),
                           options.output_format);
}

void add_list_options(OptionTable& options, RawList& raw)
{
  options.add(list_rows, raw);
  options.add(prefix_row, raw.keys);
  options.add(sort_row, raw.sort);
  add_output_format_options(options, raw.output_format);
  options.add(color_row, raw.color);
  add_utc_option(options);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb list_verb{
    .name = "list",
    .summary = "list the locks that are held, or all that the server knows",
    .synopsis = "[OPTION...] [PATTERN]",
    .examples = {"rlock list", "rlock list --sort age", "rlock list --json 'billing:*'", "rlock list --all",
                 "rlock list --overdue nightly || echo 'nightly is late or unknown'"},
    .own_exits = {{ExitCode::ok,
                   "at least one lock is held; with --all always; with --overdue, also beside --all: none is late; "
                   "with -o prometheus always"},
                  {ExitCode::no,
                   "no lock is held, and standard error says so unless --json is given; with --overdue: one is late, "
                   "or PATTERN matches no lock with --every"}},
    .add_options = bound<RawList, add_list_options, execute>,
};

namespace {

struct RawStatus {
  RawKeys keys;
  RawServer server;
  RawOutputFormat output_format;
  ColorWhen color = ColorWhen::automatic;
};

Result<std::vector<LockState>> states_of(const Subject& subject, const OpenedStore& opened)
{
  if (const auto* pattern = std::get_if<Pattern>(&subject)) {
    return held_locks(opened, pattern->glob);
  }
  ASSIGN_OR_RETURN(const auto state, opened.store->inspect(std::get<LockName>(subject), opened.limit()));
  return std::vector{state};
}

// The locks that `subjects` names, which come first there, with their runs: in a few requests for all. Empty: a name has no state, or
// there are not several.
Result<std::vector<LockState>> states_of_names(const std::vector<Subject>& subjects, const OpenedStore& opened)
{
  std::vector<LockName> names;
  for (const Subject& subject : subjects) {
    if (const auto* name = std::get_if<LockName>(&subject)) {
      names.push_back(*name);
    }
  }
  if (names.size() < 2) {
    return std::vector<LockState>{};
  }
  auto states = opened.store->states_of(names, opened.per_answer());
  RETURN_IF_ERROR(states ? add_runs(opened, LogPart::all, *states) : states.error());
  std::vector<LockState> in_order;
  for (const LockName& name : names) {
    const auto state = std::ranges::find(*states, name, &LockState::name);
    if (state == states->end()) {
      return std::vector<LockState>{};
    }
    in_order.push_back(*state);
  }
  return in_order;
}

void print_states(std::vector<LockState> states, const std::vector<ShownPool>& pools, const ListOptions& options,
                  const OpenedStore& opened)
{
  if (options.output_format == OutputFormat::json) {
    return print_json(states, pools);
  }
  const std::int64_t now_ms = wall_clock_ms();
  for (const ShownPool& pool : pools) {
    print(show_pool_status(pool, now_ms, options.colors));
  }
  take_waiters_out(states, pools);
  for (const LockState& state : states) {
    print(show_status(state, now_ms, options.colors, opened.server_option));
  }
}

// What the server knows of one subject.
struct Found {
  std::vector<LockState> states;
  std::vector<ShownPool> pools;
};

bool is_not_known(const LockState& state)
{
  return !state.held() && state.waiting.empty() && state.runs.empty() && state.partial.empty() && !state.once;
}

constexpr Millis longest_search{
    500};  // for the pool of a name: that of a free lock that was never used should be shown at once

// The pool of --shards that has this key, and its locks, where the server does not know a lock of that name. A search that is refused,
// or that takes longer than longest_search, finds none.
Result<Found> find_pool(const LockName& key, const OpenedStore& opened)
{
  const std::string pattern = resolve_pattern({.keys = {}, .prefix = key.text() + ":"}, every_lock);
  const CallLimits whole{opened.clock->now() + std::min(opened.timeout, longest_search), StopToken::never()};
  auto states = opened.store->list(pattern, {*opened.clock, opened.timeout, whole});
  if (!states) {
    return Found{};
  }
  Found found{.states = *std::move(states), .pools = {}};
  found.pools = pools_of(found.states, pattern);
  std::erase_if(found.pools, [&](const ShownPool& each) { return each.pool.key != key.text(); });
  RETURN_IF_ERROR(found.pools.empty() ? Result(Done{}) : add_runs(opened, LogPart::all, found.states));
  return found;
}

// Looks for a pool where a person or a program asks for a lock that the server does not know.
Result<Found> with_pool(std::vector<LockState> states, const Subject& subject, const ListOptions& options,
                        const OpenedStore& opened)
{
  if (const auto* pattern = std::get_if<Pattern>(&subject)) {
    auto pools = pools_of(states, pattern->glob);
    return Found{.states = std::move(states), .pools = std::move(pools)};
  }
  if (options.output_format == OutputFormat::prometheus || !is_not_known(states.front())) {
    return Found{.states = std::move(states), .pools = {}};
  }
  ASSIGN_OR_RETURN(auto found, find_pool(std::get<LockName>(subject), opened));
  if (found.pools.empty()) {
    return Found{.states = std::move(states), .pools = {}};
  }
  if (options.output_format == OutputFormat::json) {  // an object for each lock that was asked for
    found.states.insert(found.states.begin(), states.front());
  }
  return found;
}

Result<RunEnd> print_subjects(const std::vector<Subject>& subjects, const OpenedStore& opened,
                              const ListOptions& options)
{
  const bool is_scraped = options.output_format == OutputFormat::prometheus;
  bool all_held = true;
  std::vector<LockState> scraped;  // printed together, by family
  ASSIGN_OR_RETURN(const auto named, states_of_names(subjects, opened));
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const Subject& subject = subjects[i];
    const bool is_known = i < named.size();
    Result<std::vector<LockState>> states = is_known ? std::vector{named[i]} : states_of(subject, opened);
    const auto added = states && !is_known ? add_runs(opened, LogPart::all, *states) : Result(Done{});
    if (!states || !added) {
      return states ? added.error() : states.error();
    }
    ASSIGN_OR_RETURN(auto found, with_pool(*std::move(states), subject, options, opened));
    all_held = all_held && !found.states.empty() && (found.states.front().held() || !found.pools.empty());
    if (const auto* pattern = std::get_if<Pattern>(&subject); pattern != nullptr && found.states.empty()) {
      tell_none_held({.pattern = pattern->glob, .output_format = options.output_format});
    }
    if (is_scraped) {
      scraped.insert(scraped.end(), found.states.begin(), found.states.end());
    } else {
      print_states(std::move(found.states), found.pools, options, opened);
    }
  }
  if (is_scraped) {  // a collector takes another exit code for a failure and publishes nothing
    print_metrics(scraped, wall_clock_ms());
  }
  return ended(all_held || is_scraped ? ExitCode::ok : ExitCode::no);
}

Result<RunEnd> execute(const RawStatus& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto subjects, resolve_subjects(raw.keys, call.operands));
  const ListOptions options{.pattern = resolve_pattern(raw.keys, every_lock),
                            .output_format = raw.output_format.format(),
                            .colors = resolve_colors(raw.color, call.environment)};
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return told_to_collector(opened.error(), options.output_format);
  }
  return told_to_collector(
      subjects.empty() ? print_held_locks(*opened, options) : print_subjects(subjects, *opened, options),
      options.output_format);
}

void add_status_options(OptionTable& options, RawStatus& raw)
{
  add_key_options(options, raw.keys);
  add_output_format_options(options, raw.output_format);
  options.add(color_row, raw.color);
  add_utc_option(options);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb status_verb{
    .name = "status",
    .summary = "show who holds a lock, doing what, and who waits for it",
    .synopsis = "[OPTION...] [[-k] KEY | PATTERN]...",
    .examples = {"rlock status -k stock", "rlock status --json stock billing", "rlock status 'deploy:*'",
                 "rlock status -o prometheus stock >locks.prom.new"},
    .own_exits = {{ExitCode::ok,
                   "all of the locks are held, and each PATTERN matches one; of a pool of --shards one of its locks is "
                   "enough; with -o prometheus always"},
                  {ExitCode::no, "at least one is free or matches nothing; without a KEY: no lock is held"}},
    .add_options = bound<RawStatus, add_status_options, execute>,
};

namespace {

struct RawTtl {
  RawOneLock lock;
  bool json = false;
};

// As PTTL of redis-cli prints it, but 0 for a free lock.
std::string ttl_text(const LockState& state)
{
  if (!state.held()) {
    return "0\n";
  }
  return state.ttl ? std::to_string(state.ttl->count()) + "\n" : "-1\n";
}

Result<RunEnd> execute(const RawTtl& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto lock, open_lock(raw.lock, call));
  ASSIGN_OR_RETURN(const auto state, lock.opened.store->inspect(lock.name, lock.opened.limit()));
  print(raw.json ? ttl_json(state) : ttl_text(state));
  return ended(state.held() ? ExitCode::ok : ExitCode::no);
}

void add_ttl_options(OptionTable& options, RawTtl& raw)
{
  add_key_options(options, raw.lock.keys);
  options.add(json_lines_row, raw.json);
  add_server_options(options, raw.lock.server);
}

}  // namespace

const Verb ttl_verb{
    .name = "ttl",
    .summary = "print how many milliseconds a lock still has",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = {"rlock ttl -k stock"},
    .own_exits = {{ExitCode::ok,
                   "held; -1 means that the lock never expires, or that its end is unknown (null in JSON)"},
                  {ExitCode::no, "free, and 0 is printed"}},
    .add_options = bound<RawTtl, add_ttl_options, execute>,
};

namespace {

struct RawWait {
  RawOneLock lock;
  RunRequest request;  // only the times to wait
  bool quiet = false;
};

// The line names who has frozen the lock.
RunEnd busy(const OneLock& lock, Millis waited, const Log& log)
{
  const Result<LockState> state = lock.opened.store->inspect(lock.name, lock.opened.limit());
  const bool is_frozen = state && freeze_of(*state) != nullptr;
  log.notice(busy_text(printable(lock.name.text()), waited,
                       is_frozen ? std::optional(state->holders.front()) : std::nullopt,
                       is_frozen ? state->ttl : std::nullopt));
  return ended(ExitCode::busy);
}

// Blocks no signals: this process has nothing on the server, so a signal may end it as it ends any program.
Result<RunEnd> execute(const RawWait& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto lock, open_lock(raw.lock, call));
  const OpenedStore& opened = lock.opened;
  const BootClock& clock = *opened.clock;
  SystemRng rng;
  const Log log(raw.quiet ? Verbosity::quiet : Verbosity::normal);
  ServerLine line(clock, log);
  const WaitPolicy policy = wait_policy(raw.request.wait, opened.timeout, clock, raw.request.wait_server);
  ASSIGN_OR_RETURN(const auto result,
                   wait_until_free(*opened.store, lock.name, policy, clock, rng, StopToken::never(), line));
  if (result == WaitResult::free) {
    return ended(ExitCode::ok);
  }
  return busy(lock, raw.request.wait.value_or(Millis{0}), log);
}

constexpr OptionRow<RawWait> wait_quiet_row{{.names = "-q,--quiet", .help = "do not print that the lock is busy"},
                                            set<&RawWait::quiet>};

void add_wait_verb_options(OptionTable& options, RawWait& raw)
{
  add_key_options(options, raw.lock.keys);
  add_wait_options(options, raw.request);
  options.add(wait_quiet_row, raw);
  add_server_options(options, raw.lock.server);
}

}  // namespace

const Verb wait_verb{
    .name = "wait",
    .summary = "wait until a lock is free, without taking it",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = {"rlock wait -k deploy", "rlock wait -k stock -w 10s && ./report.sh",
                 "rlock wait -n stock || echo busy"},
    .own_exits = {{ExitCode::ok, "the lock was free a moment ago; use rlock run to hold it while a command runs"},
                  {ExitCode::busy, "the lock is busy, and the time to wait is over"}},
    .add_options = bound<RawWait, add_wait_verb_options, execute>,
};

}  // namespace rlock::cli
