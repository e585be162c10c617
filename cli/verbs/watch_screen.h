// SPDX-License-Identifier: Apache-2.0
// rlock watch on a terminal: the picture, the keys of the user, the details of a lock, and what the user does to it.
#pragma once

#include "cli/output/colours.h"
#include "cli/output/lock_order.h"
#include "cli/output/screen.h"
#include "cli/output/watch.h"
#include "cli/verbs/watch_action.h"
#include "cli/verbs/watched_locks.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rlock::cli {

struct WatchOptions {
  std::string server;  // for people
  SortBy sort = SortBy::key;
  Colours colours = Colours();
};

// With the number of the signal that arrived.
RunEnd die_of_signal(Signals& signals);

// Used from one thread; the process must have no other one, because of WatchAction.
class WatchScreen {
 public:
  // All must outlive the object.
  WatchScreen(WatchedLocks& locks, const Clock& clock, const WatchOptions& options, const RawServer& raw_server,
              const Call& call);

  // Until the user quits or a signal comes.
  RunEnd run();

 private:
  enum class Woken { signal, key, action, neither };
  struct InProgress {
    LockAction action;
    LockName name;
    std::unique_ptr<WatchAction> process;
  };

  [[nodiscard]] Picture picture() const;
  Woken wait_for_input();
  void handle_keys(Screen& screen);
  void read_details();
  void ask_wanted();
  void do_confirmed();
  void hear_actions();
  [[nodiscard]] LockAction action_for(LockAction wanted, const LockState& lock);
  WatchAction* in_progress(LockAction action, const LockName& name);
  void cancel_freeze(const LockName& name);

  WatchedLocks& m_locks;
  const Clock& m_clock;
  const WatchOptions& m_options;
  const RawServer& m_raw_server;  // for an action, which has a connection of its own
  const Call& m_call;
  Signals& m_signals;

  View m_view;
  std::optional<LockState> m_details;     // of the lock that has the whole screen
  Instant m_details_after{};              // WatchedLocks::next_refresh() at that time
  std::vector<InProgress> m_in_progress;  // at most one of a kind for a lock
  std::string m_message;                  // of the last action, until a key is pressed
};

}  // namespace rlock::cli
