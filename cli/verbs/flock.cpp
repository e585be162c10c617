// SPDX-License-Identifier: Apache-2.0
// rlock flock: flock(1) with a key in the place of the file.
#include "cli/verbs/flock.h"

#include "base/duration.h"
#include "cli/help/help.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/token_lock.h"
#include "run/environment.h"
#include "run/run.h"

#include <algorithm>
#include <cctype>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

// Of -s, -x and -u the last one counts.
template <FlockKind kind>
Result<Done> be(const Given&, RawFlock& raw)
{
  raw.kind = kind;
  return Done{};
}

constexpr OptionRow<RawFlock> flock_rows[] = {
    {{.names = "-s,--shared", .help = "share the lock with other -s holders", .excludes = {"--exclusive,--unlock"}},
     be<FlockKind::shared>},
    {{.names = "-x,-e,--exclusive", .help = "hold the lock alone (the default)", .excludes = {"--unlock"}},
     be<FlockKind::exclusive>},
    {{.names = "-u,--unlock",
      .help = "inside the command: release the lock that the command runs under; then run CMD, if there is one"},
     be<FlockKind::none>},
    {{.names = "-n,--nb,--nonblock,--nonblocking",
      .help = "give up at once when the lock is busy",
      .excludes = {"--wait"}},
     set<&RawFlock::no_wait>},
    {{.names = "-w,--wait,--timeout",
      .value = "SECS",
      .help = "give up after SECS, such as 0.5 or 5m; 0 is the same as -n (without -w: wait for ever)",
      .range = Durations{0ms, longest_duration, "10"}},
     [](const Given& given, RawFlock& raw) { return read_value(given, raw.request.wait); }},
};

constexpr OptionRow<RunRequest> flock_busy_row = busy_code_row(ExitCode::no);

constexpr OptionRow<RawFlock> end_rows[] = {
    {{.names = "-o,--close",
      .help = "release the lock when the command ends; without -o, processes that the command leaves behind keep the "
              "lock until they end"},
     set<&RawFlock::close>},
    {{.names = "--verbose", .help = "print each step on stderr, and why rlock fails"},
     [](const Given& given, RawFlock& raw) { return read_value(given, raw.take.verbose); }},
    {{.names = "-V,--version", .help = "print the version and exit"}, set<&RawFlock::wants_version>},
};

constexpr OptionRow<RunRequest> flock_lease_rows[] = {
    {{.names = "--ttl",
      .value = "DUR",
      .help = {"how long the lock outlives a dead rlock", default_ttl},
      .range = ttl_range},
     set<&RunRequest::ttl>},
    {{.names = "--min-hold",
      .value = "DUR",
      .help =
          "keep the lock for at least DUR, even if the command ends earlier; rlock itself does not wait for that (0)",
      .range = Durations{0ms, longest_ttl, "1m"}},
     set<&RunRequest::min_hold>},
};

// An option of flock(1) that makes no sense for a key: it is refused with what to do instead.
struct Unsupported {};
Error refused(const Given& given, const char* why) { return usage(given.option->name() + ": " + why); }
Result<Done> refuse_part(const Given& given, Unsupported&)
{
  return refused(given, "a key has no bytes (lock a key for each part: rlock flock stock:1 CMD)");
}
constexpr OptionRow<Unsupported> unsupported_rows[] = {
    {{.names = "-F,--no-fork"},
     [](const Given& given, Unsupported&) -> Result<Done> {
       return refused(given, "rlock must stay to renew the lock while the command runs (leave it out)");
     }},
    {{.names = "--fcntl"},
     [](const Given& given, Unsupported&) -> Result<Done> {
       return refused(given, "a key has one kind of lock, which -s and -x share (leave it out)");
     }},
    {{.names = "--start", .value = "N"}, refuse_part},
    {{.names = "--length", .value = "N"}, refuse_part},
    {{.names = "--fd", .value = "N"},
     [](const Given& given, Unsupported&) -> Result<Done> {
       return refused(given, "a key is not held by a descriptor (try rlock acquire -k KEY --pid $$)");
     }},
};

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

