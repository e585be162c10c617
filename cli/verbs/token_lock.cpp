// SPDX-License-Identifier: Apache-2.0
// rlock check, renew and release: what a script does with a lock that it names by its token.
#include "cli/verbs/token_lock.h"

#include "base/duration.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "cli/options/output.h"
#include "cli/options/take.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "run/left_keeper.h"
#include "run/release.h"
#include "run/release_socket.h"
#include "run/verdict.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace rlock::cli {
namespace {

// Of the innermost hold of this key; empty when there is none.
std::string_view held_token(std::string_view held, std::string_view key)
{
  std::string_view token;
  for (const HeldLockLine& line : parse_held_locks(held)) {
    token = line.key == key ? line.token : token;
  }
  return token;
}

std::string_view inherited_token(const LockName& name, const Environment& environment)
{
  const std::string_view held = held_token(environment.value(held_locks_variable), name.text());
  const std::string_view key = environment.value(key_variable);
  const bool concerns_it = key.empty() || key == name.text();
  return !held.empty() || !concerns_it ? held : environment.value(token_variable);
}

Result<LockName> inherited_name(std::string_view key, std::string_view variable)
{
  Result<LockName> name = LockName::parse(key);
  return name ? std::move(name) : Error{ErrorCode::config, std::string(variable) + ": " + name.error().text};
}

// The locks that were taken together under --token, or under the token of RLOCK_KEY. The lock of RLOCK_KEY, if RLOCK_HELD does not know
// --token: the script may have changed RLOCK_HELD.
Result<std::vector<LockName>> inherited_names(const RawTokenLock& raw, const Environment& environment)
{
  std::vector<LockName> names;
  std::string_view token = raw.token ? std::string_view(*raw.token) : std::string_view();
  const std::string_view key = environment.value(key_variable);
  if (!raw.token && !key.empty()) {
    ASSIGN_OR_RETURN(const auto first, inherited_name(key, key_variable));
    token = inherited_token(first, environment);
    names.push_back(first);
  }
  for (const HeldLockLine& line : parse_held_locks(environment.value(held_locks_variable))) {
    if (line.token == token && !token.empty()) {
      ASSIGN_OR_RETURN(auto name, inherited_name(line.key, held_locks_variable));
      names.push_back(std::move(name));
    }
  }
  if (names.empty() && !key.empty()) {
    ASSIGN_OR_RETURN(auto name, inherited_name(key, key_variable));
    names.push_back(std::move(name));
  }
  if (names.empty()) {
    return usage(
        "no key, and this shell holds no lock (eval the output of rlock acquire --export first, or give -k KEY and "
        "--token TOKEN, which rlock acquire printed)");
  }
  return names;
}

Result<std::vector<LockName>> names_of(const RawTokenLock& raw, std::span<const std::string> operands,
                                       const Environment& environment)
{
  const bool names_key = !raw.keys.keys.empty() || !operands.empty();
  ASSIGN_OR_RETURN(const auto names, names_key ? resolve_keys(raw.keys, operands) : inherited_names(raw, environment));
  std::vector<LockName> each_once;
  for (const LockName& name : names) {
    if (std::ranges::find(each_once, name) == each_once.end()) {
      each_once.push_back(name);
    }
  }
  return each_once;
}

Result<Hold> hold_of(const RawTokenLock& raw, const LockName& name, const Environment& environment)
{
  const std::string_view token = raw.token ? *raw.token : inherited_token(name, environment);
  if (token.empty()) {
    return usage("--token: there is none for " + printable(name.text()) +
                 " (acquire prints it; in a job, RLOCK_TOKEN has it)");
  }
  return Hold::of_token(token);
}

// RLOCK_SHARD is about the innermost lock, as RLOCK_KEY and RLOCK_TOKEN are. A shell may have RLOCK_SHARD_NAME of an earlier lock.
std::optional<Shard> shard_of(const LockName& name, const Hold& hold, const Environment& environment)
{
  const std::string_view digits = environment.value(shard_variable);
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool is_number = failed == std::errc{} && end == digits.data() + digits.size();
  const bool is_about_it =
      environment.value(key_variable) == name.text() && environment.value(token_variable) == hold.token();
  if (!is_number || !is_about_it) {
    return std::nullopt;
  }
  const std::string shard_name(environment.value(shard_name_variable));
  return Shard{.number = number, .name = name.text().ends_with(":" + shard_name) ? shard_name : ""};
}

Log log_of(const RawTokenLock& raw) { return Log(raw.quiet ? Verbosity::quiet : Verbosity::normal); }

RunEnd report_not_held(const TokenLock& token_lock, const std::string& reason, const RawTokenLock& raw)
{
  log_of(raw).notice("the lock " + printable(token_lock.name.text()) + " is not held under this token: " + reason);
  return ended(ExitCode::no);
}

// Why a hold that a server does not know is gone: the event log may still have the release of the owner's last hold. A quorum has no
// such log.
std::string why_gone(const TokenLock& token_lock, const NotHeld& found, const OpenedStore& opened)
{
  if (!opened.store->traits().has_event_log) {
    return "expired, deleted or released";
  }
  const EventLogQuery query{.name = token_lock.name, .after = {}};
  const auto logs = opened.store->read_logs({&query, 1}, opened.limit());
  const bool was_released =
      logs && std::ranges::any_of(logs->front(), [&](const EventLogEntry& entry) {
        return entry.kind == EventKind::released && !entry.left && entry.owner == token_lock.hold.owner.text();
      });
  return was_released ? "it was released" : text_of(found);
}

struct LockOnServer {
  LockSpec spec;
  std::optional<bool> has_owner;  // the owner of the token is a holder; nullopt: unknown, the answer leaves holders out
};

// With the kind of lock that the server has. A key that is gone or holds no lock counts as a plain lock: the notes that the
// scripts keep beside the key are the same for all kinds.
Result<LockOnServer> find_lock(const TokenLock& token_lock, Millis ttl, const OpenedStore& opened)
{
  const Result<LockState> state = opened.store->inspect(token_lock.name, opened.limit());
  if (!state && state.error().code != ErrorCode::config) {
    return state.error();
  }
  const bool leaves_some_out = state && state->count > state->holders.size();
  LockOnServer found{.spec = {.name = token_lock.name,
                              .kind = state ? as_inspected(state->kind) : LockKind{Plain{}},
                              .ttl = ttl,
                              .who = {},
                              .once = {}},
                     .has_owner = leaves_some_out ? std::nullopt : std::optional(false)};
  for (const Holder& holder : state ? state->holders : std::vector<Holder>{}) {
    if (holder.owner == token_lock.hold.owner) {
      found.has_owner = true;
      found.spec.who.history = holder.info ? holder.info->history : std::nullopt;
    }
  }
  return found;
}

Result<bool> has_owner(const LockOnServer& lock, const TokenLock& token_lock, const OpenedStore& opened)
{
  if (lock.has_owner) {
    return *lock.has_owner;
  }
  ASSIGN_OR_RETURN(const auto answer,
                   opened.store->renew(lock.spec, token_lock.hold.owner, {.only_checks = true}, opened.limit()));
  return std::holds_alternative<Renewed>(answer);
}

Result<RunEnd> print_lease(const TokenLock& token_lock, const OpenedStore& opened, const RawTokenLock& raw)
{
  ASSIGN_OR_RETURN(const auto state, opened.store->inspect(token_lock.name, opened.limit()));
  const auto is_owner = [&](const Holder& holder) { return holder.owner == token_lock.hold.owner; };
  if (std::none_of(state.holders.begin(), state.holders.end(), is_owner) && !kind_of(state.kind).is_shared) {
    return report_not_held(token_lock, text_of(NotHeld{}), raw);  // since it was renewed
  }
  const bool alone = !kind_of(state.kind).is_shared;  // else other holders share the fence and the ttl
  print(lease_json(token_lock.name, token_lock.hold, alone ? state.fence : 0, alone ? state.ttl : std::nullopt,
                   token_lock.shard));
  return ended(ExitCode::ok);
}

constexpr OptionRow<RawTokenLock> token_rows[] = {
    {{.names = "--token", .value = "T", .help = "the token that acquire printed (else RLOCK_TOKEN, which a job has)"},
     set<&RawTokenLock::token>},
    {{.names = "-q,--quiet", .help = "do not print why the token does not hold the lock"}, set<&RawTokenLock::quiet>},
};
constexpr OptionRow<bool> lease_json_row = json_row("print one JSON object for each lock that the token holds");

// Calls `act` for all locks, whatever it answers. The first error, else the first exit code that is not 0.
template <typename Act>
Result<RunEnd> for_each_lock(const TokenLocks& token_locks, Act act)
{
  Result<RunEnd> all = ended(ExitCode::ok);
  for (const TokenLock& each : token_locks) {
    const Result<RunEnd> end = act(each);
    const bool is_first_failure = all && (!end || std::get<ExitWith>(*all).code == 0);
    all = is_first_failure ? end : all;
  }
  return all;
}

// `announced`: the connections to keepers, open until all releases are over, because one keeper has all locks of a token.
Result<RunEnd> release_one(const TokenLock& token_lock, std::vector<Fd>& announced, const OpenedStore& opened,
                           const RawTokenLock& raw)
{
  ASSIGN_OR_RETURN(const auto lock, find_lock(token_lock, Millis{0}, opened));
  ASSIGN_OR_RETURN(const bool is_holder, has_owner(lock, token_lock, opened));
  // The keeper then releases its locks itself, so it is not told of a key that is not its own.
  const Fd& keeper = announced.emplace_back(is_holder ? announce_release(token_lock.hold) : Fd());
  ASSIGN_OR_RETURN(
      const auto released,
      opened.store->release(lock.spec, token_lock.hold, {.result = {.exit_code = raw.exit_code}}, opened.limit()));
  if (const auto* lost = std::get_if<NotHeld>(&released)) {
    return report_not_held(token_lock, text_of(*lost), raw);
  }
  if (std::holds_alternative<Dequeued>(released)) {
    return report_not_held(token_lock, "its owner was still waiting for it", raw);
  }
  if (raw.exit_code) {
    announce_exit_code(keeper, *raw.exit_code);
  }
  if (std::holds_alternative<Released>(released) && !keeper) {  // else the keeper does it
    SystemRng rng;
    keep_runs(*opened.store, lock.spec.name, lock.spec.who.history, raw.exit_code.value_or(0) == 0, opened.timeout,
              *opened.clock, rng, log_of(raw));
  }
  return ended(ExitCode::ok);
}

Result<RunEnd> renew_one(const TokenLock& token_lock, std::optional<Millis> ttl, const OpenedStore& opened,
                         const RawTokenLock& raw)
{
  ASSIGN_OR_RETURN(const auto lock, find_lock(token_lock, ttl.value_or(Millis{0}), opened));
  ASSIGN_OR_RETURN(const auto renewal,
                   opened.store->renew_hold(lock.spec, token_lock.hold, {.only_checks = !ttl}, opened.limit()));
  if (const auto* lost = std::get_if<NotHeld>(&renewal)) {
    const std::string reason = lost->is_unexplained() ? why_gone(token_lock, *lost, opened) : text_of(*lost);
    return report_not_held(token_lock, reason, raw);
  }
  if (const auto lasts = opened.store->lasts_without_keeper()) {
    RETURN_IF_ERROR(leave_keeper_of_leases(*opened.store, token_lock.name));
    log_of(raw).notice(kept_by_keeper(token_lock.name, *lasts));
  }
  if (const auto& request = std::get<Renewed>(renewal).forced) {
    log_of(raw).notice(request_text(request->by, token_lock.name, "release it soon"));
  }
  return raw.json ? print_lease(token_lock, opened, raw) : ended(ExitCode::ok);
}

}  // namespace

