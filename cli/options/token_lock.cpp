// SPDX-License-Identifier: Apache-2.0
#include "cli/options/token_lock.h"

#include "base/exit_code.h"
#include "base/log.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "run/release_socket.h"

#include <algorithm>

namespace rlock::cli {
namespace {

constexpr const char* key_variable = "RLOCK_KEY";
constexpr const char* token_variable = "RLOCK_TOKEN";
constexpr const char* held_variable = "RLOCK_HELD";

bool is_typed(const RawClaim& typed, std::span<const std::string> operands)
{
  return !typed.keys.keys.empty() || !operands.empty();
}

Result<LockName> name_of(const RawClaim& typed, std::span<const std::string> operands, const Environment& environment)
{
  const std::string_view inherited = environment.value(key_variable);
  if (is_typed(typed, operands)) {
    return resolve_key(typed.keys, operands);
  }
  if (inherited.empty()) {
    return usage("no key: name the lock with -k KEY, or let RLOCK_KEY be set, as in a job (try -k stock)");
  }
  Result<LockName> name = LockName::parse(inherited);
  return name ? std::move(name) : Error{ErrorCode::config, std::string(key_variable) + ": " + name.error().text};
}

// The innermost of the lines "TOKEN KEY" that has this key; empty when none has.
std::string_view held_token(std::string_view held, std::string_view key)
{
  std::string_view found;
  while (!held.empty()) {
    const std::string_view line = held.substr(0, held.find('\n'));
    held.remove_prefix(std::min(held.size(), line.size() + 1));
    const auto space = line.find(' ');
    if (space != std::string_view::npos && line.substr(space + 1) == key) {
      found = line.substr(0, space);
    }
  }
  return found;
}

std::string_view inherited_token(const LockName& name, const Environment& environment)
{
  const std::string_view held = held_token(environment.value(held_variable), name.text());
  const std::string_view key = environment.value(key_variable);
  const bool concerns_it = key.empty() || key == name.text();
  return !held.empty() || !concerns_it ? held : environment.value(token_variable);
}

Result<Hold> hold_of(const RawClaim& typed, const LockName& name, const Environment& environment)
{
  const std::string_view token = typed.token ? *typed.token : inherited_token(name, environment);
  if (token.empty()) {
    return usage("--token: there is none for " + printable(name.text()) +
                 " (acquire prints it, and RLOCK_TOKEN has it in a job)");
  }
  return Hold::of_token(token);
}

Log log_of(const RawClaim& typed) { return Log(typed.quiet ? Verbosity::quiet : Verbosity::normal); }

Result<RunEnd> tell(const Claim& claim, const OpenedStore& opened, const RawClaim& typed)
{
  const Result<LockState> state = opened.store->inspect(claim.name, opened.limit());
  if (!state) {
    return state.error();
  }
  const auto is_us = [&](const Holder& holder) { return holder.owner == claim.hold.owner; };
  if (std::none_of(state->holders.begin(), state->holders.end(), is_us) && !is_shared(state->mode)) {
    return not_ours(claim, "expired or deleted", typed);  // in between
  }
  const bool alone = !is_shared(state->mode);  // else these are the others' as much as ours
  print(lease_json(claim.name, claim.hold, alone ? state->fence : 0, alone ? state->ttl : std::nullopt));
  return ended(ExitCode::ok);
}

}  // namespace

void describe_claim(Options& options, RawClaim& typed)
{
  describe_keys(options, typed.keys);
  options.text("--token", typed.token, "T", "what acquire printed (else RLOCK_TOKEN, as in a job)");
  options.flag("-q,--quiet", typed.quiet, "do not say what became of a lock that is not ours");
  describe_server(options, typed.server);
}

Result<Claim> resolve_claim(const RawClaim& typed, std::span<const std::string> operands,
                            const Environment& environment)
{
  Result<LockName> name = name_of(typed, operands, environment);
  if (!name) {
    return name.error();
  }
  Result<Hold> hold = hold_of(typed, *name, environment);
  if (!hold) {
    return hold.error();
  }
  return Claim{.name = *std::move(name), .hold = *std::move(hold)};
}

// A key that is gone, or no lock any more, is asked about as a plain one: what is noted beside it is the same for all.
Result<LockSpec> spec_of(const Claim& claim, Millis ttl, const OpenedStore& opened)
{
  const Result<LockState> state = opened.store->inspect(claim.name, opened.limit());
  if (!state && state.error().fault != ErrorCode::config) {
    return state.error();
  }
  return LockSpec{.name = claim.name, .mode = state ? state->mode : Mode{Plain{}}, .ttl = ttl, .who = {}, .once = {}};
}

std::string what_became_of(const NotOurs& found)
{
  return found.forced ? "force-unlocked by " + printable(found.forced->by) : found.what;
}

RunEnd not_ours(const Claim& claim, const std::string& what, const RawClaim& typed)
{
  log_of(typed).notice("the lock " + printable(claim.name.text()) + " is not ours: " + what);
  return ended(ExitCode::no);
}

Result<RunEnd> release_all(const Claim& claim, const RawClaim& typed, const Call& call)
{
  const Result<OpenedStore> opened = open_typed(typed.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  const Fd at_the_door = announce_release(claim.hold);  // until we return
  const Result<LockSpec> spec = spec_of(claim, Millis{0}, *opened);
  if (!spec) {
    return spec.error();
  }
  const Result<Release> released = opened->store->release(*spec, claim.hold, {}, opened->limit());
  if (!released) {
    return released.error();
  }
  if (const auto* lost = std::get_if<NotOurs>(&*released)) {
    return not_ours(claim, what_became_of(*lost), typed);
  }
  if (std::holds_alternative<Dequeued>(*released)) {
    return not_ours(claim, "it was still waited for", typed);
  }
  return ended(ExitCode::ok);
}

Result<RunEnd> affirm(const Claim& claim, Millis ttl, const RawClaim& typed, const Call& call)
{
  const Result<OpenedStore> opened = open_typed(typed.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  const Result<LockSpec> spec = spec_of(claim, ttl, *opened);
  if (!spec) {
    return spec.error();
  }
  const Result<Renewal> renewal = opened->store->renew_hold(*spec, claim.hold, opened->limit());
  if (!renewal) {
    return renewal.error();
  }
  if (const auto* lost = std::get_if<NotOurs>(&*renewal)) {
    return not_ours(claim, what_became_of(*lost), typed);
  }
  if (const auto& request = std::get<Kept>(*renewal).forced) {
    log_of(typed).notice(printable(request->by) + " wants the lock " + printable(claim.name.text()) +
                         " (force-unlock): release it soon");
  }
  return typed.json ? tell(claim, *opened, typed) : ended(ExitCode::ok);
}

}  // namespace rlock::cli
