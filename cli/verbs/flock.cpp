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
struct UnsupportedOption {
  const char* names;
  const char* value;  // nullptr: a flag
  const char* why;
};
constexpr std::array unsupported{
    UnsupportedOption{"-F,--no-fork", nullptr, "somebody has to renew the lock while the command runs (leave it out)"},
    UnsupportedOption{"--fcntl", nullptr, "a key has one kind of lock, which -s and -x share (leave it out)"},
    UnsupportedOption{"--start", "N", "a key has no bytes (lock a key for each part: rlock flock stock:1 CMD)"},
    UnsupportedOption{"--length", "N", "a key has no bytes (lock a key for each part: rlock flock stock:1 CMD)"},
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
      names, nullptr, [&raw, kind] { raw.kind = kind; }, help);
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

// -u: what this job's own rflock holds is let go of before the job is over.
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

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawFlock>();
  add_flock_options(options, *raw);
  return [raw](const Call& call) { return execute(*raw, call); };
}

}  // namespace

void add_flock_options(Options& options, RawFlock& raw)
{
  add_kind(options, "-s,--shared", raw, FlockKind::shared, "with others who share");
  add_kind(options, "-x,-e,--exclusive", raw, FlockKind::exclusive, "alone (the default)");
  add_kind(options, "-u,--unlock", raw, FlockKind::none,
           "let go, from within the command, of what it runs under; then run CMD, if there is one");
  options.flag("-n,--nb,--nonblock,--nonblocking", raw.no_wait, "give up at once when it is busy");
  options.text("-w,--wait,--timeout", raw.wait, "SECS", "give up after SECS, 0.5 or 5m; 0 is -n (wait for ever)");
  options.text("-E,--conflict-exit-code", raw.busy_code, "N", "what a busy lock returns (1)");
  options.flag("-o,--close", raw.close,
               "the lock is over with the command; else whatever the command leaves behind keeps "
               "it, until it ends");
  options.flag("--verbose", raw.verbose, "say on stderr what is done, and why not");
  options.flag("-V,--version", raw.wants_version, "print the version and exit");
  add_prefix_option(options, raw.keys);
  options.text("--ttl", raw.ttl, "DUR", "how long the lock outlives a dead rlock (30s)");
  add_label_option(options, raw.label);
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
  Result<LockName> name = resolve_key(keys, {});
  if (!name) {
    return name.error();
  }
  Result<std::vector<std::string>> command = resolve_command(operands, environment);
  if (!command) {
    return command.error();
  }
  const Result<std::optional<Millis>> wait = resolve_wait(raw);
  if (!wait) {
    return wait.error();
  }
  const Result<int> busy_code = resolve_number(raw.busy_code.value_or("1"), busy_code_rule);
  if (!busy_code) {
    return busy_code.error();
  }
  const Result<Millis> ttl = raw.ttl ? resolve_duration(*raw.ttl, ttl_rule) : Result<Millis>(Millis{30'000});
  if (!ttl) {
    return ttl.error();
  }
  Result<std::string> label = resolve_label(raw.label);
  if (!label) {
    return label.error();
  }
  Result<ServerSpec> server = resolve_server(raw.server, environment);
  if (!server) {
    return server.error();
  }
  return RunRequest{.server = *std::move(server),
                    .names = {*std::move(name)},
                    .shards = {},
                    .mode = raw.kind == FlockKind::shared ? Mode{Reader{}} : Mode{Writer{}},
                    .ttl = *ttl,
                    .wait = *wait,
                    .busy_code = *busy_code,
                    .label = *std::move(label),
                    .compatibility = Compatibility::flock,
                    .argv = *std::move(command),
                    .environment = environment.all(),
                    .leftovers = raw.close ? Leftovers::leave : Leftovers::until_pipe_closes,
                    .max_runtime = std::nullopt};
}

const Verb flock_verb{
    .name = "flock",
    .summary = "like flock(1), with a key where the file was; also called rflock",
    .synopsis = "[OPTION...] KEY (CMD [ARG...] | -c|--command STRING)",
    .examples = examples,
    .exits = exits,
    .operands = Operands::getopt,
    .add_options = add_options,
};

}  // namespace rlock::cli