void add_token_lock_options(OptionTable& options, RawTokenLock& raw)
{
  add_key_options(options, raw.keys);
  options.add(token_rows, raw);
  add_server_options(options, raw.server);
}

Result<TokenLocks> resolve_token_locks(const RawTokenLock& raw, std::span<const std::string> operands,
                                       const Environment& environment)
{
  ASSIGN_OR_RETURN(const auto names, names_of(raw, operands, environment));
  TokenLocks locks;
  for (const LockName& name : names) {
    ASSIGN_OR_RETURN(auto hold, hold_of(raw, name, environment));
    const auto shard = shard_of(name, hold, environment);
    locks.push_back({.name = name, .hold = std::move(hold), .shard = shard});
  }
  return locks;
}

Result<RunEnd> release_token_locks(const TokenLocks& token_locks, const RawTokenLock& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto opened, open_server(raw.server, call.environment));
  std::vector<Fd> announced;
  return for_each_lock(token_locks, [&](const TokenLock& each) { return release_one(each, announced, opened, raw); });
}

namespace {

// Renews the locks for `ttl` from now; nullopt: only asks whether the token still holds them. With --json, prints one object for
// each that it holds. Exits with 1 if it does not hold one of them.
Result<RunEnd> renew_token_locks(const TokenLocks& token_locks, std::optional<Millis> ttl, const RawTokenLock& raw,
                                 const Call& call)
{
  ASSIGN_OR_RETURN(const auto opened, open_server(raw.server, call.environment));
  return for_each_lock(token_locks, [&](const TokenLock& each) { return renew_one(each, ttl, opened, raw); });
}

constexpr std::string_view token_not_held = "the token does not hold the lock, or one of several; stderr says why";

Result<RunEnd> execute_check(const RawTokenLock& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto token_locks, resolve_token_locks(raw, call.operands, call.environment));
  return renew_token_locks(token_locks, std::nullopt, raw, call);
}

