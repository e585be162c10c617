// SPDX-License-Identifier: Apache-2.0
// rlock watch: shows the locks of a server live.
#include "cli/output/watch.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/show.h"
#include "cli/verbs/ask.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/watch_action.h"
#include "process/signals.h"

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <unistd.h>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

// A search of a large server takes long and slows the server's other clients. So searches take a tenth of the time at most, and in
// between only the locks that were found are asked for.
constexpr int search_share = 10;
constexpr Instant::duration longest_pause = 1min;

// Used from one thread. `opened` must outlive it.
class WatchedLocks {
 public:
  WatchedLocks(OpenedStore& opened, std::string pattern, Millis interval, StopToken stop)
      : m_opened(opened), m_pattern(std::move(pattern)), m_interval(interval), m_stop(stop)
  {
  }

  // Asks for the first time. Unlike later, an unreachable server is an error.
  Result<Done> begin()
  {
    ASSIGN_OR_RETURN(auto states, search());
    keep(std::move(states));
    return Done{};
  }

  // Asks again if it is time. While the server is unreachable, error() says why, and the last answer stays.
  void refresh_when_due()
  {
    if (now() < m_next_refresh) {
      return;
    }
    auto states = now() < m_next_search ? m_opened.store->list_held(m_found, m_opened.per_answer(m_stop)) : search();
    if (states) {
      keep(*std::move(states));
      return;
    }
    m_opened.store->drop_connection();
    m_next_search = now();
    m_has_searched = false;
    m_away_since = m_error ? m_away_since : now();
    m_error = states.error();
    m_next_refresh = now() + m_interval;
  }

  void ask_now() { m_next_refresh = now(); }
  [[nodiscard]] Instant next_refresh() const { return m_next_refresh; }

  // Fills LockState::runs with the last run of each lock, until the next answer.
  Result<Done> add_last_runs() { return add_runs(m_opened, LogPart::end, m_states); }

  // The lock, free or held, with all its runs. nullopt: error() says why.
  std::optional<LockState> details(const LockName& name)
  {
    Result<LockState> state = m_opened.store->inspect(name, {.deadline = now() + m_opened.timeout, .stop = m_stop});
    const Result<Done> added = state ? add_runs(m_opened, LogPart::all, *state) : state.error();
    if (!added) {
      m_away_since = m_error ? m_away_since : now();
      m_error = added.error();
      return std::nullopt;
    }
    return *std::move(state);
  }

  [[nodiscard]] const std::vector<LockState>& states() const { return m_states; }
  [[nodiscard]] const std::vector<ShownPool>& pools() const { return m_pools; }
  [[nodiscard]] const Rates& rates() const { return m_rates; }
  [[nodiscard]] const std::optional<Error>& error() const { return m_error; }
  // For how long there is an error.
  [[nodiscard]] Millis away() const
  {
    return m_error ? std::chrono::duration_cast<Millis>(now() - m_away_since) : Millis{0};
  }

 private:
  [[nodiscard]] Instant now() const { return m_opened.clock->now(); }

