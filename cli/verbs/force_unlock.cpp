// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/force_unlock.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "base/log.h"
#include "cli/output/export.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "lock/abilities.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr DurationRule grace_rule{"--grace", Millis{0}, std::chrono::hours{24}, "10s"};

constexpr std::array<std::string_view, 2> examples{
    "rlock force-unlock -k stock --yes",
    "rlock force-unlock -k stock --grace 1m --token \"$TOKEN\"",
};

constexpr std::array exits{
    ExitLine{"0", "the holder released the lock, its lease ended, or the lock was broken"},
    ExitLine{"1", "the lock was free or has another holder; nothing was done"},
};

struct OutcomeText {
  std::string operator()(const ReleasedByHolder& end) const { return "released by " + describe(end.holder); }
  std::string operator()(const ForceExpired& end) const
  {
    return "revoked and expired; it was held by " + describe(end.holder);
  }
  std::string operator()(const Broken& end) const
  {
    const std::string job = end.job_was_over ? ", whose job was over" : ", whose job may still be running";
    return "broken; it was held by " + describe(end.holder) + job;
  }
  std::string operator()(const ForceFree&) const { return "free; nothing was done"; }
  std::string operator()(const ForceChanged& end) const
  {
    return "held by another holder, " + describe(end.holder) + "; nothing was done";
  }
};

std::string value_of(const Holder& data) { return copied_word(data.owner.text()); }

// Of a key that may hold the data of another program.
struct DataOutcomeText {
  std::string operator()(const ReleasedByHolder& end) const
  {
    return "gone, and not by this request; it held " + value_of(end.holder);
  }
  std::string operator()(const ForceExpired& end) const { return "expired; it held " + value_of(end.holder); }
  std::string operator()(const Broken& end) const
  {
    return "deleted; it held " + value_of(end.holder) + "; if that was a lock, its job may still be running";
  }
  std::string operator()(const ForceFree&) const { return "free; nothing was done"; }
  std::string operator()(const ForceChanged& end) const
  {
    return "holds another value, " + value_of(end.holder) + "; nothing was done";
  }
};

// `state` is held.
Result<Done> check_confirmed(const LockState& state, const ForceOptions& options)
{
  const Holder& holder = state.holders.front();
  if (!state.proven && !options.owner) {
    return Error{ErrorCode::config,
                 printable(options.name.text()) +
                     " holds data of another program, or a lock that nothing proves: it is deleted only with --token " +
                     value_of(holder)};
  }
  if (!options.confirmed) {
    return usage("add --token " + copied_word(holder.owner.text()) +
                 " to take the lock from this holder, or --yes to take it from any holder");
  }
  return Done{};
}

Result<Millis> resolve_grace(const RawForce& raw)
{
  Result<Millis> grace = raw.grace ? resolve_duration(*raw.grace, grace_rule) : default_force_grace;
  if (!grace || !raw.now) {
    return grace;
  }
  if (raw.grace && *grace > Millis{0}) {
    return usage("--now and --grace exclude each other (try --grace 10s alone)");
  }
  return Millis{0};
}

Result<RunEnd> print_outcome(const ForceOptions& options, const ForceEnd& end, bool proven = true)
{
  print(options.json ? force_json(options.name, end) : show_force(options.name, end, proven));
  return ended(exit_code_of_force(end));
}

void print_revoked(const LockName& name, const ForceHeld& held, bool listens)
{
  const std::string who =
      listens ? "its holder does not answer" : "no process answers for it, as for a lease of rlock acquire";
  const std::string end = held.lasts ? "it ends in " + show_roughly(*held.lasts) : "it never ends by itself";
  Log(Verbosity::normal)
      .notice(printable(name.text()) + " is revoked, " + who + ": " + end +
              ", unless it is released before (--now takes it away at once; its job may still be running)");
}

// `seen` held the lock a moment ago. Without --token the lock is taken from `seen` only: the operator has not seen a holder
// that comes later.
Result<RunEnd> take_from(const Holder& seen, const LockState& state, const ForceOptions& options,
                         const OpenedStore& opened)
{
  const ForceUnlockRequest order{
      .name = options.name,
      .mode = state.mode,
      .owner = options.owner.value_or(seen.owner),
      .by = options.by,
      .grace = options.grace,
      .server_timeout = opened.timeout,
      .revoked = [&options](const ForceHeld& held, bool listens) { print_revoked(options.name, held, listens); },
  };
  const Result<ForceEnd> end = force_unlock(*opened.store, order, *opened.clock, StopToken::never());
  if (!end) {
    return end.error();
  }
  return print_outcome(options, *end, state.proven);
}

