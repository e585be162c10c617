// SPDX-License-Identifier: Apache-2.0
// The locks that `rlock watch` shows: asks the server for them, and keeps its last answer.
#pragma once

#include "cli/options/server.h"
#include "cli/output/watch.h"

#include <optional>
#include <string>
#include <vector>

namespace rlock::cli {

// Used from one thread. `opened` must outlive it and offer LockListing.
class WatchedLocks {
 public:
  WatchedLocks(OpenedStore& opened, std::string pattern, Millis interval, StopToken stop)
      : m_opened(opened), m_pattern(std::move(pattern)), m_interval(interval), m_stop(stop)
  {
  }

  // Asks for the first time. Unlike later, an unreachable server is an error.
  Result<Done> begin();

  // Asks again if it is time. While the server is unreachable, error() says why, and the last answer stays.
  void refresh_when_due();
  void ask_now() { m_next_refresh = now(); }
  [[nodiscard]] Instant next_refresh() const { return m_next_refresh; }

  // Fills LockState::runs with the last run of each lock, until the next answer.
  Result<Done> add_last_runs();
  // The lock, free or held, with all its runs. nullopt: error() says why.
  std::optional<LockState> details(const LockName& name);

  [[nodiscard]] const std::vector<LockState>& states() const { return m_states; }
  [[nodiscard]] const Rates& rates() const { return m_rates; }
  [[nodiscard]] const std::optional<Error>& error() const { return m_error; }

 private:
  [[nodiscard]] Instant now() const { return m_opened.clock->now(); }
  Result<std::vector<LockState>> search();
  void keep(std::vector<LockState> states);

  OpenedStore& m_opened;
  const std::string m_pattern;
  const Millis m_interval;
  const StopToken m_stop;

  std::vector<LockName> m_found;  // by the last search
  Instant m_next_search{};
  bool m_has_searched = false;  // on this connection
  std::vector<LockState> m_states;
  Rates m_rates;
  std::optional<Error> m_error;
  Instant m_next_refresh{};
};

}  // namespace rlock::cli
