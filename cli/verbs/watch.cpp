// SPDX-License-Identifier: Apache-2.0
// rlock watch: shows the locks of a server live.
#include "cli/output/watch.h"
#include "base/duration.h"
#include "base/text.h"
#include "cli/options/color.h"
#include "cli/options/keys.h"
#include "cli/options/runs.h"
#include "cli/options/server.h"
#include "cli/options/sort.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/screen.h"
#include "cli/output/show.h"
#include "cli/verbs/table.h"
#include "cli/verbs/watch_action.h"
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

// A search of a large server takes long and slows the server's other clients. So searches take a tenth of the time at most, and in
// between only the locks that were found are asked for.
constexpr int search_share = 10;
constexpr Instant::duration longest_pause = 1min;

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

// A change of the window size then interrupts the wait for a key.
void wake_on_resize()
{
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGWINCH, &action, nullptr);
}

struct WatchOptions {
  std::string pattern;
  std::string server;  // for people
  Millis interval = default_interval;
  SortBy sort = SortBy::key;
  Colours colours = Colours();
};

// Shows the last answer of the server. While the server is unreachable, shows the error and asks again.
class Watch {
 public:
  Watch(OpenedStore& opened, WatchOptions options, const RawServer& raw_server, const Call& call)
      : m_opened(opened), m_options(std::move(options)), m_raw_server(raw_server), m_call(call), m_signals(call.signals)
  {
    m_view.sort = m_options.sort;
  }

  // Asks for the first time. Unlike later, an unreachable server is an error.
  Result<Done> begin()
  {
    auto states = search();
    if (!states) {
      return states.error();
    }
    keep(*std::move(states));
    return Done{};
  }

  RunEnd die_of_signal() { return DieOf{m_signals.take().value_or(Signals::Arrived{SIGTERM, false}).number}; }

  RunEnd run_screen()
  {
    Screen screen;
    wake_on_resize();
    while (!m_view.quits) {
      draw(screen);
      switch (wait_for_input()) {
        case Woken::signal: return die_of_signal();
        case Woken::key: handle_keys(screen); break;
        case Woken::action: hear_action(); break;
        case Woken::neither: break;
      }
      if (now() >= m_next_refresh) {
        refresh();
      }
    }
    return ExitWith{0};
  }

  // Prints lines for a file or a pipe, until a signal comes or the reader ends.
  Result<RunEnd> print_lines(bool json)
  {
    for (;;) {
      if (json) {
        if (const auto added = add_runs(m_opened, LogPart::end, m_states); !added) {
          return added.error();
        }
      }
      for (const LockState& state : m_states) {
        print(json ? status_json(state) : "");
      }
      print(json ? "" : (m_states.empty() ? "no lock is held\n" : show_list(m_states, wall_clock_ms())) + "\n");
      if (const auto printed = finish_output(); !printed) {
        return drop_unread_output() ? Result<RunEnd>(ended(ExitCode::ok)) : printed.error();
      }
      const Wake woken = m_opened.clock->sleep_until(m_next_refresh, m_signals.stop());
      if (woken == Wake::due) {
        refresh();
      }
      if (woken == Wake::stopped || m_signals.stop().requested()) {
        return die_of_signal();
      }
      if (m_error) {
        return *m_error;
      }
    }
  }

 private:
  enum class Woken { signal, key, action, neither };

  [[nodiscard]] Instant now() const { return m_opened.clock->now(); }

  Result<std::vector<LockState>> search()
  {
    const Instant begin = now();
    auto states = m_opened.store->listing()->list(m_options.pattern, m_opened.per_answer(m_signals.stop()));
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
    m_rates.note(m_states, now());
    m_error.reset();
    m_next_refresh = now() + m_options.interval;
  }

  void refresh()
  {
    auto states = now() < m_next_search
                      ? m_opened.store->listing()->held_among(m_found, m_opened.per_answer(m_signals.stop()))
                      : search();
    if (states) {
      keep(*std::move(states));
      return;
    }
    m_opened.store->forget();
    m_next_search = now();
    m_has_searched = false;
    m_error = states.error();
    m_next_refresh = now() + m_options.interval;
  }

  [[nodiscard]] Picture picture() const
  {
    return {.states = m_states,
            .rates = m_rates,
            .server = m_options.server,
            .error = m_error ? m_error->text : "",
            .wall_ms = wall_clock_ms(),
            .now = now(),
            .message = m_message,
            .history = {},
            .colours = m_options.colours};
  }

  void draw(const Screen& screen) { screen.show(frame(picture(), m_view, screen.size())); }

  Woken wait_for_input()
  {
    std::array<pollfd, 3> waits{pollfd{.fd = m_signals.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                pollfd{.fd = m_action ? m_action->fd() : -1, .events = POLLIN, .revents = 0}};
    poll_until(waits, now(), m_next_refresh);
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

  // Makes the key that the user pressed a question about the selected lock.
  void ask_wanted()
  {
    const auto wanted = std::exchange(m_view.wanted, std::nullopt);
    const LockState* const lock = selected_lock(picture(), m_view);
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
      m_next_refresh = now();
    }
  }

  OpenedStore& m_opened;
  const WatchOptions m_options;
  const RawServer& m_raw_server;  // for an action, which has a connection of its own
  const Call& m_call;
  Signals& m_signals;

  std::vector<LockName> m_found;  // by the last search
  Instant m_next_search{};
  bool m_has_searched = false;  // on this connection
  std::vector<LockState> m_states;
  Rates m_rates;
  View m_view;
  std::unique_ptr<WatchAction> m_action;  // nullptr: none is in progress
  std::string m_message;                  // of the last action, until a key is pressed
  std::string m_message_of_action;
  std::optional<Error> m_error;
  Instant m_next_refresh{};
};

Result<RunEnd> execute(const RawWatch& raw, const Call& call)
{
  if (call.operands.size() > 1) {
    return usage("more than one pattern; quote the pattern if the shell expands it (try rlock watch 'billing:*')");
  }
  const std::string pattern = call.operands.empty() ? "*" : call.operands.front();
  WatchOptions options{.pattern = resolve_pattern(raw.keys, pattern), .server = {}};
  const Result<Done> given = first_error(
      {assign(raw.interval ? resolve_duration(*raw.interval, interval_rule) : default_interval, options.interval),
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
  Watch watch(*opened, std::move(options), raw.server, call);
  if (const auto begun = watch.begin(); !begun) {
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
