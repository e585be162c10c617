// SPDX-License-Identifier: Apache-2.0
#include "run/keeper.h"

#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <string>
#include <system_error>
#include <utility>
#include "base/stop.h"
#include "base/text.h"
#include "lease/lease.h"
#include "lock/lease_budget.h"
#include "process/shared_deadline.h"
#include "run/left_keeper.h"
#include "run/notify.h"
#include "run/release.h"
#include "run/release_socket.h"
#include "run/script_stop.h"
#include "run/stop_times.h"
#include "run/verdict.h"

namespace rlock {
namespace {

constexpr Millis longest_release_pause{10'000};

bool is_readable(int fd) { return StopToken(fd).requested(); }

// The only message between `rlock acquire` and its keeper. From the keeper: the keeper holds the lock now. To the keeper: the caller
// has its token.
void send_byte(int socket)
{
  const char byte = 1;
  [[maybe_unused]] const auto sent = ::send(socket, &byte, 1, MSG_NOSIGNAL);
}

// Why the keeper ends.
enum class Reason {
  process_ended,      // the watched process
  caller_gone,        // `rlock acquire` ended before it had the token
  release_announced,  // `rlock release` has connected
  told_to_end,        // by a signal, with --on-lost warn
  release_requested,  // an operator, or a client with the right to do so, asks for the lock
  lost,               // proven
  released,           // by its token, from elsewhere
  unconfirmed,        // the lease could not be renewed in time
};

class KeeperLoop {
 public:
  KeeperLoop(const KeeperTask& task, ReleaseSocket release_socket, Fd caller, std::optional<ScriptPipe> pipe)
      : m_task(task),
        m_release_socket(std::move(release_socket)),
        m_caller(std::move(caller)),
        m_pipe(std::move(pipe)),
        m_sessions(task.lock_set.sessions),
        m_began(task.context.clock.now()),
        m_deadline(stop_times(first_end(), task.request.kill_after))
  {
    if (m_pipe) {
      m_script.emplace(task.request, task.watched, *m_pipe, m_deadline, task.context.clock);
    }
    if (m_alarm.fd() < 0) {
      throw std::system_error(errno, std::generic_category(), "timerfd");
    }
    for (LockSession& session : m_sessions) {
      m_leases.add(session.lease());
    }
  }

  void run()
  {
    end_for(end_script(await_reason()));
    m_leases.stop_watchdog();
    m_task.lock_set.store->stop_threads();
    m_news.duration = std::chrono::ceil<Millis>(m_task.context.clock.now() - m_began);
    notify(m_task.request, m_task.context, &m_task.lock_set, m_news, &m_task.context.signals, write_to_syslog);
  }

 private:
  Reason await_reason()
  {
    std::optional<Reason> reason;
    while (!reason) {
      const bool may_be_joined = m_pipe && !m_pipe->is_joined();
      wait(m_deadline.times().signal, {.watched = m_task.watched.fd(),
                                       .release = m_release_socket.fd(),
                                       .caller = m_caller.get(),
                                       .joined_pipe = may_be_joined ? m_pipe->fd() : -1});
      reason = find_reason();
    }
    return *reason;
  }

  // Descriptors that must not be ready already; -1: not this one.
  struct Awaited {
    int watched = -1;
    int release = -1;
    int caller = -1;
    int joined_pipe = -1;  // readable: the script has the pipe
    int held_pipe = -1;    // hangs up when no process has the pipe any more; bytes in it do not count
  };

  // Waits for news of the lease, a signal, or one of these descriptors.
  void wait(Instant until, const Awaited& awaited)
  {
    m_alarm.set(until);
    std::array<pollfd, 10> waits{pollfd{.fd = awaited.watched, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = awaited.release, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = awaited.caller, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = awaited.joined_pipe, .events = POLLIN, .revents = 0},
                                 pollfd{.fd = awaited.held_pipe, .events = 0, .revents = 0},
                                 pollfd{.fd = m_task.context.signals.fd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = m_leases.fd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = m_leases.message_fd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = m_deadline.moved_fd(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = m_alarm.fd(), .events = POLLIN, .revents = 0}};
    ::poll(waits.data(), waits.size(), poll_timeout(m_task.context.clock.now(), m_leases.due()));
    m_deadline.note_move();
    m_leases.watch();
    m_leases.take_news();
  }

  // Reads a loss, and the end of the watched process, before it looks for an announced release, which counts first. `rlock
  // release` connects before the lock is released and before the script that calls it ends, so a keeper that sees one of the two
  // sees the connection as well.
  std::optional<Reason> find_reason()
  {
    const auto lost = loss();
    const bool has_ended = m_task.watched.has_ended();
    if (auto connection = m_release_socket.accept()) {
      m_releaser = *std::move(connection);
      return Reason::release_announced;
    }
    if (has_ended) {
      m_result = result_of_watched();
      return Reason::process_ended;
    }
    if (lost) {
      return lost;
    }
    if (m_caller && is_readable(m_caller.get()) && !caller_has_token()) {
      return Reason::caller_gone;
    }
    return is_told_to_end() ? std::optional{Reason::told_to_end} : std::nullopt;
  }

  // The budget of the lease that ends first.
  [[nodiscard]] const LeaseBudget& first_end() const { return m_task.lock_set.first_to_expire().lease().budget(); }

  template <typename Event>
  [[nodiscard]] bool has_event() const
  {
    return std::ranges::any_of(m_sessions, [](const LockSession& session) {
      const auto& event = session.lease().event();
      return event && std::holds_alternative<Event>(*event);
    });
  }

  // One lost lock counts as the loss of all.
  std::optional<Reason> loss()
  {
    if (m_leases.with_event() != nullptr) {
      return has_event<Lost>()               ? Reason::lost
             : has_event<ReleaseRequested>() ? Reason::release_requested
                                             : Reason::unconfirmed;
    }
    return m_task.context.clock.now() >= m_deadline.times().signal ? std::optional{Reason::unconfirmed} : std::nullopt;
  }

  bool caller_has_token()
  {
    char byte = 0;
    const bool has_token = ::read(m_caller.get(), &byte, 1) == 1;
    m_caller.reset();
    return has_token;
  }

  // A service manager that stops a service sends TERM to all of its processes, also to the watched one. So with
  // --on-lost stop the keeper passes the signal on and holds the lock until the watched process has ended.
  bool is_told_to_end()
  {
    bool is_told = false;
    while (const auto signal = m_task.context.signals.take()) {
      is_told = is_told || signal->number == SIGTERM || signal->number == SIGINT;
    }
    if (is_told && m_task.request.on_lost == OnLost::stop) {
      m_was_cancelled = true;
      m_is_told = true;
      if (is_protected()) {
        m_script->keep_sessions();
      }
      signal_watched();
      return false;
    }
    return is_told;
  }

  // The script has opened the pipe, so the keeper knows what it has started.
  bool is_protected() { return m_script && m_pipe->is_joined(); }

  // What a script has started is dead, or was left alone as asked, when this returns. Returns why the keeper ends: the lock may be
  // lost or released meanwhile.
  Reason end_script(Reason reason)
  {
    reason = begin_to_end(reason);
    if (is_about_lock(reason) && !(is_protected() && stops_script(reason))) {
      return end_watched(reason);
    }
    while (m_script && !m_script->is_over()) {
      const bool waits_for_script = !m_task.watched.has_ended();
      const bool waits_for_pipe = m_pipe->is_held();
      wait(m_script->due(), {.watched = waits_for_script ? m_task.watched.fd() : -1,
                             .release = heeds_release(reason) ? m_release_socket.fd() : -1,
                             .held_pipe = waits_for_pipe ? m_pipe->fd() : -1});
      if (waits_for_script == m_task.watched.has_ended() || waits_for_pipe != m_pipe->is_held()) {
        m_script->look_soon();
      }
      reason = note_news(reason);
      m_script->work();
    }
    return reason;
  }

  Reason begin_to_end(Reason reason)
  {
    if (reason == Reason::lost && was_released()) {
      reason = Reason::released;
    }
    if (is_protected() && reason == Reason::process_ended) {
      if (m_pipe->is_held() && !m_leases.is_watched()) {
        m_leases
            .go_on();  // the search for what the script has left takes long on a busy host: the watchdog renews meanwhile
        m_leases.watch();
      }
      m_script->script_ended();
    } else if (is_protected() && stops_script(reason)) {
      m_script->stop(kill_after(reason));
    }
    return reason;
  }

  static bool is_about_lock(Reason reason)
  {
    return reason == Reason::release_requested || reason == Reason::lost || reason == Reason::unconfirmed;
  }

  // The watched process has been asked to end, or told nothing, and may go on for long: locks that are kept are renewed until it
  // has ended. A keeper that is told to end after that stays, because the end of the last lock is near.
  Reason end_watched(Reason reason)
  {
    if (reason == Reason::release_requested || m_task.request.on_lost == OnLost::stop) {
      signal_watched();
    }
    const bool heeds = heeds_release(reason);
    Instant end = end_of_locks();
    while (!m_task.watched.has_ended() && m_task.context.clock.now() < end) {
      wait(end, {.watched = m_task.watched.fd(), .release = heeds ? m_release_socket.fd() : -1});
      auto connection = heeds ? m_release_socket.accept() : std::nullopt;
      if (connection) {
        m_releaser = *std::move(connection);
        return Reason::release_announced;
      }
      const bool is_told = is_told_to_end();
      if (is_told && end == far_future) {
        return Reason::told_to_end;
      }
      end = end_of_locks();
    }
    return reason;
  }

  // far_future: the watchdog renews one of them.
  Instant end_of_locks()
  {
    if (std::ranges::any_of(m_sessions, is_kept)) {
      return far_future;
    }
    m_leases.stop_watchdog();
    return last_end();
  }

  // What an operator asks for is done also with --on-lost warn.
  [[nodiscard]] bool stops_script(Reason reason) const
  {
    const bool is_loss = reason == Reason::lost || reason == Reason::unconfirmed;
    return reason == Reason::release_requested || (is_loss && m_task.request.on_lost == OnLost::stop);
  }

  [[nodiscard]] Millis kill_after(Reason reason) const
  {
    return reason == Reason::lost ? std::min(m_task.request.kill_after, kill_after_loss) : m_task.request.kill_after;
  }

  // A release that the script announces frees the lock at once, whatever still runs, unless the lock may have another holder already.
  static bool heeds_release(Reason reason)
  {
    return reason == Reason::process_ended || reason == Reason::release_requested;
  }

  // Once the script is stopped because of the lock, only the end of its processes counts.
  Reason note_news(Reason reason)
  {
    const auto lost = reason == Reason::process_ended ? loss() : std::nullopt;
    if (heeds_release(reason)) {
      if (auto connection = m_release_socket.accept()) {
        m_releaser = *std::move(connection);
        m_script->leave();
        return Reason::release_announced;
      }
    }
    if (lost) {
      return note_loss_of_leftovers(*lost);
    }
    if (!m_is_hurried && is_about_lock(reason) && reason != Reason::lost && std::ranges::any_of(m_sessions, is_lost)) {
      m_is_hurried = true;
      m_script->stop(kill_after(Reason::lost));
    }
    if (is_told_to_end()) {
      m_script->leave();
      return Reason::told_to_end;
    }
    if (std::exchange(m_is_told, false) && reason == Reason::process_ended) {
      m_script->stop(m_task.request.kill_after);
    }
    return reason;
  }

  // Also after the owner was asked to release it.
  static bool is_lost(const LockSession& session)
  {
    const auto& event = session.lease().event();
    return session.lease().is_lost_later() || (event && std::holds_alternative<Lost>(*event));
  }

  static bool is_kept(const LockSession& session) { return session.lease().is_kept(); }

  // When the last of the locks that are not lost ends, as of the last LeaseGroup::stop_watchdog(); long ago: all are lost.
  [[nodiscard]] Instant last_end() const
  {
    Instant last{};
    for (const LockSession& session : m_sessions) {
      last = std::max(last, is_lost(session) ? Instant{} : session.lease().budget().valid_until());
    }
    return last;
  }

  // The script has ended, and the lock is lost while processes that it left are stopped or waited for.
  Reason note_loss_of_leftovers(Reason reason)
  {
    if (reason == Reason::lost && was_released()) {
      reason = Reason::released;
    }
    if (stops_script(reason)) {
      m_script->stop(kill_after(reason));
    } else {
      m_script->leave();
    }
    return reason;
  }

  void end_for(Reason reason)
  {
    switch (reason) {
      case Reason::process_ended: return release_and_tell(m_result);
      case Reason::told_to_end: return release_and_tell({});
      case Reason::caller_gone: release({.outcome = Outcome::unused}); return;
      case Reason::released:
        m_news.outcome = name_of(Outcome::succeeded);
        if (m_sessions.size() > 1) {
          release({}, true);  // a release of one by its token releases all
        }
        return;
      case Reason::release_announced:
        await_releaser();
        return release_and_tell(announced_result());  // in case `rlock release` was killed before it could
      case Reason::release_requested:
      case Reason::lost:
      case Reason::unconfirmed: break;
    }
    // Unless all are lost, a lock may still be held. Once the watched process has ended no process works under it.
    const bool may_release = m_task.watched.has_ended() || std::ranges::all_of(m_sessions, is_lost);
    const Outcome outcome = reason == Reason::release_requested ? Outcome::forced : Outcome::lost;
    m_leases.stop_watchdog();
    tell_loss(may_release ? release({.outcome = outcome}) : ReleaseFindings(m_sessions.size()));
  }

  [[nodiscard]] RunResult result_of_watched() const
  {
    const auto status = m_task.watched.wait_status();
    const auto code = status ? std::optional(exit_code_by(*status)) : std::nullopt;
    const bool was_cancelled = m_was_cancelled && code.value_or(0) != 0;
    return {.exit_code = code, .outcome = was_cancelled ? std::optional(Outcome::cancelled) : outcome_by(code)};
  }

  // By the code that `rlock release` has sent after the release. It sends none without --exit-code, or when it was killed.
  [[nodiscard]] RunResult announced_result() const
  {
    unsigned char code = 0;
    return ::recv(m_releaser.get(), &code, 1, MSG_DONTWAIT) == 1 ? RunResult{.exit_code = code} : RunResult{};
  }

  // A release without a code counts as a success.
  static Outcome counted(const RunResult& result) { return outcome_of(result).value_or(Outcome::succeeded); }

  void release_and_tell(const RunResult& result)
  {
    m_news.exit_code = result.exit_code;
    m_news.outcome = name_of(counted(result));
    const ReleaseFindings findings = release(result);
    const bool is_any_gone = std::ranges::any_of(findings, [](const auto& finding) { return finding.has_value(); });
    if (is_any_gone && !m_releaser) {
      tell_loss(findings);
    }
  }

  // No effect on a process that has ended.
  void signal_watched() { m_task.watched.signal(m_task.request.stop_signal); }

  // If the watchdog has no event, the deadline was first.
  void tell_loss(const ReleaseFindings& findings)
  {
    const Verdict loss = verdict_of({.job = JobEnd{.wait_status = 0, .why = Stopped::lease_end, .killed = false},
                                     .locks = lock_facts(m_sessions, findings),
                                     .still_runs = true});  // so the text says nothing of a job
    m_news.outcome = name_of(loss.outcome);
    m_news.message = loss.line + "; it was held for process " + std::to_string(m_sessions.front().spec().who.pid);
    write_to_syslog(m_news.message);
  }

  // Until `rlock release` has released the lock, or has ended. The lock is renewed meanwhile, because that process may be stopped.
  void await_releaser()
  {
    while (!is_readable(m_releaser.get()) && !m_task.watched.has_ended()) {
      std::array<pollfd, 2> waits{pollfd{.fd = m_releaser.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = m_task.watched.fd(), .events = POLLIN, .revents = 0}};
      ::poll(waits.data(), waits.size(), poll_timeout(m_task.context.clock.now(), m_leases.due()));
      m_leases.watch();
    }
  }

  // A release by the token from elsewhere is in the event log, and repeating it succeeds. Called only for a lock that
  // is proven to be lost, because otherwise this request would release the lock.
  bool was_released()
  {
    m_leases.stop_watchdog();
    const bool was_released = std::ranges::all_of(m_sessions, [](LockSession& session) {
      const auto& event = session.lease().event();
      return !event || !std::holds_alternative<Lost>(*event) || session.was_released();
    });
    m_leases.go_on();
    return was_released;
  }

  // Tries until the lease ends, because the lock ends by itself then. A loss is recorded in the history, because the server may have
  // lost the event log together with the lock.
  // `is_announced`: ReleaseAllOptions::is_announced.
  ReleaseFindings release(const RunResult& result, bool is_announced = false)
  {
    m_leases.stop_watchdog();
    const Instant now = m_task.context.clock.now();
    return release_all(m_task.request, m_task.context, m_sessions,
                       {.give_up = std::max(last_end(), now + m_task.request.server.timeout),
                        .began = m_began,
                        .succeeded = counted(result) == Outcome::succeeded,
                        .ended = now,
                        .result = result,
                        .longest_pause = longest_release_pause,
                        .is_announced = is_announced || static_cast<bool>(m_releaser)});
  }

  const KeeperTask& m_task;
  ReleaseSocket m_release_socket;
  Fd m_caller;    // until the caller has its token
  Fd m_releaser;  // the connection of `rlock release`
  std::optional<ScriptPipe> m_pipe;
  std::vector<LockSession>& m_sessions;
  const Instant m_began;
  SharedDeadline m_deadline;  // moved by the watchdog
  LeaseGroup m_leases{
      {.on_moved =
           [this](const LeaseBudget& lease) { m_deadline.move_to(stop_times(lease, m_task.request.kill_after)); },
       .interrupt = m_task.context.signals.stop()},
      m_task.context.clock,
      m_task.context.log};
  std::optional<ScriptStop> m_script;  // uses m_pipe and m_deadline
  Alarm m_alarm;
  RunResult m_result;            // of the watched process
  bool m_was_cancelled = false;  // the keeper has passed on a signal
  bool m_is_told = false;        // the same, since the last look
  bool m_is_hurried = false;     // the lock was lost after ReleaseRequested, before the script had ended
  RunNews m_news;                // why the keeper ends
};

// Holds the lock until there is a reason to end, and releases the lock. `caller`: the socket to `rlock acquire`. False: the
// keeper could not begin, because there was no descriptor or memory, and has sent no message.
bool run_keeper(const KeeperTask& task, Fd caller, std::optional<ScriptPipe> pipe)
{
  try {
    auto release_socket = ReleaseSocket::open(task.lock_set.sessions.front().hold());
    if (!release_socket) {
      return false;
    }
    const int socket = caller.get();
    KeeperLoop loop(task, *std::move(release_socket), std::move(caller), std::move(pipe));
    send_byte(socket);
    loop.run();
    return true;
  } catch (const std::exception&) {  // no descriptor, no memory
    return false;
  }
}

}  // namespace

Result<Keeper> Keeper::start(const KeeperTask& task)
{
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return no_keeper("socketpair");
  }
  Fd callers_end(ends[0]);
  Fd keepers_end(ends[1]);
  std::optional<ScriptPipe> pipe;
  if (task.has_pipe) {
    auto opened = ScriptPipe::open();
    if (!opened) {
      return Error{ErrorCode::os, "cannot start the keeper: " + opened.error().text};
    }
    pipe = *std::move(opened);
  }
  const pid_t keeper = ::fork();
  if (keeper < 0) {
    return no_keeper("fork");
  }
  if (keeper == 0) {
    callers_end.reset();
    detach_as_keeper();
    ::_exit(run_keeper(task, std::move(keepers_end), std::move(pipe)) ? 0 : 1);
  }
  keepers_end.reset();
  char byte = 0;
  if (::read(callers_end.get(), &byte, 1) != 1) {
    return Error{ErrorCode::os, "cannot start the keeper: there is no descriptor or memory for it"};
  }
  return Keeper(std::move(callers_end), pipe ? pipe->path_in(keeper) : "");
}

void Keeper::confirm_caller_has_token() const { send_byte(m_socket.get()); }

}  // namespace rlock
