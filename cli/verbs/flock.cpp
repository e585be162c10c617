// SPDX-License-Identifier: Apache-2.0
// rlock flock: flock(1) with a key in the place of the file.
#include "cli/verbs/flock.h"

#include "base/duration.h"
#include "cli/help/help.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/run.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/token_lock.h"
#include "run/exec_command.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr DurationRule wait_rule{"--timeout", 0ms, longest_duration, "10"};

constexpr std::array<std::string_view, 4> examples{
    "rlock flock -n -E 0 nightly /usr/local/bin/nightly",
    "rflock -w 10 deploy -c 'make && make install'",
    "rflock -s report ./read.sh",
    R"([ "$FLOCKER" != "$0" ] && exec env FLOCKER="$0" rflock -en stock "$0" "$@")",
};

constexpr std::array exits{
    ExitLine{"the command's own", "the command ran; 128 + n: signal n killed it"},
    ExitLine{ExitCode::no, "the lock is busy, with -n or -w (or -E N)"},
    ExitLine{ExitCode::usage, "usage error, such as an option of flock(1) that a key cannot have"},
    ExitLine{ExitCode::unavailable,
             "the command cannot be executed or was not found; the server is unreachable or unfit"},
};
constexpr std::array codes{ExitCode::internal, ExitCode::os, ExitCode::refused, ExitCode::config, ExitCode::lost};

// An option of flock(1) that makes no sense for a key, with what to do instead.
struct UnsupportedOption {
  const char* names;
  std::string_view value;  // empty: a flag
  const char* why;
};
constexpr const char* no_bytes = "a key has no bytes (lock a key for each part: rlock flock stock:1 CMD)";
constexpr std::array unsupported{
    UnsupportedOption{"-F,--no-fork", "", "rlock must stay to renew the lock while the command runs (leave it out)"},
    UnsupportedOption{"--fcntl", "", "a key has one kind of lock, which -s and -x share (leave it out)"},
    UnsupportedOption{"--start", "N", no_bytes},
    UnsupportedOption{"--length", "N", no_bytes},
    UnsupportedOption{"--fd", "N", "a key is not held by a descriptor (try rlock acquire -k KEY --pid $$)"},
};

void add_unsupported_options(Options& options, RawFlock& raw)
{
  Options hidden = options.in("");
  for (const UnsupportedOption& option : unsupported) {
    hidden.each(
        option.names, option.value,
        [&raw, &option] {
          const std::string_view names = option.names;
          raw.unsupported = std::string(names.substr(names.rfind(',') + 1)) + ": " + option.why;
        },
        "");
  }
}

// Of -s, -x and -u the last one counts.
void add_kind(Options& options, const char* names, RawFlock& raw, FlockKind kind, const char* help)
{
  options.each(
      names, "", [&raw, kind] { raw.kind = kind; }, help);
}

Error no_command(const std::string& key)
{
  const bool is_number = std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (is_number) {
    return usage("a descriptor cannot be locked: " + key +
                 " is a key only when a command follows (for a part of a script: rlock acquire -k KEY --pid $$)");
  }
  return usage("no command to run (try rlock flock " + printable(key) + " ./job.sh, or " + printable(key) +
               " -c 'a && b')");
}

// -c and its one string, or the command itself.
Result<std::vector<std::string>> resolve_command(const std::vector<std::string>& operands,
                                                 const Environment& environment)
{
  const bool by_shell = operands[1] == "-c" || operands[1] == "--command";
  if (!by_shell) {
    return std::vector<std::string>(operands.begin() + 1, operands.end());
  }
  if (operands.size() != 3) {
    return usage(operands[1] + " takes one word, the whole command (try -c 'a && b')");
  }
  const std::string_view shell = environment.value("SHELL");
  return std::vector<std::string>{std::string(shell.empty() ? "/bin/sh" : shell), "-c", operands[2]};
}

Result<std::optional<Millis>> resolve_wait(const RawFlock& raw)
{
  if (raw.wait) {
    const Result<Millis> wait = resolve_duration(*raw.wait, wait_rule);
    if (!wait) {
      return wait.error();
    }
    return std::optional{raw.no_wait ? 0ms : *wait};
  }
  return raw.no_wait ? std::optional{0ms} : std::nullopt;
}

// -u: a job releases the lock of its own rflock before the job is over.
Result<RunEnd> unlock(const RawFlock& raw, const Call& call)
{
  const RawTokenLock raw_lock{.keys = {.keys = {call.operands.front()}, .prefix = raw.keys.prefix},
                              .server = raw.server,
                              .token = std::nullopt,
                              .json = false,
                              .quiet = !raw.verbose};
  const Result<TokenLock> token_lock = resolve_token_lock(raw_lock, {}, call.environment);
  const Result<RunEnd> end = token_lock ? release_token_lock(*token_lock, raw_lock, call) : token_lock.error();
  if (call.operands.size() == 1) {
    return token_lock ? end
                      : usage("-u: no lock is held under " + printable(call.operands.front()) +
                              " by this job (in a job of rflock, -u works; elsewhere use rlock release --token)");
  }
  const auto command = resolve_command(call.operands, call.environment);
  if (!command) {
    return command.error();
  }
  // As with flock(1), the command runs even if the lock could not be released.
  return Error{ErrorCode::unreachable, exec_command(*command, call.environment.all(), call.signals).text};
}

