// SPDX-License-Identifier: Apache-2.0
// rlock thaw: the end of a freeze before its time.
#include "base/log.h"
#include "base/text.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/freeze.h"
#include "cli/verbs/known_locks.h"
#include "run/environment.h"
#include "run/force.h"

#include <algorithm>
#include <iterator>
#include <variant>

namespace rlock::cli {

Result<bool> thaw(const LockState& state, const std::string& by, const OpenedStore& opened)
{
  const Result<ForceEnd> end = force_unlock(*opened.store,
                                            {.name = state.name,
                                             .kind = state.kind,
                                             .owner = state.holders.front().owner,
                                             .by = by,
                                             .grace = Millis{0},
                                             .server_timeout = opened.timeout,
                                             .revoked = {}},
                                            *opened.clock, StopToken::never());
  return end ? Result(std::holds_alternative<Broken>(*end)) : end.error();
}

namespace {

struct RawThaw {
  RawKeys keys;
  RawServer server;
  bool all = false;
  bool json = false;
};

// The locks that a name or a pattern means; of a pattern, those that are frozen.
Result<std::vector<LockState>> frozen_states_of(const Subject& subject, const OpenedStore& opened)
{
  if (const auto* const name = std::get_if<LockName>(&subject)) {
    const Result<LockState> state = opened.store->inspect(*name, opened.limit());
    return state ? Result(std::vector{*state}) : Result<std::vector<LockState>>(state.error());
  }
  auto states = opened.store->list(std::get<Pattern>(subject).glob, opened.per_answer());
  if (states) {
    std::erase_if(*states, [](const LockState& state) { return freeze_of(state) == nullptr; });
  }
  return states;
}

Result<bool> thaw_and_tell(const LockState& state, const std::string& by, const OpenedStore& opened, bool json)
{
  const HolderInfo* const freeze = freeze_of(state);
  ASSIGN_OR_RETURN(const auto thawed, freeze != nullptr ? thaw(state, by, opened) : Result(false));
  const std::string key = printable(state.name.text());
  if (json) {
    print(thawed ? freeze_json(state.name, *freeze, state.ttl, true)
                 : freeze_json(state.name, std::nullopt, std::nullopt, false));
  } else if (thawed) {
    print(key + " is thawed; it was " + freeze_text(*freeze, state.ttl, wall_clock_ms()) + "\n");
  } else {
    const bool is_held = state.held() && freeze == nullptr;
    Log(Verbosity::normal)
        .notice(key + " is not frozen" + (is_held ? ", it is held by " + describe(state.holders.front()) : ""));
  }
  return thawed;
}

std::string nothing_frozen(const RawThaw& raw, const Pattern& pattern)
{
  const std::string those = raw.keys.prefix.empty() ? "" : " that begins with " + printable(raw.keys.prefix);
  return "no lock" + (raw.all ? those : " that matches " + printable(pattern.glob)) + " is frozen";
}

Result<RunEnd> execute(const RawThaw& raw, const Call& call)
{
  ASSIGN_OR_RETURN(auto subjects, resolve_subjects(raw.keys, call.operands));
  if (raw.all != subjects.empty()) {
    return usage(raw.all ? "--all thaws every lock (leave out the keys)"
                         : "no key: name the locks, or a pattern (try rlock thaw --all)");
  }
  if (raw.all) {
    subjects.emplace_back(Pattern{resolve_pattern(raw.keys, "*")});
  }
  ASSIGN_OR_RETURN(const auto opened, open_server(raw.server, call.environment));
  bool all_thawed = true;
  std::vector<LockState> locks;  // each once, also where it is named twice, or by a name and a pattern
  for (const Subject& subject : subjects) {
    ASSIGN_OR_RETURN(const auto states, frozen_states_of(subject, opened));
    if (states.empty() && !raw.json) {
      Log(Verbosity::normal).notice(nothing_frozen(raw, std::get<Pattern>(subject)));
    }
    all_thawed = all_thawed && !states.empty();
    std::ranges::copy_if(states, std::back_inserter(locks), [&](const LockState& state) {
      return std::ranges::find(locks, state.name, &LockState::name) == locks.end();
    });
  }
  const std::string by = own_identity(call.environment.all());
  for (const LockState& lock : locks) {
    ASSIGN_OR_RETURN(const auto thawed, thaw_and_tell(lock, by, opened, raw.json));
    all_thawed = all_thawed && thawed;
  }
  return ended(all_thawed ? ExitCode::ok : ExitCode::no);
}

constexpr OptionRow<RawThaw> all_row{{.names = "-a,--all", .help = "every lock that is frozen, after --prefix"},
                                     set<&RawThaw::all>};

void add_thaw_options(OptionTable& options, RawThaw& raw)
{
  add_key_options(options, raw.keys, some_keys_row);
  options.add(all_row, raw);
  options.add(json_lines_row, raw.json);
  add_utc_option(options);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb thaw_verb{
    .name = "thaw",
    .summary = "end a freeze before its time",
    .synopsis = "[OPTION...] --all | [-k] KEY | PATTERN...",
    .examples = {"rlock thaw stock", "rlock thaw 'deploy:*'", "rlock thaw --all"},
    .own_exits = {{ExitCode::ok, "thawed: the job that waits first starts"},
                  {ExitCode::no,
                   "a KEY is not frozen, or no lock that matches a PATTERN; a job that holds a lock keeps it"}},
    .add_options = bound<RawThaw, add_thaw_options, execute>,
};

}  // namespace rlock::cli
