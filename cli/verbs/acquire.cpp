// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/acquire.h"

#include "base/duration.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/options/output.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "stores/open.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace rlock::cli {
namespace {

// A value of several lines is made by printf, because `eval $(...)` without quotes joins lines, and each line ends with a semicolon.
std::string export_line(std::string_view name, std::string_view value)
{
  const std::vector<std::string_view> lines = split(value, '\n');
  const std::string text =
      lines.size() == 1 ? shell_quoted(value) : "\"$(printf '%s\\n' " + joined(lines, " ", shell_quoted) + ")\"";
  return "export " + std::string(name) + "=" + text + ";\n";
}

std::string unset_line(std::string_view name) { return "unset " + std::string(name) + ";\n"; }

// RLOCK_HELD without the entries of these locks: a caller that takes a key again no longer holds it by the earlier token. A nested
// hold leaves the outer one where it is.
std::string held_of_others(std::string_view held, const std::vector<HeldLock>& taken)
{
  std::string others;
  for (const HeldLockLine& line : parse_held_locks(held)) {
    const bool is_replaced = std::ranges::any_of(
        taken, [&](const HeldLock& lock) { return lock.name.text() == line.key && !lock.hold.is_nested(); });
    if (!is_replaced) {
      others += (others.empty() ? "" : "\n") + std::string(line.whole);
    }
  }
  return others;
}

// RLOCK_SERVER of the environment without passwords, as JobServer::urls; empty: no URL in it has a password.
std::string known_with_password(const Environment& environment)
{
  std::string known;
  bool has_password = false;
  for (const std::string& url : urls_in(environment.value(server_variable))) {
    const Result<Endpoint> endpoint = parse_server(url);
    if (!endpoint) {
      return {};
    }
    known += (known.empty() ? "" : " ") + endpoint->without_passwords();
    has_password = has_password || !endpoint->password.empty();
  }
  return has_password ? known : "";
}

// Removes what the environment must not have beside the file.
std::string password_file_lines(const JobServer& server, const Environment& environment)
{
  if (!server.password_file) {
    return {};
  }
  std::string lines;
  if (!environment.value(password_variable).empty()) {
    lines += unset_line(password_variable);
  }
  if (!server.password_file->empty()) {
    return lines + export_line(password_file_variable, *server.password_file);
  }
  const bool has_other = !environment.value(password_file_variable).empty();
  return lines + (has_other ? unset_line(password_file_variable) : "");
}

}  // namespace

std::string export_lines(const JobLocks& locks, std::uint64_t fence, const Environment& environment)
{
  const std::string others = held_of_others(environment.value(held_locks_variable), locks.held);
  const auto variables = job_environment({std::string(held_locks_variable) + "=" + others}, locks);

  std::string lines;
  for (const std::string_view name : {key_variable, token_variable, fence_variable, lease_variable, shard_variable,
                                      shard_name_variable, server_variable, held_locks_variable}) {
    if ((name == shard_variable || name == shard_name_variable) && environment_value(variables, name).empty()) {
      lines += environment.value(name).empty() ? "" : unset_line(name);  // of an earlier lock
      continue;
    }
    if (name == fence_variable) {
      lines += export_line(name, std::to_string(fence));
    } else if (name != server_variable || known_with_password(environment) != locks.server.urls) {
      lines += export_line(name, environment_value(variables, name));
    }
  }
  return lines + password_file_lines(locks.server, environment);
}

// `>|`, because with `set -C` a shell may refuse to write to what exists. The byte tells the keeper that the shell has the pipe.
std::string pipe_line(const PipeForScript& pipe)
{
  const std::string descriptor = std::to_string(pipe.descriptor);
  return "exec " + descriptor + ">|" + pipe.path + " || exit; printf . >&" + descriptor + "\n";
}