Result<RunEnd> execute(const RawFlock& raw, const Call& call)
{
  if (raw.wants_version) {
    print_version();
    return ended(ExitCode::ok);
  }
  if (!raw.unsupported.empty()) {
    return usage(raw.unsupported);
  }
  if (call.operands.empty()) {
    return usage("no key and no command (try rlock flock stock ./job.sh)");
  }
  if (raw.kind == FlockKind::none) {
    return unlock(raw, call);
  }
  const Result<RunRequest> request = resolve_flock(raw, call.operands, call.environment);
  const Result<Done> logging = use_log_format(raw.log_format, request ? &*request->names.begin() : nullptr);
  if (!logging) {
    return logging.error();
  }
  if (!request) {
    return request.error();
  }
  const BootClock clock;
  SystemRng rng;
  const Log log(raw.verbose ? Verbosity::verbose : Verbosity::quiet);
  return run(*request, {clock, rng, call.signals, log});
}

}  // namespace

void add_flock_options(Options& options, RawFlock& raw)
{
  add_kind(options, "-s,--shared", raw, FlockKind::shared, "share the lock with other -s holders");
  add_kind(options, "-x,-e,--exclusive", raw, FlockKind::exclusive, "hold the lock alone (the default)");
  add_kind(options, "-u,--unlock", raw, FlockKind::none,
           "inside the command: release the lock that the command runs under; then run CMD, if there is one");
  options.flag("-n,--nb,--nonblock,--nonblocking", raw.no_wait, no_wait_help);
  options.text("-w,--wait,--timeout", raw.wait, "SECS",
               "give up after SECS, such as 0.5 or 5m; 0: the same as -n (wait for ever)");
  add_wait_server_option(options, raw.wait_server);
  options.text("-E,--conflict-exit-code", raw.busy_code, "N", {busy_code_help, ExitCode::no});
  options.flag("-o,--close", raw.close,
               "release the lock when the command ends; without -o, processes that the command leaves behind keep the "
               "lock until "
               "they end");
  options.flag("--verbose", raw.verbose, "print each step on stderr, and why rlock fails");
  options.flag("-V,--version", raw.wants_version, "print the version and exit");
  add_prefix_option(options, raw.keys);
  options.text("--ttl", raw.ttl, "DUR", {"how long the lock outlives a dead rlock", default_ttl});
  add_label_option(options, raw.label);
  add_history_option(options, raw.history);
  add_notify_option(options, raw.notify, notify_help);
  add_log_format_option(options, raw.log_format);
  add_server_options(options, raw.server);
  add_unsupported_options(options, raw);
}

Result<RunRequest> resolve_flock(const RawFlock& raw, const std::vector<std::string>& operands,
                                 const Environment& environment)
{
  if (operands.size() == 1) {
    return no_command(operands.front());
  }
  RawKeys keys = raw.keys;
  keys.keys = {operands.front()};
  Result<LockName> name = resolve_key_to_take(keys);
  if (!name) {
    return name.error();
  }
  RunRequest request{.server = {},
                     .names = {*std::move(name)},
                     .shards = {},
                     .mode = raw.kind == FlockKind::shared ? Mode{Reader{}} : Mode{Writer{}},
                     .label = {},
                     .history = std::nullopt,
                     .compatibility = Compatibility::flock,
                     .environment = environment.all(),
                     .leftovers = raw.close ? Leftovers::leave : Leftovers::until_pipe_closes,
                     .max_runtime = std::nullopt};
  const Result<Done> resolved = first_error({
      assign(resolve_command(operands, environment), request.argv),
      assign(resolve_wait(raw), request.wait),
      assign(resolve_wait_server(raw.wait_server), request.wait_server),
      assign(resolve_busy_code(raw.busy_code, ExitCode::no), request.busy_code),
      assign(resolve_ttl(raw.ttl), request.ttl),
      assign(resolve_label(raw.label), request.label),
      assign(resolve_history(raw.history), request.history),
      assign(resolve_notify(raw.notify), request.notify),
      assign(resolve_server(raw.server, environment), request.server),
  });
  return resolved ? Result(std::move(request)) : Result<RunRequest>(resolved.error());
}

const Verb flock_verb{
    .name = "flock",
    .summary = "like flock(1), with a key as the file; also called rflock",
    .synopsis = "[OPTION...] KEY (CMD [ARG...] | -c|--command STRING)",
    .examples = examples,
    .own_exits = exits,
    .common_exits = codes,
    .operands = Operands::getopt,
    .add_options = bound<RawFlock, add_flock_options, execute>,
};

}  // namespace rlock::cli