void add_check_options(OptionTable& options, RawTokenLock& raw)
{
  add_token_lock_options(options, raw);
  options.add(lease_json_row, raw.json);
}

}  // namespace

const Verb check_verb{
    .name = "check",
    .summary = "ask whether a token, or the job around, still holds its lock",
    .synopsis = "[[-k] KEY...] [OPTION...]",
    .examples = {"rlock check || exit 1", "rlock check -k stock --token 8743c9c0-0795-4907-87fd-6c719a6b4586:1"},
    .own_exits = {{ExitCode::ok, "the token held the lock a moment ago"}, {ExitCode::no, token_not_held}},
    .add_options = bound<RawTokenLock, add_check_options, execute_check>,
};

namespace {

struct RawRenew {
  RawTokenLock lock;
  std::optional<Millis> lease;
};

Result<Millis> resolve_lease(const RawRenew& raw, const Environment& environment)
{
  if (raw.lease) {
    return *raw.lease;
  }
  const std::string_view inherited = environment.value(lease_variable);
  if (inherited.empty()) {
    return default_ttl;
  }
  Result<Millis> lease = duration_in(fixed_lease_range, std::string(inherited) + "ms", "--lease");
  return lease ? std::move(lease)
               : Error{ErrorCode::config, std::string(lease_variable) + ": '" + printable(inherited) +
                                              "' is no lease in milliseconds (try --lease 5m)"};
}

Result<RunEnd> execute_renew(const RawRenew& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto token_locks, resolve_token_locks(raw.lock, call.operands, call.environment));
  ASSIGN_OR_RETURN(const auto lease, resolve_lease(raw, call.environment));
  return renew_token_locks(token_locks, lease, raw.lock, call);
}