// From the holder that --token names, or from each holder.
Result<RunEnd> take(const LockState& state, const ForceOptions& options, const OpenedStore& opened)
{
  if (options.owner) {
    return take_from(state.holders.front(), state, options, opened);
  }
  int worst = 0;
  for (const Holder& holder : state.holders) {
    Result<RunEnd> end = take_from(holder, state, options, opened);
    if (!end) {
      return end;
    }
    worst = std::max(worst, std::get<ExitWith>(*end).code);
  }
  return RunEnd{ExitWith{worst}};
}

// From the holders in `state`, which are not all of them when there are many.
Result<RunEnd> take_shown(const LockState& state, const ForceOptions& options, const OpenedStore& opened)
{
  if (!state.held()) {
    return print_outcome(options, ForceFree{});
  }
  for (const Holder& holder : state.proven ? state.holders : std::vector<Holder>{}) {
    Log(Verbosity::normal).notice(printable(options.name.text()) + " is held by " + describe(holder));
  }
  const Result<Done> may_take = check_confirmed(state, options);
  return may_take ? take(state, options, opened) : Result<RunEnd>(may_take.error());
}

Result<RunEnd> execute(const RawForce& raw, const Call& call)
{
  const Result<ForceOptions> options = resolve_force(raw, call.operands);
  if (!options) {
    return options.error();
  }
  const Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  return force_unlock(*options, *opened);
}

}  // namespace

void add_force_options(Options& options, RawForce& raw)
{
  add_key_options(options, raw.keys);
  options.text("--token", raw.token, "T", "take the lock only from this holder (status shows its token)");
  options.flag("--yes", raw.yes, "take the lock from all its holders, if the key is provably a lock");
  options.text("--grace", raw.grace, "DUR",
               {"how long the holder may be silent before its renewals are refused", default_force_grace});
  options.flag("--now", raw.now, "delete the lock at once; the job of the holder may still be running");
  options.flag("--json", raw.json, "one JSON object a line");
  add_server_options(options, raw.server);
}

Result<ForceOptions> resolve_force(const RawForce& raw, std::span<const std::string> operands)
{
  Result<LockName> name = resolve_key(raw.keys, operands);
  if (!name) {
    return name.error();
  }
  const Result<Millis> grace = resolve_grace(raw);
  if (!grace) {
    return grace.error();
  }
  if (raw.token && raw.token->empty()) {
    return usage("--token: the token is empty (rlock status shows it)");
  }
  return ForceOptions{
      .name = *std::move(name),
      .owner = raw.token ? std::optional(Owner::of(*raw.token)) : std::nullopt,
      .confirmed = raw.token || raw.yes,
      .grace = *grace,
      .json = raw.json,
  };
}

Result<RunEnd> force_unlock(const ForceOptions& options, const OpenedStore& opened)
{
  if (opened.store->force_unlock() == nullptr) {
    return not_offered(force_unlock_verb.name, opened.server);
  }
  for (;;) {
    const Result<LockState> state = opened.store->inspect(options.name, opened.limit());
    if (!state) {
      return state.error();
    }
    Result<RunEnd> end = take_shown(*state, options, opened);
    const bool that_was_all = options.owner || state->count <= state->holders.size();
    if (!end || that_was_all) {
      return end;
    }
  }
}

std::string show_force(const LockName& name, const ForceEnd& end, bool proven)
{
  const std::string text = proven ? std::visit(OutcomeText{}, end) : std::visit(DataOutcomeText{}, end);
  return printable(name.text()) + ": " + text + "\n";
}

ExitCode exit_code_of_force(const ForceEnd& end)
{
  const bool nothing_done = std::holds_alternative<ForceFree>(end) || std::holds_alternative<ForceChanged>(end);
  return nothing_done ? ExitCode::no : ExitCode::ok;
}

const Verb force_unlock_verb{
    .name = "force-unlock",
    .summary = "make the holder stop and release, or take the lock away",
    .synopsis = "[-k] KEY (--token T | --yes) [OPTION...]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawForce, add_force_options, execute>,
};

}  // namespace rlock::cli