  Result<std::vector<LockState>> search()
  {
    const Instant begin = now();
    auto states = m_opened.store->list(m_pattern, m_opened.per_answer(m_stop));
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

  void keep(std::vector<LockState> states)
  {
    m_states = std::move(states);
    m_pools = pools_of(m_states, m_pattern);
    m_rates.note(m_states, now());
    m_error.reset();
    m_next_refresh = now() + m_interval;
  }

  OpenedStore& m_opened;
  const std::string m_pattern;
  const Millis m_interval;
  const StopToken m_stop;

  std::vector<LockName> m_found;  // by the last search
  Instant m_next_search{};
  bool m_has_searched = false;  // on this connection
  std::vector<LockState> m_states;
  std::vector<ShownPool> m_pools;  // of m_states
  Rates m_rates;
  std::optional<Error> m_error;
  Instant m_away_since{};
  Instant m_next_refresh{};
};

constexpr char ctrl_z = 26;

// With the number of the signal that arrived.
RunEnd die_of_signal(Signals& signals)
{
  return DieOf{signals.take().value_or(Signals::Arrived{SIGTERM, false}).number};
}

constexpr Millis default_interval{1000};

struct RawWatch {
  RawKeys keys;
  RawServer server;
  Millis interval = default_interval;
  SortBy sort = SortBy::key;
  ColorWhen color = ColorWhen::automatic;
  bool json = false;
};

// Used from one thread; the process must have no other one, because of WatchAction.
class WatchScreen {
 public:
  // All must outlive the object.
  WatchScreen(WatchedLocks& locks, const OpenedStore& opened, const RawWatch& raw, const Call& call)
      : m_locks(locks),
        m_opened(opened),
        m_raw(raw),
        m_call(call),
        m_colors(resolve_colors(raw.color, call.environment))
  {
    m_view.sort = raw.sort;
  }

  // Until the user quits or a signal comes.
  RunEnd run()
  {
    Screen screen;
    while (!m_view.quits) {
      screen.show(frame(picture(), m_view, screen.size()));
      switch (wait_for_input()) {
        case Woken::signal: return die_of_signal(m_call.signals);
        case Woken::key: handle_keys(screen); break;
        case Woken::action: hear_actions(); break;
        case Woken::neither: break;
      }
      m_locks.refresh_when_due();
      read_details();
    }
    return ExitWith{0};
  }

 private:
  enum class Woken { signal, key, action, neither };
  struct InProgress {
    LockAction action;
    LockName name;
    std::unique_ptr<WatchAction> process;
  };

  [[nodiscard]] Picture picture() const
  {
    return {.states = m_locks.states(),
            .rates = m_locks.rates(),
            .server = m_opened.server,
            .error = m_locks.error() ? std::string_view(m_locks.error()->text) : "",
            .wall_ms = wall_clock_ms(),
            .now = m_opened.clock->now(),
            .away = m_locks.away(),
            .message = m_message,
            .details = m_details ? &*m_details : nullptr,
            .colors = m_colors,
            .server_option = m_opened.server_option,
            .pools = m_locks.pools()};
  }

