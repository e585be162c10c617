// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/force_unlock.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "base/log.h"
#include "cli/options/output.h"
#include "cli/options/take.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/dispatch.h"
#include "lock/event_log.h"
#include "lock/holder.h"

#include <algorithm>

namespace rlock::cli {
namespace {

struct OutcomeText {
  std::string operator()(const ReleasedByHolder& end) const
  {
    return "released by " + describe(end.holder) + (is_run(end.holder) ? "; its job is dead" : "");
  }
  std::string operator()(const ForceExpired& end) const
  {
    return (end.revoked ? "revoked and expired; it was held by " : "expired; it was held by ") + describe(end.holder);
  }
  std::string operator()(const Broken& end) const
  {
    const std::string job = end.job_was_over ? ", whose job was over" : job_may_run;
    return "broken; it was held by " + describe(end.holder) + job;
  }
  std::string operator()(const ForceFree&) const { return "free; nothing was done"; }
  std::string operator()(const ForceChanged& end) const
  {
    return "held by another holder, " + describe(end.holder) + "; nothing was done";
  }
  std::string operator()(const StillStopping& end) const
  {
    return describe(end) + "; --now takes the lock, and the job may run on";
  }
};

std::string string_value_of(const Holder& data) { return copied_word(data.owner.text()); }

// Of a key that may hold the data of another program.
struct DataOutcomeText {
  std::string operator()(const ReleasedByHolder& end) const
  {
    return "gone, and not by this request; it held " + string_value_of(end.holder);
  }
  std::string operator()(const ForceExpired& end) const { return "expired; it held " + string_value_of(end.holder); }
  std::string operator()(const Broken& end) const
  {
    return "deleted; it held " + string_value_of(end.holder) + "; if that was a lock, its job may still be running";
  }
  std::string operator()(const ForceFree&) const { return "free; nothing was done"; }
  std::string operator()(const ForceChanged& end) const
  {
    return "holds another value, " + string_value_of(end.holder) + "; nothing was done";
  }
  std::string operator()(const StillStopping& end) const { return OutcomeText{}(end); }
};

// `state` is held.
Result<Done> check_confirmed(const LockState& state, const ForceOptions& options)
{
  const Holder& holder = state.holders.front();
  if (!state.proven && !options.owner) {
    return Error{ErrorCode::config,
                 printable(state.name.text()) +
                     " holds data of another program, or a lock that nothing proves: it is deleted only with --token " +
                     string_value_of(holder)};
  }
  if (!options.confirmed) {
    return usage("add --token " + copied_word(holder.owner.text()) +
                 " to take the lock from this holder, or --yes to take it from any holder");
  }
  return Done{};
}

void print_revoked(const LockName& name, const ForceHeld& held, bool listens)
{
  const std::string who = listens ? "its holder does not answer" : no_process_answers;
  const std::string end =
      held.lasts ? "the lock ends in " + show_roughly(*held.lasts) : "the lock never ends by itself";
  Log(Verbosity::normal)
      .notice(printable(name.text()) + " is revoked, " + who + ": " + end +
              ", unless the holder releases it before (--now takes the lock away at once, although the holder's job "
              "may still be running)");
}

bool is_spared(const Holder& holder, const ForceOptions& options)
{
  return options.older_than && (!holder.age || *holder.age < *options.older_than);
}

// "held by alice@web1 (pid 71) for 12s, less than --older-than 1h; nothing was done"
std::string spared_text(const Holder& holder, bool proven, Millis older_than)
{
  const std::string what = proven ? "held by " + describe(holder) : "holds " + string_value_of(holder);
  const std::string since = holder.age
                                ? " for " + show_roughly(*holder.age) + ", less than --older-than " + show(older_than)
                                : ", for how long is not known; --older-than spares it";
  return what + since + "; nothing was done";
}

// For a program it is as another holder: it has the lock, and nothing was done.
void print_spared(const Holder& holder, const LockState& state, const ForceOptions& options)
{
  const std::string text = spared_text(holder, state.proven, *options.older_than);
  print(options.json ? force_json(state.name, ForceChanged{holder}, options.reason)
                     : printable(state.name.text()) + ": " + text + "\n");
}

// What became of the holders that were shown.
struct Taken {
  ExitCode code;
  bool any;  // a holder lost the lock
};

Taken note_end(const ForceEnd& end, const LockState& state, const ForceOptions& options)
{
  print(options.json ? force_json(state.name, end, options.reason) : show_force(state.name, end, state.proven));
  const ExitCode code = exit_code_of_force(end);
  return {.code = code, .any = code == ExitCode::ok};
}

ForceUnlockRequest request_for(const Owner& owner, const LockState& state, const ForceOptions& options,
                               const OpenedStore& opened)
{
  return {
      .name = state.name,
      .kind = as_inspected(state.kind),
      .owner = owner,
      .by = text_of({.by = options.by, .reason = options.reason}),
      .grace = options.grace,
      .server_timeout = opened.timeout,
      .revoked = [name = state.name](const ForceHeld& held, bool listens) { print_revoked(name, held, listens); },
  };
}

// From those of the holders in `state` that the operator means. An owner id is of one acquisition, so the age that was seen is
// that of the hold which the server takes; a holder that comes later is not taken, because the operator has not seen it.
Result<Taken> take(const LockState& state, const ForceOptions& options, const OpenedStore& opened)
{
  std::vector<ForceUnlockRequest> requests;
  bool is_shown = false;
  for (const Holder& holder : state.holders) {
    if (options.owner && holder.owner != *options.owner) {
      continue;
    }
    is_shown = true;
    if (is_spared(holder, options)) {
      print_spared(holder, state, options);
    } else {
      requests.push_back(request_for(holder.owner, state, options, opened));
    }
  }
  if (!is_shown && options.older_than) {
    return note_end(ForceChanged{state.holders.front()}, state, options);
  }
  if (!is_shown) {
    requests.push_back(request_for(*options.owner, state, options, opened));  // there may be many holders
  }
  Taken taken{.code = requests.empty() ? ExitCode::busy : ExitCode::ok, .any = false};
  const auto done =
      force_unlock_all(*opened.store, requests, *opened.clock, StopToken::never(), [&](const ForceEnd& end) {
        const Taken one = note_end(end, state, options);
        taken = {.code = std::max(taken.code, one.code), .any = taken.any || one.any};
      });
  return done ? Result(taken) : done.error();
}

// From the holders in `state`, which are not all of them when there are many.
Result<Taken> take_shown(const LockState& state, const ForceOptions& options, const OpenedStore& opened)
{
  if (!state.held()) {
    return note_end(ForceFree{}, state, options);
  }
  if (const HolderInfo* const freeze = freeze_of(state)) {
    Log(Verbosity::normal)
        .notice(printable(state.name.text()) + " is " + freeze_text(*freeze, state.ttl, wall_clock_ms()) +
                "; no job runs under it (rlock thaw " + copied_word(state.name.text()) + opened.server_option +
                " ends that)");
    if (options.json) {
      print(force_json(state.name, ForceChanged{state.holders.front()}, options.reason));
    }
    return Taken{.code = ExitCode::no, .any = false};
  }
  for (const Holder& holder : state.proven ? state.holders : std::vector<Holder>{}) {
    Log(Verbosity::normal).notice(printable(state.name.text()) + " is held by " + describe(holder));
  }
  const Result<Done> may_take = check_confirmed(state, options);
  return may_take ? take(state, options, opened) : Result<Taken>(may_take.error());
}

Result<RunEnd> execute(const RawForce& raw, const Call& call)
{
  ASSIGN_OR_RETURN(const auto name, resolve_key(raw.keys, call.operands));
  ForceOptions options = raw.options;
  options.by = own_identity(call.environment.all());
  ASSIGN_OR_RETURN(const auto opened, open_server(raw.server, call.environment));
  return force_unlock(name, options, opened);
}

Result<Done> read_token(const Given& given, ForceOptions& options)
{
  options.owner = Owner::of(given.value);
  options.confirmed = true;
  return given.value.empty() ? usage("--token: the token is empty (rlock status shows it)") : Result(Done{});
}

Result<Done> take_now(const Given&, ForceOptions& options)
{
  options.grace = Millis{0};
  return Done{};
}

constexpr OptionRow<ForceOptions> force_rows[] = {
    {{.names = "--token", .value = "T", .help = "take the lock only from this holder (status shows its token)"},
     read_token},
    {{.names = "--yes", .help = "take the lock from all its holders, if the key is provably a lock"},
     set<&ForceOptions::confirmed>},
    {{.names = "--grace",
      .value = "DUR",
      .help = {"wait so long for an answer of the holder; then its lock may run out", default_force_grace},
      .range = Durations{Millis{0}, std::chrono::hours{24}, "10s"},
      .excludes = {"--now", " (try --grace 10s alone)"},
      .is_neutral = is_no_time},
     set<&ForceOptions::grace>},
    {{.names = "--older-than",
      .value = "DUR",
      .help = "take the lock only from a holder that has held it for so long, by the server's clock; a foreign holder, "
              "whose age is not known, is spared",
      .range = Durations{Millis{1}, longest_duration, "1h"}},
     set<&ForceOptions::older_than>},
    {{.names = "--now", .help = "delete the lock at once; the job of the holder may still be running"}, take_now},
    {{.names = "--reason", .value = "TEXT", .help = "why, for the job that is stopped and for events and history"},
     [](const Given& given, ForceOptions& options) { return read_text(given, options.reason); }},
    {{.names = "--json", .help = "one JSON object a line"}, set<&ForceOptions::json>},
};

}  // namespace

void add_force_options(OptionTable& options, RawForce& raw)
{
  add_key_options(options, raw.keys);
  options.add(force_rows, raw.options);
  add_utc_option(options);
  add_server_options(options, raw.server);
}

Result<RunEnd> force_unlock(const LockName& name, const ForceOptions& options, const OpenedStore& opened)
{
  for (;;) {
    ASSIGN_OR_RETURN(const auto state, opened.store->inspect(name, opened.limit()));
    ASSIGN_OR_RETURN(const auto taken, take_shown(state, options, opened));
    if (options.owner || state.count <= state.holders.size() || !taken.any) {
      return ended(taken.code);
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
  if (std::holds_alternative<StillStopping>(end)) {
    return ExitCode::busy;
  }
  const bool nothing_done = std::holds_alternative<ForceFree>(end) || std::holds_alternative<ForceChanged>(end);
  return nothing_done ? ExitCode::no : ExitCode::ok;
}

const Verb force_unlock_verb{
    .name = "force-unlock",
    .summary = "make the holder stop and release, or take the lock away",
    .synopsis = "[-k] KEY (--token T | --yes) [OPTION...]",
    .examples = {"rlock force-unlock -k stock --yes",
                 "rlock force-unlock -k stock --yes --reason 'moving the database'",
                 "rlock force-unlock -k stock --yes --older-than 2h  # spares the next holder",
                 "rlock force-unlock -k stock --grace 1m --token \"$TOKEN\""},
    .own_exits = {{ExitCode::ok, "the holder released the lock, its lease ended, or the lock was broken"},
                  {ExitCode::no, "the lock was free or has another holder; nothing was done"},
                  {ExitCode::busy,
                   "the holder is younger than --older-than, or what it was held for has not ended: after KILL, or "
                   "after TERM, if rlock acquire watches a script without --export"}},
    .add_options = bound<RawForce, add_force_options, execute>,
};

}  // namespace rlock::cli