namespace {

constexpr OptionRow<RunRequest> acquire_busy_row = busy_code_row(ExitCode::busy);
constexpr OptionRow<RawShards> acquire_shard_row =
    shards_row("--export and --json print its number and its name",
               {"--export,--json", ": only they print which lock was taken (try --export)"});

constexpr OptionRow<RawAcquire> print_rows[] = {
    {{.names = "--export",
      .help = "print lines for eval: the variables that a job finds in its environment; with --pid also a line that "
              "opens a pipe of the keeper, by which it knows and stops what the script starts",
      .excludes = {"--json", " (try --export alone)"}},
     set<&RawAcquire::exports>},
    {{.names = "--json", .help = "print one JSON object for each lock"}, set<&RawAcquire::json>},
};

Result<Done> read_fixed_lease(const Given& given, RawAcquire& raw)
{
  raw.is_lease = true;
  return read_value(given, raw.request.ttl);
}

constexpr const char* try_export = ": only then the keeper knows what the script has started (try --export)";
constexpr Others keeper_tells{"--pid", ": only a keeper tells of a loss (try --pid $$, or leave it out)"};
constexpr OptionRow<RawAcquire> pid_row{
    {.names = "--pid",
     .value = "PID",
     .help = "start a keeper, a process that renews the lock until PID ends, and then releases it; rlock release ends "
             "the keeper earlier. In a shell script, PID is $$. Without --export only PID itself is watched, and what "
             "it has started may outlive the lock",
     .range = Numbers{1, INT_MAX, "$$"},
     .excludes = {"--lease", ": a lease has no keeper (try --pid $$ alone)"}},
    set<&RawAcquire::pid>};
constexpr OptionRow<RunRequest> keeper_rows[] = {
    {{.names = "--ttl",
      .value = "DUR",
      .help = {"with --pid: how long the lock outlives a dead keeper", default_ttl},
      .range = ttl_range,
      .excludes = {"--lease", ": a lease is its own ttl (leave out --ttl)"},
      .needs = {"--pid", " (try --pid $$, or leave it out)"}},
     set<&RunRequest::ttl>},
    {{.names = "--signal",
      .value = "SIG",
      .help = "with --pid: signal when the lock is lost or about to expire. With --export for the script and what it "
              "has started, and KILL follows; without for the process PID alone, and no KILL follows (TERM)",
      .needs = keeper_tells},
     [](const Given& given, RunRequest& request) { return read_signal(given, request.stop_signal); }},
    {{.names = "--kill-after",
      .value = "DUR",
      .help = {"with --export: time from that signal to KILL; 0: KILL at once", default_kill_after},
      .range = Durations{Millis{0}, longest_duration, "5s"},
      .excludes = {"--lease", ": a lease has no keeper (try --pid $$)"},
      .needs = {"--export", try_export}},
     set<&RunRequest::kill_after>},
    {{.names = "--leftovers",
      .value = "stop|wait|leave",
      .help = "with --export: what the keeper does with processes that the script leaves behind, before it releases "
              "the lock: stop them, wait for them, or leave them alone (stop)",
      .excludes = {"--lease", ": a lease has no keeper (try --pid $$)"},
      .needs = {"--export", try_export}},
     choose_field<&RunRequest::leftovers, Leftovers::stop, Leftovers::wait, Leftovers::leave>},
    {{.names = "--on-lost",
      .value = "stop|warn",
      .help = "with --pid: warn sends no signal; rlock check tells of the loss (stop)",
      .needs = keeper_tells},
     choose_field<&RunRequest::on_lost, OnLost::stop, OnLost::warn>},
    {{.names = "--notify",
      .value = "CMD",
      .help = "with --pid: run CMD by /bin/sh in / when the lock is no longer held; RLOCK_OUTCOME is succeeded, "
              "failed, cancelled, lost or forced",
      .needs = keeper_tells},
     read_notify},
};
constexpr OptionRow<RawAcquire> fixed_lease_row{
    {.names = "--lease",
     .value = "DUR",
     .help = "start no keeper: the lock ends after DUR unless rlock renew renews it; inside a job that holds the same "
             "lock, no earlier than the job's hold",
     .range = fixed_lease_range},
    read_fixed_lease};
constexpr std::string_view lasting_group = "Duration of the lock (one of --pid and --lease is needed)";

std::string shown_grant(const RawAcquire& raw, const RunRequest& request, std::span<const TakenLock> taken,
                        const std::optional<PipeForScript>& pipe, const Environment& environment)
{
  if (raw.json) {
    std::string lines;
    for (const auto& [lock, fence] : taken) {
      lines += lease_json(lock.name, lock.hold, fence, lock.lease, lock.shard);
    }
    return lines;
  }
  if (raw.exports) {
    JobLocks locks{.held = {}, .server = request.server.for_job()};
    for (const TakenLock& each : taken) {
      locks.held.push_back(each.lock);
    }
    return export_lines(locks, taken.front().fence, environment) + (pipe ? pipe_line(*pipe) : "");
  }
  return taken.front().lock.hold.token() + "\n";
}

// Makes `eval "$(rlock acquire --export ...)"` fail, which would succeed if nothing was printed.
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

Result<RunEnd> acquire_lock(const RawAcquire& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto request, resolve_acquire(raw, call.operands, call.environment));
  if (request.names.size() == 1) {
    name_in_log(raw.take, request.name());
  }
  const BootClock clock;
  SystemRng rng;
  const Log log(raw.take.verbosity());
  return acquire(request, {clock, rng, call.signals, log},
                 [&](std::span<const TakenLock> taken, const std::optional<PipeForScript>& pipe) {
                   print(shown_grant(raw, request, taken, pipe, call.environment));
                   return finish_output();
                 });
}

