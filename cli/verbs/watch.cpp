// SPDX-License-Identifier: Apache-2.0
// rlock watch: shows the locks of a server live.
#include "cli/output/watch.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/options/color.h"
#include "cli/options/keys.h"
#include "cli/options/server.h"
#include "cli/options/sort.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/screen.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "cli/verbs/watch_action.h"
#include "cli/verbs/watched_locks.h"
#include "lock/abilities.h"
#include "process/signals.h"

#include <algorithm>
#include <array>
#include <csignal>

#include <poll.h>
#include <unistd.h>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr DurationRule interval_rule{"--interval", 100ms, std::chrono::hours{24}, "1s"};
constexpr Millis default_interval{1000};
constexpr char ctrl_z = 26;

struct RawWatch {
  RawKeys keys;
  RawServer server;
  Text interval;
  Text sort;
  Text color;
  bool json = false;
};

constexpr std::array<std::string_view, 3> examples{
    "rlock watch",
    "rlock watch -S redis://db1 'deploy:*'",
    "rlock watch --json --interval 10s >>locks.jsonl",
};

constexpr std::array exits{
    ExitLine{"0", "the user pressed q, or the reader of the pipe ended"},
};

struct WatchOptions {
  std::string server;  // for people
  SortBy sort = SortBy::key;
  Colours colours = Colours();
};

// The screen of one user, or lines for a file.
class Watch {
 public:
  // All must outlive the object.
  Watch(WatchedLocks& locks, const Clock& clock, const WatchOptions& options, const RawServer& raw_server,
        const Call& call)
      : m_locks(locks),
        m_clock(clock),
        m_options(options),
        m_raw_server(raw_server),
        m_call(call),
        m_signals(call.signals)
  {
    m_view.sort = options.sort;
  }

  RunEnd die_of_signal() { return DieOf{m_signals.take().value_or(Signals::Arrived{SIGTERM, false}).number}; }

  RunEnd run_screen()
  {
    Screen screen;
    while (!m_view.quits) {
      draw(screen);
      switch (wait_for_input()) {
        case Woken::signal: return die_of_signal();
        case Woken::key: handle_keys(screen); break;
        case Woken::action: hear_action(); break;
        case Woken::neither: break;
      }
      m_locks.refresh_when_due();
      read_details();
    }
    return ExitWith{0};
  }

  // Prints lines for a file or a pipe, until a signal comes or the reader ends.
  Result<RunEnd> print_lines(bool json)
  {
    for (;;) {
      if (const auto added = json ? m_locks.add_last_runs() : Result(Done{}); !added) {
        return added.error();
      }
      print(json ? all_json() : all_text());
      if (const auto printed = finish_output(); !printed) {
        return drop_unread_output() ? Result<RunEnd>(ended(ExitCode::ok)) : printed.error();
      }
      if (m_clock.sleep_until(m_locks.next_refresh(), m_signals.stop()) == Wake::due) {
        m_locks.refresh_when_due();
      }
      if (m_signals.stop().requested()) {
        return die_of_signal();
      }
      if (m_locks.error()) {
        return *m_locks.error();
      }
    }
  }

 private:
  enum class Woken { signal, key, action, neither };

  [[nodiscard]] std::string all_json() const
  {
    std::string lines;
    for (const LockState& state : m_locks.states()) {
      lines += status_json(state);
    }
    return lines;
  }

  [[nodiscard]] std::string all_text() const
  {
    const auto& states = m_locks.states();
    return (states.empty() ? "no lock is held\n" : show_list(states, wall_clock_ms())) + "\n";
  }

  [[nodiscard]] Picture picture() const
  {
    return {.states = m_locks.states(),
            .rates = m_locks.rates(),
            .server = m_options.server,
            .error = m_locks.error() ? std::string_view(m_locks.error()->text) : "",
            .wall_ms = wall_clock_ms(),
            .now = m_clock.now(),
            .message = m_message,
            .details = m_details ? &*m_details : nullptr,
            .colours = m_options.colours};
  }

  void draw(const Screen& screen) { screen.show(frame(picture(), m_view, screen.size())); }