// -u: a job releases the lock of its own rflock before the job is over.
Result<RunEnd> unlock(const RawFlock& raw, const Call& call)
{
  const RawTokenLock raw_lock{.keys = {.keys = {call.operands.front()}, .prefix = raw.take.keys.prefix},
                              .server = raw.take.server,
                              .token = std::nullopt,
                              .json = false,
                              .quiet = !raw.take.verbose};
  const Result<TokenLocks> token_locks = resolve_token_locks(raw_lock, {}, call.environment);
  const Result<RunEnd> end = token_locks ? release_token_locks(*token_locks, raw_lock, call) : token_locks.error();
  if (call.operands.size() == 1) {
    return token_locks ? end
                       : usage("-u: no lock is held under " + printable(call.operands.front()) +
                               " by this job (in a job of rflock, -u works; elsewhere use rlock release --token)");
  }
  ASSIGN_OR_RETURN(const auto command, resolve_command(call.operands, call.environment));
  // As with flock(1), the command runs even if the lock could not be released.
  return Error{ErrorCode::unreachable, exec_command(command, call.environment.all(), call.signals).text};
}

Result<RunEnd> execute(const RawFlock& raw, const Call& call)
{
  if (raw.wants_version) {
    print("rlock " + std::string(version()) + "\n");
    return ended(ExitCode::ok);
  }
  if (call.operands.empty()) {
    return usage("no key and no command (try rlock flock stock ./job.sh)");
  }
  if (raw.kind == FlockKind::none) {
    return unlock(raw, call);
  }
  ASSIGN_OR_RETURN(const auto request, resolve_flock(raw, call.operands, call.environment));
  name_in_log(raw.take, request.name());
  const BootClock clock;
  SystemRng rng;
  const Log log(raw.take.verbose ? Verbosity::verbose : Verbosity::quiet);
  return run(request, {clock, rng, call.signals, log});
}

}  // namespace

void add_flock_options(OptionTable& options, RawFlock& raw)
{
  static Unsupported unsupported;
  raw.request.busy_code = static_cast<int>(ExitCode::no);
  options.add(flock_rows, raw);
  options.add(wait_server_row, raw.request);
  options.add(flock_busy_row, raw.request);
  options.add(end_rows, raw);
  options.add(prefix_row, raw.take.keys);
  options.add(flock_lease_rows, raw.request);
  add_record_options(options, raw.request);
  options.add(notify_row, raw.request);
  add_log_format_option(options, raw.take);
  add_utc_option(options);
  add_server_options(options, raw.take.server);
  options.add(unsupported_rows, unsupported, "");
}

Result<RunRequest> resolve_flock(const RawFlock& raw, const std::vector<std::string>& operands,
                                 const Environment& environment)
{
  if (operands.size() == 1) {
    return no_command(operands.front());
  }
  ASSIGN_OR_RETURN(const auto name,
                   resolve_key_to_take({.prefix = raw.take.keys.prefix}, std::span(operands).first(1)));
  RunRequest request = raw.request;
  request.names = {name};
  request.kind = raw.kind == FlockKind::shared ? LockKind{Reader{}} : LockKind{Writer{}};
  request.compatibility = Compatibility::flock;
  request.leftovers = raw.close ? Leftovers::leave : Leftovers::until_pipe_closes;
  request.wait = raw.no_wait ? std::optional{0ms} : request.wait;
  const Result<Done> finished = finish_request(raw.take, environment, request);
  RETURN_IF_ERROR(assign(resolve_command(operands, environment), request.argv));
  RETURN_IF_ERROR(finished);
  return request;
}

const Verb flock_verb{
    .name = "flock",
    .summary = "like flock(1), with a key as the file; also called rflock",
    .synopsis = "[OPTION...] KEY (CMD [ARG...] | -c|--command STRING)",
    .examples = {"rlock flock -n -E 0 nightly /usr/local/bin/nightly", "rflock -w 10 deploy -c 'make && make install'",
                 "rflock -s report ./read.sh",
                 R"([ "$FLOCKER" != "$0" ] && exec env FLOCKER="$0" rflock -en stock "$0" "$@")"},
    .own_exits = {{"the command's own", "the command ran; 128 + n: signal n killed it"},
                  {ExitCode::no, "the lock is busy, with -n or -w (or -E N)"},
                  {ExitCode::usage, "usage error, such as an option of flock(1) that a key cannot have"},
                  {ExitCode::unavailable,
                   "the command cannot be executed or was not found; the server is unreachable or unfit"}},
    .common_exits = {ExitCode::internal, ExitCode::os, ExitCode::refused, ExitCode::config, ExitCode::lost},
    .operands = Operands::getopt,
    .add_options = bound<RawFlock, add_flock_options, execute>,
};

}  // namespace rlock::cli