Result<RunEnd> execute(const RawAcquire& raw, const Call& call)
{
  Result<RunEnd> end = acquire_lock(raw, call);
  if (raw.exports) {
    print_failure(end);
  }
  return end;
}

// On several servers each lock may be granted to an owner of its own, after attempts that were not.
Result<Done> check_one_token(const RunRequest& request)
{
  return request.names.size() > 1 && request.server.endpoints.size() > 1
             ? usage(
                   "several keys have one token, and several servers would give each its own (try one -S, or one "
                   "acquire for each key)")
             : Result(Done{});
}

}  // namespace

void add_acquire_options(OptionTable& options, RawAcquire& raw)
{
  add_key_options(options, raw.take.keys, all_keys_row);
  options.add(acquire_shard_row, raw.take.shards);
  add_kind_options(options, raw.request);
  add_wait_options(options, raw.request);
  add_line_options(options, raw.request);
  options.add(acquire_busy_row, raw.request);
  options.add(sync_row, raw.request);
  add_record_options(options, raw.request);
  options.add(print_rows, raw);
  options.add(quiet_row, raw.take);
  add_log_format_option(options, raw.take);
  options.add(pid_row, raw, lasting_group);
  options.add(keeper_rows, raw.request, lasting_group);
  options.add(fixed_lease_row, raw, lasting_group);
  add_server_options(options, raw.take.server);
}

Result<RunRequest> resolve_acquire(const RawAcquire& raw, std::span<const std::string> operands,
                                   const Environment& environment)
{
  ASSIGN_OR_RETURN(const auto names, resolve_keys_to_take(raw.take.keys, operands));
  if (!raw.pid && !raw.is_lease) {
    return usage("--pid or --lease is needed: they say how long the lock lasts (try --pid $$, or --lease 5m)");
  }
  RunRequest request = raw.request;
  request.held_for = HeldFor::script;
  request.names = {names.begin(), names.end()};
  request.automatic = raw.pid.has_value();
  if (raw.pid) {
    request.watched = {.pid = *raw.pid, .has_pipe = raw.exports};
  }
  RETURN_IF_ERROR(finish_request(raw.take, environment, request));
  RETURN_IF_ERROR(resolve_shards(raw.take.shards, request));
  RETURN_IF_ERROR(check_one_token(request));
  return request;
}

const Verb acquire_verb{
    .name = "acquire",
    .summary = "take a lock, or several, for a script and return",
    .synopsis = "[-k] KEY... (--pid PID | --lease DUR) [OPTION...]",
    .examples = {"rlock acquire -k stock --pid $$",
                 "lock=$(rlock acquire -k stock --pid $$ --export) || exit; eval \"$lock\"",
                 "token=$(rlock acquire -k stock -n --lease 5m) || exit",
                 "lock=$(rlock acquire -k a:7 -k a:9 --pid $$ --export) || exit; eval \"$lock\""},
    .own_exits = {{ExitCode::ok, "the lock is taken, or all of several, and the token is printed"},
                  {ExitCode::usage,
                   "usage error, such as a bad URL, a --pid that does not exist, or one of several locks that an outer "
                   "run holds"},
                  {ExitCode::os,
                   "no keeper could be started, or standard output could not be written; the lock is not held"}},
    .common_exits = {ExitCode::unavailable, ExitCode::internal, ExitCode::busy, ExitCode::refused, ExitCode::config},
    .add_options = bound<RawAcquire, add_acquire_options, execute>,
};

}  // namespace rlock::cli
