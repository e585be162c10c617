// SPDX-License-Identifier: Apache-2.0
// flock(1) with a key where the file was.
#include "cli/verbs/flock.h"

#include "cli/help/version.h"
#include "cli/label.h"
#include "cli/options/limits.h"
#include "cli/options/token_lock.h"
#include "cli/output/logging.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"
#include "run/exec_command.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr DurationRule wait_rule{"--timeout", 0ms, std::chrono::hours{10 * 366 * 24}, "10"};

constexpr std::array<std::string_view, 4> examples{
    "rlock flock -n -E 0 nightly /usr/local/bin/nightly",
    "rflock -w 10 deploy -c 'make && make install'",
    "rflock -s report ./read.sh",
    R"([ "$FLOCKER" != "$0" ] && exec env FLOCKER="$0" rflock -en stock "$0" "$@")",
};

constexpr std::array exits{
    ExitLine{"the command's own", "it ran; 128 + n: killed by signal n"},
    ExitLine{"1", "busy, with -n or -w (or -E N)"},
    ExitLine{"64", "usage; what flock(1) has and a key cannot have among it"},
    ExitLine{"69", "the command cannot be executed or was not found; the server unreachable or unfit"},
    ExitLine{"70, 71", "internal error; the operating system refused (fork, memory)"},
    refused_exit,
    config_exit,
    ExitLine{"121", "the lock was lost or taken by force while the command ran"},
};

// What is part of flock(1) and makes no sense for a key, and what does instead.
struct Unfit {
  const char* names;
  const char* value;  // nullptr: a flag
  const char* why;
};
constexpr std::array unfit{
    Unfit{"-F,--no-fork", nullptr, "somebody has to renew the lock while the command runs (leave it out)"},
    Unfit{"--fcntl", nullptr, "a key has one kind of lock, which -s and -x share (leave it out)"},
    Unfit{"--start", "N", "a key has no bytes (lock a key for each part: rlock flock stock:1 CMD)"},
    Unfit{"--length", "N", "a key has no bytes (lock a key for each part: rlock flock stock:1 CMD)"},
    Unfit{"--fd", "N", "a key is not held by a descriptor (try rlock acquire -k KEY --pid $$)"},
};

void describe_unfit(Options& options, RawFlock& typed)
{
  Options hidden = options.in("");
  for (const Unfit& option : unfit) {
    hidden.each(
        option.names, option.value,
        [&typed, &option] {
          const std::string_view names = option.names;
          typed.unfit = std::string(names.substr(names.rfind(',') + 1)) + ": " + option.why;
        },
        "");
  }
}

// Of -s, -x and -u the last one counts.
void add_kind(Options& options, const char* names, RawFlock& typed, FlockKind kind, const char* help)
{
  options.each(
      names, nullptr, [&typed, kind] { typed.kind = kind; }, help);
}