constexpr OptionRow<RawRenew> lease_row{
    {.names = "--lease",
     .value = "DUR",
     .help = [] { return "new length of the lease, from now (else RLOCK_LEASE_MS, " + show(default_ttl) + ")"; },
     .range = fixed_lease_range},
    set<&RawRenew::lease>};

void add_renew_options(OptionTable& options, RawRenew& raw)
{
  add_token_lock_options(options, raw.lock);
  options.add(lease_row, raw);
  options.add(lease_json_row, raw.lock.json);
}

}  // namespace

const Verb renew_verb{
    .name = "renew",
    .summary = "renew a lock by its token",
    .synopsis = "[[-k] KEY...] [OPTION...]",
    .examples = {"rlock renew --lease 5m", "rlock renew -k stock --token 8743c9c0-0795-4907-87fd-6c719a6b4586:1"},
    .own_exits = {{ExitCode::ok, "renewed; rlock never makes a lease shorter"}, {ExitCode::no, token_not_held}},
    .add_options = bound<RawRenew, add_renew_options, execute_renew>,
};

namespace {

Result<RunEnd> execute_release(const RawTokenLock& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto token_locks, resolve_token_locks(raw, call.operands, call.environment));
  return release_token_locks(token_locks, raw, call);
}

constexpr OptionRow<RawTokenLock> exit_code_row{
    {.names = "--exit-code",
     .value = "N",
     .help = "how the work under the lock ended, for rlock history; 0: it succeeded",
     .range = Numbers{0, 255, "$?"}},
    set<&RawTokenLock::exit_code>};

void add_release_options(OptionTable& options, RawTokenLock& raw)
{
  add_token_lock_options(options, raw);
  options.add(exit_code_row, raw);
}

}  // namespace

const Verb release_verb{
    .name = "release",
    .summary = "release a lock by its token",
    .synopsis = "[[-k] KEY...] [OPTION...]",
    .examples = {"rlock release", "rlock release --exit-code $?",
                 "rlock release -k stock --token 8743c9c0-0795-4907-87fd-6c719a6b4586:1"},
    .own_exits = {{ExitCode::ok, "released, now or before; its keeper ends silently"}, {ExitCode::no, token_not_held}},
    .add_options = bound<RawTokenLock, add_release_options, execute_release>,
};

}  // namespace rlock::cli
