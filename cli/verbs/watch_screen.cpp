// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/watch_screen.h"

#include "base/text.h"
#include "process/signals.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace rlock::cli {
namespace {

constexpr char ctrl_z = 26;

}  // namespace

RunEnd die_of_signal(Signals& signals)
{
  return DieOf{signals.take().value_or(Signals::Arrived{SIGTERM, false}).number};
}

WatchScreen::WatchScreen(WatchedLocks& locks, const Clock& clock, const WatchOptions& options,
                         const RawServer& raw_server, const Call& call)
    : m_locks(locks),
      m_clock(clock),
      m_options(options),
      m_raw_server(raw_server),
      m_call(call),
      m_signals(call.signals)
{
  m_view.sort = options.sort;
}

RunEnd WatchScreen::run()
{
  Screen screen;
  while (!m_view.quits) {
    screen.show(frame(picture(), m_view, screen.size()));
    switch (wait_for_input()) {
      case Woken::signal: return die_of_signal(m_signals);
      case Woken::key: handle_keys(screen); break;
      case Woken::action: hear_actions(); break;
      case Woken::neither: break;
    }
    m_locks.refresh_when_due();
    read_details();
  }
  return ExitWith{0};
}

Picture WatchScreen::picture() const
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

WatchScreen::Woken WatchScreen::wait_for_input()
{
  std::vector<pollfd> waits{{.fd = m_signals.fd(), .events = POLLIN, .revents = 0},
                            {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
  for (const InProgress& one : m_in_progress) {
    waits.push_back({.fd = one.process->fd(), .events = POLLIN, .revents = 0});
  }
  poll_until(waits, m_clock.now(), m_locks.next_refresh());
  const bool has_spoken = std::any_of(waits.begin() + 2, waits.end(), [](const pollfd& fd) { return fd.revents != 0; });
  return waits[0].revents != 0   ? Woken::signal
         : waits[1].revents != 0 ? Woken::key
         : has_spoken            ? Woken::action
                                 : Woken::neither;
}

void WatchScreen::handle_keys(Screen& screen)
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
void WatchScreen::read_details()
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
void WatchScreen::ask_wanted()
{
  const auto wanted = std::exchange(m_view.wanted, std::nullopt);
  const LockState* const lock = m_details ? &*m_details : selected_lock(picture(), m_view);
  if (!wanted || lock == nullptr) {
    return;
  }
  const LockAction action = action_for(*wanted, *lock);
  const WatchAction* const same = in_progress(action, lock->name);
  m_message = same != nullptr ? "in progress: " + same->last_line() : obstacle_to(action, *lock);
  if (m_message.empty()) {
    m_view.question = Question{.action = action, .about = *lock};
  }
}

// The key of the freeze also ends one.
LockAction WatchScreen::action_for(LockAction wanted, const LockState& lock)
{
  if (wanted != LockAction::freeze) {
    return wanted;
  }
  return is_frozen(lock)                                         ? LockAction::thaw
         : in_progress(LockAction::freeze, lock.name) != nullptr ? LockAction::cancel_freeze
                                                                 : LockAction::freeze;
}

// nullptr: there is none.
WatchAction* WatchScreen::in_progress(LockAction action, const LockName& name)
{
  const auto found = std::find_if(m_in_progress.begin(), m_in_progress.end(),
                                  [&](const InProgress& one) { return one.action == action && one.name == name; });
  return found == m_in_progress.end() ? nullptr : found->process.get();
}

// A freeze that has got its turn since the question was asked stays.
void WatchScreen::cancel_freeze(const LockName& name)
{
  hear_actions();
  const auto ended = std::erase_if(
      m_in_progress, [&](const InProgress& one) { return one.action == LockAction::freeze && one.name == name; });
  m_message = printable(name.text()) + (ended > 0 ? ": its freeze is given up" : ": its freeze waits no longer");
  m_locks.ask_now();
}

void WatchScreen::do_confirmed()
{
  const auto confirmed = std::exchange(m_view.confirmed, std::nullopt);
  if (!confirmed) {
    return;
  }
  const LockName& name = confirmed->about.name;
  if (confirmed->action == LockAction::cancel_freeze) {
    return cancel_freeze(name);
  }
  auto started = WatchAction::start(*confirmed, m_raw_server, m_call);
  if (started) {
    m_in_progress.push_back({.action = confirmed->action, .name = name, .process = *std::move(started)});
  } else {
    m_message = started.error().text;
  }
}

void WatchScreen::hear_actions()
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

}  // namespace rlock::cli