Error no_command(const std::string& key)
{
  const bool is_number = std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (is_number) {
    return usage("a descriptor cannot be locked: " + key +
                 " is a key only with a command behind it (for a part of a script: rlock acquire -k KEY --pid $$)");
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

Result<std::optional<Millis>> resolve_wait(const RawFlock& typed)
{
  if (typed.wait) {
    const Result<Millis> wait = resolve_duration(*typed.wait, wait_rule);
    if (!wait) {
      return wait.error();
    }
    return std::optional{typed.no_wait ? 0ms : *wait};
  }
  return typed.no_wait ? std::optional{0ms} : std::nullopt;
}

// -u: what this job's own rflock holds is let go of before the job is over.
Result<RunEnd> unlock(const RawFlock& typed, const Call& call)
{
  const RawClaim claimed{.keys = {.keys = {call.operands.front()}, .prefix = typed.keys.prefix},
                         .server = typed.server,
                         .token = std::nullopt,
                         .json = false,
                         .quiet = !typed.verbose};
  const Result<Claim> claim = resolve_claim(claimed, {}, call.environment);
  const Result<RunEnd> end = claim ? release_all(*claim, claimed, call) : claim.error();
  if (call.operands.size() == 1) {
    return claim ? end
                 : usage("-u: nothing is held under " + printable(call.operands.front()) +
                         " here (inside a job of rflock's; elsewhere rlock release --token)");
  }
  const auto command = resolve_command(call.operands, call.environment);
  if (!command) {
    return command.error();
  }
  // As with flock(1), where an unlocked file keeps nobody from running anything.
  return Error{ErrorCode::unreachable, exec_command(*command, call.environment.all(), call.signals).text};
}

Result<RunEnd> act(const RawFlock& typed, const Call& call)
{
  if (typed.wants_version) {
    print_version();
    return ended(ExitCode::ok);
  }
  if (!typed.unfit.empty()) {
    return usage(typed.unfit);
  }
  if (call.operands.empty()) {
    return usage("no key and no command (try rlock flock stock ./job.sh)");
  }
  if (typed.kind == FlockKind::none) {
    return unlock(typed, call);
  }
  const Result<RunRequest> request = resolve_flock(typed, call.operands, call.environment);
  const Result<Done> logging = use_log_format(typed.log_format, request ? &*request->names.begin() : nullptr);
  if (!logging) {
    return logging.error();
  }
  if (!request) {
    return request.error();
  }
  const BootClock clock;
  SystemRng rng;
  const Log log(typed.verbose ? Verbosity::verbose : Verbosity::quiet);
  return run(*request, {clock, rng, call.signals, log});
}

Act describe_verb(Options& options)
{
  auto typed = std::make_shared<RawFlock>();
  describe_flock(options, *typed);
  return [typed](const Call& call) { return act(*typed, call); };
}

}  // namespace

void describe_flock(Options& options, RawFlock& typed)
{
  add_kind(options, "-s,--shared", typed, FlockKind::shared, "with others who share");
  add_kind(options, "-x,-e,--exclusive", typed, FlockKind::exclusive, "alone (the default)");
  add_kind(options, "-u,--unlock", typed, FlockKind::none,
           "let go, from within the command, of what it runs under; then run CMD, if there is one");
  options.flag("-n,--nb,--nonblock,--nonblocking", typed.no_wait, "give up at once when it is busy");
  options.text("-w,--wait,--timeout", typed.wait, "SECS", "give up after SECS, 0.5 or 5m; 0 is -n (wait for ever)");
  options.text("-E,--conflict-exit-code", typed.busy_code, "N", "what a busy lock returns (1)");
  options.flag("-o,--close", typed.close,
               "the lock is over with the command; else whatever the command leaves behind keeps "
               "it, until it ends");
  options.flag("--verbose", typed.verbose, "say on stderr what is done, and why not");
  options.flag("-V,--version", typed.wants_version, "print the version and exit");
  describe_prefix(options, typed.keys);
  options.text("--ttl", typed.ttl, "DUR", "how long the lock outlives a dead rlock (30s)");
  describe_label(options, typed.label);
  describe_log_format(options, typed.log_format);
  describe_server(options, typed.server);
  describe_unfit(options, typed);
}

Result<RunRequest> resolve_flock(const RawFlock& typed, const std::vector<std::string>& operands,
                                 const Environment& environment)
{
  if (operands.size() == 1) {
    return no_command(operands.front());
  }
  RawKeys keys = typed.keys;
  keys.keys = {operands.front()};
  Result<LockName> name = resolve_key(keys, {});
  if (!name) {
    return name.error();
  }
  Result<std::vector<std::string>> command = resolve_command(operands, environment);
  if (!command) {
    return command.error();
  }
  const Result<std::optional<Millis>> wait = resolve_wait(typed);
  if (!wait) {
    return wait.error();
  }
  const Result<int> busy_code = resolve_number(typed.busy_code.value_or("1"), busy_code_rule);
  if (!busy_code) {
    return busy_code.error();
  }
  const Result<Millis> ttl = typed.ttl ? resolve_duration(*typed.ttl, ttl_rule) : Result<Millis>(Millis{30'000});
  if (!ttl) {
    return ttl.error();
  }
  Result<std::string> label = resolve_label(typed.label);
  if (!label) {
    return label.error();
  }
  Result<ServerSpec> server = resolve_server(typed.server, environment);
  if (!server) {
    return server.error();
  }
  return RunRequest{.server = *std::move(server),
                    .names = {*std::move(name)},
                    .shards = {},
                    .mode = typed.kind == FlockKind::shared ? Mode{Reader{}} : Mode{Writer{}},
                    .ttl = *ttl,
                    .wait = *wait,
                    .busy_code = *busy_code,
                    .label = *std::move(label),
                    .compatibility = Compatibility::flock,
                    .argv = *std::move(command),
                    .environment = environment.all(),
                    .leftovers = typed.close ? Leftovers::leave : Leftovers::until_pipe_closes,
                    .max_runtime = std::nullopt};
}

const Verb flock_verb{
    .name = "flock",
    .summary = "like flock(1), with a key where the file was; also called rflock",
    .synopsis = "[OPTION...] KEY (CMD [ARG...] | -c|--command STRING)",
    .examples = examples,
    .exits = exits,
    .operands = Operands::getopt,
    .describe = describe_verb,
};

}  // namespace rlock::cli
