// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/watched_locks.h"

#include "cli/options/runs.h"
#include "lock/abilities.h"

#include <algorithm>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

// A search of a large server takes long and slows the server's other clients. So searches take a tenth of the time at most, and in
// between only the locks that were found are asked for.
constexpr int search_share = 10;
constexpr Instant::duration longest_pause = 1min;

}  // namespace

Result<Done> WatchedLocks::begin()
{
  auto states = search();
  if (!states) {
    return states.error();
  }
  keep(*std::move(states));
  return Done{};
}

Result<std::vector<LockState>> WatchedLocks::search()
{
  const Instant begin = now();
  auto states = m_opened.store->listing()->list(m_pattern, m_opened.per_answer(m_stop));
  if (states) {
    m_found.clear();
    for (const LockState& state : *states) {
      m_found.push_back(state.name);
    }
    // The first search also waited for the connection.
    const auto pause =
        m_has_searched ? std::min((now() - begin) * (search_share - 1), longest_pause) : Instant::duration{0};
    m_next_search = now() + pause;
    m_has_searched = true;
  }
  return states;
}

void WatchedLocks::keep(std::vector<LockState> states)
{
  m_states = std::move(states);
  m_rates.note(m_states, now());
  m_error.reset();
  m_next_refresh = now() + m_interval;
}

void WatchedLocks::refresh_when_due()
{
  if (now() < m_next_refresh) {
    return;
  }
  auto states =
      now() < m_next_search ? m_opened.store->listing()->held_among(m_found, m_opened.per_answer(m_stop)) : search();
  if (states) {
    keep(*std::move(states));
    return;
  }
  m_opened.store->forget();
  m_next_search = now();
  m_has_searched = false;
  m_error = states.error();
  m_next_refresh = now() + m_interval;
}

Result<Done> WatchedLocks::add_last_runs() { return add_runs(m_opened, LogPart::end, m_states); }

std::optional<LockState> WatchedLocks::details(const LockName& name)
{
  Result<LockState> state = m_opened.store->inspect(name, {.deadline = now() + m_opened.timeout, .stop = m_stop});
  const Result<Done> added = state ? add_runs(m_opened, LogPart::all, *state) : state.error();
  if (!added) {
    m_error = added.error();
    return std::nullopt;
  }
  return *std::move(state);
}

}  // namespace rlock::cli
