// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/ask.h"

#include "base/text.h"

#include <span>

namespace rlock::cli {
namespace {

Result<Done> fill(const OpenedStore& opened, LogPart part, std::span<LockState> states)
{
  if (states.empty()) {
    return Done{};
  }
  std::vector<LockName> names;
  for (const LockState& state : states) {
    names.push_back(state.name);
  }
  auto runs = opened.store->past_runs(names, part, opened.per_answer());
  if (!runs) {
    return runs.error().code == ErrorCode::refused ? Result(Done{}) : runs.error();
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i].runs = std::move((*runs)[i].runs);
  }
  return Done{};
}

// The values of -S, without users and passwords.
std::string option_again(const RawServer& raw)
{
  std::string text;
  for (const std::string& word : raw.urls) {
    const auto endpoint = word.starts_with('@') ? Result<Endpoint>(usage("")) : parse_server(word);
    text += " -S " + copied_word(endpoint ? endpoint->shown() : word);
  }
  return text;
}

}  // namespace

Result<OpenedStore> open_server(const RawServer& raw, const Environment& environment)
{
  ASSIGN_OR_RETURN(const auto server, resolve_server(raw, environment));
  auto clock = std::make_unique<BootClock>();
  ASSIGN_OR_RETURN(auto store, open_store(server, *clock, StopToken::never()));
  return OpenedStore{std::move(clock), std::move(store), server.timeout, server.shown(), option_again(raw)};
}

Result<OneLock> open_lock(const RawOneLock& raw, const Call& call)
{
  ASSIGN_OR_RETURN(auto name, resolve_key(raw.keys, call.operands));
  ASSIGN_OR_RETURN(auto opened, open_server(raw.server, call.environment));
  return OneLock{.name = std::move(name), .opened = std::move(opened)};
}

Result<Done> add_runs(const OpenedStore& opened, LogPart part, std::vector<LockState>& states)
{
  return fill(opened, part, states);
}

Result<Done> add_runs(const OpenedStore& opened, LogPart part, LockState& state)
{
  return fill(opened, part, {&state, 1});
}

}  // namespace rlock::cli
