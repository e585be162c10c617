// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/acquire.h"

#include "base/exit_code.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/run.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "lock/held_locks.h"
#include "store/open.h"

#include <array>
#include <climits>
#include <utility>

namespace rlock::cli {
namespace {

std::string line(std::string_view name, std::string_view value)
{
  return "export " + std::string(name) + "=" + shell_quoted(value) + "\n";
}

// RLOCK_HELD without the entries of `key`: a caller that takes the key again no longer holds it by the earlier token.
std::string held_of_others(std::string_view held, std::string_view key)
{
  std::string others;
  for (const HeldLockLine& line : parse_held_locks(held)) {
    if (line.key != key) {
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
    lines += "unset " + std::string(password_variable) + "\n";
  }
  if (!server.password_file->empty()) {
    return lines + line(password_file_variable, *server.password_file);
  }
  const bool has_other = !environment.value(password_file_variable).empty();
  return lines + (has_other ? "unset " + std::string(password_file_variable) + "\n" : "");
}

}  // namespace

std::string shell_quoted(std::string_view text)
{
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

std::string copied_word(std::string_view text)
{
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (without_controls(text) == text) {
    const bool is_plain = !text.empty() && text.find_first_not_of(plain) == std::string_view::npos;
    return is_plain ? std::string(text) : shell_quoted(text);
  }
  std::string word = "$'";
  for (const char c : printable(text)) {
    word += c == '\'' ? "\\'" : std::string(1, c);
  }
  return word + "'";
}

std::string export_lines(const JobLocks& lock, std::uint64_t fence, const Environment& environment)
{
  const HeldLock& taken = lock.held.front();
  const std::string_view held = environment.value(held_locks_variable);
  const std::string others = taken.hold.is_nested() ? std::string(held) : held_of_others(held, taken.name.text());
  const auto variables = job_environment({std::string(held_locks_variable) + "=" + others}, lock);

  std::string lines;
  for (const std::string_view name : {key_variable, token_variable, fence_variable, lease_variable, shard_variable,
                                      server_variable, held_locks_variable}) {
    if (name == shard_variable && !taken.shard) {
      continue;
    }
    if (name == fence_variable) {
      lines += line(name, std::to_string(fence));
    } else if (name != server_variable || known_with_password(environment) != lock.server.urls) {
      lines += line(name, environment_value(variables, name));
    }
  }
  return lines + password_file_lines(lock.server, environment);
}

namespace {

constexpr NumberRule pid_rule{"--pid", 1, INT_MAX, "$$"};

constexpr std::array<std::string_view, 3> examples{
    "rlock acquire -k stock --pid $$",
    "lock=$(rlock acquire -k stock --pid $$ --export) || exit; eval \"$lock\"",
    "token=$(rlock acquire -k stock -n --lease 5m) || exit",
};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "the lock is taken, and its token is printed"},
    ExitLine{ExitCode::usage, "usage error, such as a bad URL or a --pid that does not exist"},
    ExitLine{ExitCode::os, "no keeper could be started, or standard output could not be written; the lock is not held"},
};

constexpr std::array codes{ExitCode::unavailable, ExitCode::internal, ExitCode::busy, ExitCode::refused,
                           ExitCode::config};

void add_keeper_options(Options& options, RawAcquire& raw)
{
  Options group = options.in("Duration of the lock (one of --pid and --lease is needed)");
  group.text("--pid", raw.pid, "PID",
             "start a keeper, a process that renews the lock until PID ends, and then releases it; rlock release ends "
             "the keeper "
             "earlier. In a shell script, PID is $$");
  group.text("--ttl", raw.ttl, "DUR", {"with --pid: how long the lock outlives a dead keeper", default_ttl});
  group.text(
      "--signal", raw.signal, "SIG",
      "with --pid: signal for the process PID alone, when the lock is lost or about to expire; no KILL follows (TERM)");
  group.text("--on-lost", raw.on_lost, "stop|warn",
             "with --pid: warn sends no signal; rlock check tells of the loss (stop)");
  add_notify_option(
      group, raw.notify,
      "with --pid: run CMD by /bin/sh when the lock is no longer held; RLOCK_OUTCOME is succeeded, lost or "
      "forced");
  group.text("--lease", raw.lease, "DUR",
             "start no keeper: the lock ends after DUR unless rlock renew renews it; inside a job that holds the same "
             "lock, no earlier than the job's hold");
}

Result<Millis> resolve_lease(const RawAcquire& raw)
{
  if (raw.pid.has_value() == raw.lease.has_value()) {
    return usage(raw.pid
                     ? "--pid and --lease exclude each other: a lease has no keeper (try --pid $$ alone)"
                     : "--pid or --lease is needed: they say how long the lock lasts (try --pid $$, or --lease 5m)");
  }
  if (raw.lease) {
    return resolve_duration(*raw.lease, fixed_lease_rule);
  }
  return resolve_ttl(raw.ttl);
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
    if (raw.notify) {
      return keeper_only("--notify", "a lease has no process that could tell");
    }
    if (raw.signal || raw.on_lost) {
      return keeper_only(raw.signal ? "--signal" : "--on-lost", "only a keeper tells of a loss");
    }
    return std::optional<WatchedProcess>{};
  }
  const Result<int> pid = resolve_number(*raw.pid, pid_rule);
  if (!pid) {
    return pid.error();
  }
  WatchedProcess watched{.pid = *pid};
  if (raw.signal) {
    const Result<Done> given = assign(resolve_signal(*raw.signal), watched.lost_signal);
    if (!given) {
      return given.error();
    }
  }
  if (raw.on_lost) {
    const Result<Done> given = assign(resolve_choice(*raw.on_lost, "--on-lost", on_lost_choices), watched.on_lost);
    if (!given) {
      return given.error();
    }
  }
  return std::optional(watched);
}

Result<Done> apply_wait(const RawAcquire& raw, AcquireRequest& request)
{
  const Result<WaitTimes> times = resolve_wait_options(raw.wait_options);
  if (!times) {
    return times.error();
  }
  request.wait = times->lock;
  request.wait_server = times->server;
  return Done{};
}

Result<Done> check_output(const RawAcquire& raw)
{
  if (raw.exports && raw.json) {
    return usage("--export and --json exclude each other (try --export alone)");
  }
  if (raw.shards && !raw.exports && !raw.json) {
    return usage("--shards: only --export and --json print which lock was taken (try --export)");
  }
  return Done{};
}

std::string shown(const RawAcquire& raw, const AcquireRequest& request, const HeldLock& lock, std::uint64_t fence,
                  const Environment& environment)
{
  if (raw.json) {
    return lease_json(lock.name, lock.hold, fence, request.ttl, lock.shard);
  }
  if (raw.exports) {
    return export_lines({.held = {lock}, .lease = request.ttl, .server = request.server.for_job()}, fence, environment);
  }
  return lock.hold.token() + "\n";
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
  Result<RunEnd> end = acquire_lock(raw, call);
  if (raw.exports) {
    print_failure(end);
  }
  return end;
}

}  // namespace

