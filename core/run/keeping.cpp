// SPDX-License-Identifier: Apache-2.0
#include "run/keeping.h"

#include "base/alarm.h"
#include "base/defaults.h"
#include "base/text.h"
#include "lease/watchdog.h"
#include "lock/validity.h"
#include "run/outcome.h"
#include "run/release_socket.h"
#include "run/syslog.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis first_pause{50};  // between two tries to release; doubles up to the longest
constexpr Millis longest_pause{10'000};
constexpr int tries = 5;          // within the time that one answer may take
constexpr Millis question{1000};  // how long a lost lock may be asked about before its watched is told

// The same as for a job: `run --kill-after` has the same default.
Millis signal_lead(Millis ttl) { return std::min(default_kill_after, ttl / 6); }

bool says_something(int fd) { return StopToken(fd).requested(); }

// Why the keeping came to its end.
enum class Reason {
  ended,        // the watched did
  unclaimed,    // the caller went away before it knew that it has the lock
  release_all,  // `rlock release` is at the door
  dismissed,    // told to end, and the watched is to be left alone
  wanted,       // somebody with the right to asks for the lock
  gone,         // it is not ours any more
  unsure,       // it could not be renewed in time
};

class Keeping {
 public:
  Keeping(const KeeperTask& task, ReleaseSocket door, Fd caller)
      : m_task(task),
        m_door(std::move(door)),
        m_caller(std::move(caller)),
        m_log(Verbosity::quiet),
        m_valid_until(valid_until(task.taken.sent_at, task.spec.ttl)),
        m_alarm(made(m_valid_until - signal_lead(task.spec.ttl))),
        m_watchdog(task.store,
                   {.spec = task.spec,
                    .owner = task.hold.owner,
                    .renews = true,
                    .acquired_at = task.taken.sent_at,
                    .kill_margin = signal_lead(task.spec.ttl),
                    .listener = std::move(task.taken.listener),
                    .on_moved = [this](Instant until) { prolong(until); }},
                   task.clock, m_log)
  {
  }

  // To the end of it all.
  void keep() { part(until_its_end()); }

 private:
  static Alarm made(Instant due)
  {
    Alarm alarm;
    if (alarm.fd() < 0) {
      throw std::system_error(errno, std::generic_category(), "timerfd");
    }
    alarm.set(due);
    return alarm;
  }

  // In the watchdog's thread, which alone touches both until it is stopped.
  void prolong(Instant until)
  {
    m_valid_until = until;
    m_alarm.set(until - signal_lead(m_task.spec.ttl));
  }

  Reason until_its_end()
  {
    std::optional<Reason> reason;
    while (!reason) {
      std::array<pollfd, 6> waits{pollfd{.fd = m_task.watched.fd(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_door.fd(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_caller.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_task.signals.fd(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_watchdog.fd(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_alarm.fd(), .events = POLLIN, .revents = 0}};
      ::poll(waits.data(), waits.size(), -1);
      reason = look();
    }
    return *reason;
  }

  // A loss is looked for before the door, and judged after it: who lets the lock go has knocked before it was gone, so
  // where that is seen the announce_release is too.
  std::optional<Reason> look()
  {
    const auto lost = loss();
    if (m_task.watched.has_ended()) {
      return Reason::ended;
    }
    if (auto visitor = m_door.answer()) {
      m_visitor = *std::move(visitor);
      return Reason::release_all;
    }
    if (lost) {
      return lost;
    }
    if (m_caller && says_something(m_caller.get()) && !is_claimed()) {
      return Reason::unclaimed;
    }
    return is_dismissed() ? std::optional{Reason::dismissed} : std::nullopt;
  }

  std::optional<Reason> loss()
  {
    if (const auto lease_event = m_watchdog.lease_event()) {
      return std::holds_alternative<Lost>(*lease_event)               ? Reason::gone
             : std::holds_alternative<ReleaseRequested>(*lease_event) ? Reason::wanted
                                                                      : Reason::unsure;
    }
    return says_something(m_alarm.fd()) ? std::optional{Reason::unsure} : std::nullopt;
  }

  bool is_claimed()
  {
    char word = 0;
    const bool claimed = ::read(m_caller.get(), &word, 1) == 1;
    m_caller.reset();
    return claimed;
  }

  // A service manager that stops a service sends TERM to all of its processes, the watched among them. So the lock is
  // not let go while the watched still puts things in order.
  bool is_dismissed()
  {
    bool told = false;
    while (const auto signal = m_task.signals.take()) {
      told = told || signal->number == SIGTERM || signal->number == SIGINT;
    }
    if (told && m_task.on_lost == OnLost::stop) {
      signal_watched();
      return false;
    }
    return told;
  }

  void part(Reason reason)
  {
    switch (reason) {
      case Reason::ended:
      case Reason::unclaimed:
      case Reason::dismissed: return release();
      case Reason::release_all:
        await_end_of(m_visitor.get(), far_future);
        return release();  // it has, unless it was killed on the way
      case Reason::wanted:
        signal_watched();
        release_if_ended_in_time();
        return record_loss();
      case Reason::gone:
        if (was_released()) {
          return;
        }
        signal_watched_if_asked();
        return record_loss();
      case Reason::unsure:
        signal_watched_if_asked();
        release_if_ended_in_time();
        return record_loss();
    }
  }

  void signal_watched() { m_task.watched.signal(m_task.lost_signal); }

  void signal_watched_if_asked()
  {
    if (m_task.on_lost == OnLost::stop) {
      signal_watched();
    }
  }

  // Where no lease_event is there yet the alarm was first.
  void record_loss()
  {
    m_watchdog.stop();
    const LeaseEvent lease_event = m_watchdog.lease_event().value_or(Unconfirmed{m_watchdog.trouble()});
    write_to_syslog(loss_text(lease_event, printable(m_task.spec.name.text())) + "; it was held for process " +
                    std::to_string(m_task.spec.who.pid));
  }

  // Whether the visitor or the watched came to its end by then.
  bool await_end_of(int fd, Instant until)
  {
    while (!says_something(fd) && m_task.clock.now() < until) {
      std::array<pollfd, 2> waits{pollfd{.fd = fd, .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_task.watched.fd(), .events = POLLIN, .revents = 0}};
      ::poll(waits.data(), waits.size(), poll_timeout(m_task.clock.now(), until));
      if (m_task.watched.has_ended()) {
        return true;
      }
    }
    return says_something(fd);
  }

  // The lock may still be ours, and nobody who may be at work is left.
  void release_if_ended_in_time()
  {
    m_watchdog.stop();
    if (await_end_of(m_task.watched.fd(), m_valid_until)) {
      release();
    }
  }

  // What is released by its token from elsewhere leaves a note, which answers the same release again. Asked only of a
  // lock that is proven not to be ours, for of one that is it would be the release.
  bool was_released()
  {
    m_watchdog.stop();
    const auto released = m_task.store.release(m_task.spec, m_task.hold, {}, within(question));
    return released && !std::holds_alternative<NotHeld>(*released);
  }

  // Tries for as long as it matters: then the lock ends by itself.
  void release()
  {
    m_watchdog.stop();
    const Millis each = std::max(m_task.server_timeout / tries, first_pause);
    const Instant give_up = std::max(m_valid_until, m_task.clock.now() + m_task.server_timeout);
    Millis pause = first_pause;
    while (m_task.clock.now() < give_up) {
      const auto released = m_task.store.release(m_task.spec, m_task.hold, {}, within(each));
      if (released || !is_passing(released.error().fault)) {
        return;
      }
      m_task.store.forget();
      m_task.clock.sleep_until(m_task.clock.now() + pause, StopToken::never());
      pause = std::min(2 * pause, longest_pause);
    }
  }

  [[nodiscard]] CallLimits within(Millis time) const
  {
    return {.deadline = m_task.clock.now() + time, .stop = StopToken::never()};
  }

  const KeeperTask& m_task;
  ReleaseSocket m_door;
  Fd m_caller;   // until it knows
  Fd m_visitor;  // who lets the lock go
  const Log m_log;
  Instant m_valid_until;  // the watchdog's until it is stopped, as is the alarm
  Alarm m_alarm;
  Watchdog m_watchdog;
};

}  // namespace

void say(int socket)
{
  const char word = 1;
  [[maybe_unused]] const auto sent = ::send(socket, &word, 1, MSG_NOSIGNAL);
}

bool keep(const KeeperTask& task, Fd socket)
{
  try {
    auto door = ReleaseSocket::open(task.hold);
    if (!door) {
      return false;
    }
    const int caller = socket.get();
    Keeping keeping(task, *std::move(door), std::move(socket));
    say(caller);
    keeping.keep();
    return true;
  } catch (const std::exception&) {  // no thread, no descriptor, no memory
    return false;
  }
}

}  // namespace rlock
