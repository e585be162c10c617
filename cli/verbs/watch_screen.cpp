// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/watch_screen.h"

#include "process/signals.h"

#include <array>
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
      case Woken::action: hear_action(); break;
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
  std::array<pollfd, 3> waits{pollfd{.fd = m_signals.fd(), .events = POLLIN, .revents = 0},
                              pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                              pollfd{.fd = m_action ? m_action->fd() : -1, .events = POLLIN, .revents = 0}};
  poll_until(waits, m_clock.now(), m_locks.next_refresh());
  return waits[0].revents != 0   ? Woken::signal
         : waits[1].revents != 0 ? Woken::key
         : waits[2].revents != 0 ? Woken::action
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
  if (!wanted || lock == nullptr || !lock->held()) {
    return;
  }
  const LockAction action = *wanted == LockAction::freeze && is_frozen(*lock) ? LockAction::thaw : *wanted;
  m_message = m_action ? "one at a time: " + m_message_of_action : obstacle_to(action, *lock);
  if (m_message.empty()) {
    m_view.question = Question{.action = action, .about = *lock};
  }
}

void WatchScreen::do_confirmed()
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

void WatchScreen::hear_action()
{
  const bool goes_on = m_action->read();
  m_message = m_action->last_line();
  m_message_of_action = m_message;
  if (!goes_on) {
    m_action.reset();
    m_locks.ask_now();
  }
}

}  // namespace rlock::cli