  Woken wait_for_input()
  {
    std::vector<pollfd> waits{{.fd = m_call.signals.fd(), .events = POLLIN, .revents = 0},
                              {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
    for (const InProgress& one : m_in_progress) {
      waits.push_back({.fd = one.process->fd(), .events = POLLIN, .revents = 0});
    }
    poll_until(waits, m_opened.clock->now(), m_locks.next_refresh());
    const bool has_spoken =
        std::any_of(waits.begin() + 2, waits.end(), [](const pollfd& fd) { return fd.revents != 0; });
    return waits[0].revents != 0   ? Woken::signal
           : waits[1].revents != 0 ? Woken::key
           : has_spoken            ? Woken::action
                                   : Woken::neither;
  }

  void handle_keys(Screen& screen)
  {
    const std::string keys = screen.keys();
    if (keys.empty()) {
      m_view.quits = true;  // the terminal is gone
    } else if (keys.find(ctrl_z) != std::string::npos) {
      screen.suspend();
    } else {
      m_message.clear();
      for (std::string_view left = keys; !left.empty();) {
        left = press(m_view, left);
        ask_wanted();
        do_confirmed();
      }
    }
  }

  // The details stay with the lock that they were opened for, also when it is free. Asked for after each answer of the server.
  void read_details()
  {
    const LockState* const lock = m_details ? &*m_details : selected_lock(picture(), m_view);
    m_view.details = m_view.details && lock != nullptr;
    if (!m_view.details) {
      m_details.reset();
    } else if (!m_details || m_locks.next_refresh() != m_details_after) {
      m_details_after = m_locks.next_refresh();
      m_details = m_locks.details(LockName(lock->name)).value_or(*lock);
    }
  }

  // Makes the key that the user pressed a question about the selected lock.
  void ask_wanted()
  {
    const auto wanted = std::exchange(m_view.wanted, std::nullopt);
    const LockState* const lock = m_details ? &*m_details : selected_lock(picture(), m_view);
    if (!wanted || lock == nullptr) {
      return;
    }
    const LockAction action = action_for(*wanted, *lock);
    const WatchAction* const same = in_progress(action, lock->name);
    m_message = same != nullptr ? "in progress: " + same->last_line() : obstacle_to(action, *lock);
    if (!m_message.empty()) {
      return;
    }
    if (action == LockAction::force_unlock && lock->holders.size() > 1) {
      m_view.choice = Choice{.about = *lock};
      m_view.scrolled = 0;
    } else {
      m_view.question = Question{.action = action, .about = *lock};
    }
  }

  // The key of the freeze also ends one.
  LockAction action_for(LockAction wanted, const LockState& lock)
  {
    if (wanted != LockAction::freeze) {
      return wanted;
    }
    return freeze_of(lock) != nullptr                              ? LockAction::thaw
           : in_progress(LockAction::freeze, lock.name) != nullptr ? LockAction::cancel_freeze
                                                                   : LockAction::freeze;
  }

  // nullptr: there is none.
  WatchAction* in_progress(LockAction action, const LockName& name)
  {
    const auto found = std::find_if(m_in_progress.begin(), m_in_progress.end(),
                                    [&](const InProgress& one) { return one.action == action && one.name == name; });
    return found == m_in_progress.end() ? nullptr : found->process.get();
  }

  // A freeze that has got its turn since the question was asked stays.
  void cancel_freeze(const LockName& name)
  {
    hear_actions();
    const auto ended = std::erase_if(
        m_in_progress, [&](const InProgress& one) { return one.action == LockAction::freeze && one.name == name; });
    const auto state =
        ended > 0 ? m_locks.details(name) : std::nullopt;  // it may have frozen the lock and not said so yet
    const bool is_given_up = ended > 0 && !(state && freeze_of(*state) != nullptr);
    m_message = printable(name.text()) + (is_given_up ? ": its freeze is given up" : ": its freeze waits no longer");
    m_locks.ask_now();
  }

  void do_confirmed()
  {
    const auto confirmed = std::exchange(m_view.confirmed, std::nullopt);
    if (!confirmed) {
      return;
    }
    const LockName& name = confirmed->about.name;
    if (confirmed->action == LockAction::cancel_freeze) {
      return cancel_freeze(name);
    }
    auto started = WatchAction::start(*confirmed, m_raw.server, m_call);
    if (started) {
      m_in_progress.push_back({.action = confirmed->action, .name = name, .process = *std::move(started)});
    } else {
      m_message = started.error().text;
    }
  }

  void hear_actions()
  {
    for (auto one = m_in_progress.begin(); one != m_in_progress.end();) {
      const WatchAction::Heard heard = one->process->read();
      m_message = heard.spoke ? one->process->last_line() : m_message;
      if (heard.ended) {
        one = m_in_progress.erase(one);
        m_locks.ask_now();
      } else {
        ++one;
      }
    }
  }

  WatchedLocks& m_locks;
  const OpenedStore& m_opened;
  const RawWatch& m_raw;  // its server is for an action, which has a connection of its own
  const Call& m_call;
  const Colors m_colors;

  View m_view;
  std::optional<LockState> m_details;     // of the lock that has the whole screen
  Instant m_details_after{};              // WatchedLocks::next_refresh() at that time
  std::vector<InProgress> m_in_progress;  // at most one of a kind for a lock
  std::string m_message;                  // of the last action, until a key is pressed
};

std::string all_json(const WatchedLocks& locks)
{
  std::string lines;
  for (const LockState& state : locks.states()) {
    lines += status_json(state, locks.pools());
  }
  return lines;
}

std::string all_text(const WatchedLocks& locks)
{
  const std::string table = show_list(locks.states(), wall_clock_ms(), Colors(), locks.pools());
  return (locks.states().empty() ? "no lock is held\n" : table) + "\n";
}

// Prints lines for a file or a pipe, until a signal comes or the reader ends.
Result<RunEnd> print_lines(bool json, WatchedLocks& locks, const Clock& clock, Signals& signals)
{
  for (;;) {
    RETURN_IF_ERROR(json ? locks.add_last_runs() : Result(Done{}));
    print(json ? all_json(locks) : all_text(locks));
    if (const auto printed = finish_output(); !printed) {
      return drop_unread_output() ? Result<RunEnd>(ended(ExitCode::ok)) : printed.error();
    }
    if (clock.sleep_until(locks.next_refresh(), signals.stop()) == Wake::due) {
      locks.refresh_when_due();
    }
    if (signals.stop().requested()) {
      return die_of_signal(signals);
    }
    if (locks.error()) {
      return *locks.error();
    }
  }
}

Result<RunEnd> execute(const RawWatch& raw, const Call& call)
{
  if (call.operands.size() > 1) {
    return several_patterns(watch_verb.name);
  }
  ASSIGN_OR_RETURN(auto opened, open_server(raw.server, call.environment));
  call.signals.block();
  WatchedLocks locks(opened, resolve_pattern(raw.keys, call.operands.empty() ? "*" : call.operands.front()),
                     raw.interval, call.signals.stop());
  if (const auto begun = locks.begin(); !begun) {
    return call.signals.stop().requested() ? Result(die_of_signal(call.signals)) : Result<RunEnd>(begun.error());
  }
  if (raw.json || !Screen::is_there()) {
    return print_lines(raw.json, locks, *opened.clock, call.signals);
  }
  return WatchScreen(locks, opened, raw, call).run();
}

constexpr OptionRow<RawWatch> interval_row{
    {.names = "--interval",
     .value = "DUR",
     .help = {"time between two requests to the server; new locks may show later where the server has many keys",
              default_interval},
     .range = Durations{100ms, std::chrono::hours{24}, "1s"}},
    set<&RawWatch::interval>};
constexpr OptionRow<bool> each_time_row = json_row("one JSON object a line, for every lock each time");

void add_watch_options(OptionTable& options, RawWatch& raw)
{
  options.add(prefix_row, raw.keys);
  options.add(interval_row, raw);
  options.add(sort_row, raw.sort);
  options.add(color_row, raw.color);
  add_utc_option(options);
  options.add(each_time_row, raw.json);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb watch_verb{
    .name = "watch",
    .summary = "show locks, holders and queues live",
    .synopsis = "[OPTION...] [PATTERN]",
    .examples = {"rlock watch", "rlock watch -S redis://db1 'deploy:*'",
                 "rlock watch --json --interval 10s >>locks.jsonl"},
    .own_exits = {{ExitCode::ok, "the user pressed q, or the reader of the pipe ended"}},
    .keys = {{"q", "quit"},
             {"up, down", "select a lock; a screen of 20 rows or more shows its details"},
             {"PgUp, PgDn", "move by a screen; on the whole screen, these keys and the arrows move its text"},
             {"Home g, End G", "move to the first or the last"},
             {"Enter, Esc",
              "its details and history on the whole screen, also after the lock is free; back to all locks"},
             {"f",
              "after a question: what force-unlock does, which stops the job first; of several holders, type the "
              "number of one"},
             {"z",
              "after a question: freeze the lock for two hours, first in line after the job that runs; again: thaw it, "
              "or give up a freeze that waits"},
             {"k a t w r", "sort by key, age, ttl, number of waiters, rate; again: in reverse order"},
             {"/", "filter by a part of the key, the holder or the command"},
             {"Ctrl-Z", "suspend"}},
    .add_options = bound<RawWatch, add_watch_options, execute>,
};

}  // namespace rlock::cli