  Woken wait_for_input()
  {
    std::array<pollfd, 3> waits{pollfd{.fd = m_signals.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_action ? m_action->fd() : -1, .events = POLLIN, .revents = 0}};
    poll_until(waits, m_clock.now(), m_locks.next_refresh());
    return waits[0].revents != 0   ? Woken::signal
           : waits[1].revents != 0 ? Woken::key
           : waits[2].revents != 0 ? Woken::action
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
      press(m_view, keys);
      ask_wanted();
      do_confirmed();
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
    if (!wanted || lock == nullptr || !lock->held()) {
      return;
    }
    const LockAction action = *wanted == LockAction::freeze && is_frozen(*lock) ? LockAction::thaw : *wanted;
    m_message = m_action ? "one at a time: " + m_message_of_action : obstacle_to(action, *lock);
    if (m_message.empty()) {
      m_view.question = Question{.action = action, .about = *lock};
    }
  }

  void do_confirmed()
  {
    const auto confirmed = std::exchange(m_view.confirmed, std::nullopt);
    if (!confirmed) {
      return;
    }
    auto started = WatchAction::start(*confirmed, m_raw_server, m_call);
    if (started) {
      m_action = *std::move(started);
    } else {
      m_message = started.error().text;
    }
  }

  void hear_action()
  {
    const bool goes_on = m_action->read();
    m_message = m_action->last_line();
    m_message_of_action = m_message;
    if (!goes_on) {
      m_action.reset();
      m_locks.ask_now();
    }
  }

  WatchedLocks& m_locks;
  const Clock& m_clock;
  const WatchOptions& m_options;
  const RawServer& m_raw_server;  // for an action, which has a connection of its own
  const Call& m_call;
  Signals& m_signals;

  View m_view;
  std::optional<LockState> m_details;     // of the lock that has the whole screen
  Instant m_details_after{};              // WatchedLocks::next_refresh() at that time
  std::unique_ptr<WatchAction> m_action;  // nullptr: none is in progress
  std::string m_message;                  // of the last action, until a key is pressed
  std::string m_message_of_action;
};

Result<RunEnd> execute(const RawWatch& raw, const Call& call)
{
  if (call.operands.size() > 1) {
    return usage("more than one pattern; quote the pattern if the shell expands it (try rlock watch 'billing:*')");
  }
  Millis interval = default_interval;
  WatchOptions options;
  const Result<Done> given =
      first_error({assign(raw.interval ? resolve_duration(*raw.interval, interval_rule) : default_interval, interval),
                   assign(resolve_sort(raw.sort), options.sort),
                   assign(resolve_colours(raw.color, call.environment), options.colours)});
  if (!given) {
    return given.error();
  }
  const auto server = resolve_server(raw.server, call.environment);
  if (!server) {
    return server.error();
  }
  Result<OpenedStore> opened = open_server(raw.server, call.environment);
  if (!opened) {
    return opened.error();
  }
  if (opened->store->listing() == nullptr) {
    return not_offered(watch_verb.name, opened->server);
  }
  options.server = server->shown();
  call.signals.block();
  WatchedLocks locks(*opened, resolve_pattern(raw.keys, call.operands.empty() ? "*" : call.operands.front()), interval,
                     call.signals.stop());
  Watch watch(locks, *opened->clock, options, raw.server, call);
  if (const auto begun = locks.begin(); !begun) {
    return call.signals.stop().requested() ? Result(watch.die_of_signal()) : Result<RunEnd>(begun.error());
  }
  return raw.json || !Screen::is_there() ? watch.print_lines(raw.json) : Result<RunEnd>(watch.run_screen());
}

void add_watch_options(Options& options, RawWatch& raw)
{
  add_prefix_option(options, raw.keys);
  options.text("--interval", raw.interval, "DUR",
               {"time between two requests to the server; new locks may show later where the server has many keys",
                default_interval});
  add_sort_option(options, raw.sort);
  add_color_option(options, raw.color);
  options.flag("--json", raw.json, "one JSON object a line, for every lock each time");
  add_server_options(options, raw.server);
}

}  // namespace

const Verb watch_verb{
    .name = "watch",
    .summary = "show locks, holders and queues live",
    .synopsis = "[OPTION...] [PATTERN]",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawWatch, add_watch_options, execute>,
};

}  // namespace rlock::cli