void add_acquire_options(Options& options, RawAcquire& raw)
{
  add_key_options(options, raw.keys);
  add_shards_option(options, raw.shards, "--export and --json print its number");
  add_mode_options(options, raw.mode);
  add_wait_options(options, raw.wait_options);
  options.text("-E,--conflict-exit-code", raw.busy_code, "N", {busy_code_help, ExitCode::busy});
  add_sync_option(options, raw.sync);
  add_label_option(options, raw.label);
  add_history_option(options, raw.history);
  options.flag("--export", raw.exports,
               "print export lines for eval: the variables that a job finds in its environment");
  options.flag("--json", raw.json, "print one JSON object");
  options.flag("-q,--quiet", raw.quiet, "print on stderr only why rlock fails");
  add_log_format_option(options, raw.log_format);
  add_keeper_options(options, raw);
  add_server_options(options, raw.server);
}

Result<AcquireRequest> resolve_acquire(const RawAcquire& raw, std::span<const std::string> operands,
                                       const Environment& environment)
{
  Result<LockName> name = resolve_key_to_take(raw.keys, operands);
  if (!name) {
    return name.error();
  }
  AcquireRequest request{.server = {},
                         .name = *std::move(name),
                         .wait = {},
                         .label = {},
                         .history = {},
                         .watched = {},
                         .environment = environment.all()};
  const Result<Done> resolved = first_error({
      assign(resolve_mode(raw.mode), request.mode),
      assign(resolve_lease(raw), request.ttl),
      assign(resolve_watched(raw), request.watched),
      apply_wait(raw, request),
      assign(resolve_busy_code(raw.busy_code, ExitCode::busy), request.busy_code),
      assign(resolve_shards(raw.shards, request.name), request.shards),
      check_output(raw),
      assign(resolve_label(raw.label), request.label),
      assign(resolve_history(raw.history), request.history),
      assign(resolve_notify(raw.notify), request.notify),
      assign(resolve_server(raw.server, environment), request.server),
      assign(resolve_sync(raw.sync, request.server), request.sync),
  });
  return resolved ? Result(std::move(request)) : Result<AcquireRequest>(resolved.error());
}

const Verb acquire_verb{
    .name = "acquire",
    .summary = "take a lock for a script and return",
    .synopsis = "[-k] KEY (--pid PID | --lease DUR) [OPTION...]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawAcquire, add_acquire_options, execute>,
};

}  // namespace rlock::cli
