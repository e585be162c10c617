// SPDX-License-Identifier: Apache-2.0
// A request to stop: a descriptor that becomes readable and stays readable.
//
// A signalfd, an eventfd or a socket can be a StopToken, so every wait in rlock is one poll(2) on its subject and on
// the token. A token does not own the descriptor; the creator of the token keeps the descriptor open for longer.
#pragma once

#ifdef __clang__
#define RLOCK_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define RLOCK_THREAD_ANNOTATION(x)
#endif
#include <pthread.h>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>
#include "base/clock.h"
#include "base/fd.h"

namespace rlock {

class StopToken {
 public:
  static constexpr StopToken never() { return StopToken(-1); }
  explicit constexpr StopToken(int readable_fd) : m_fd(readable_fd) {}

  [[nodiscard]] constexpr int fd() const { return m_fd; }  // -1: never; poll(2) ignores that
  [[nodiscard]] bool requested() const;

 private:
  int m_fd;
};

// Asks the users of its tokens to stop. Thread-safe. Throws std::system_error when there is no free descriptor.
class StopSource {
 public:
  StopSource();
  void request();
  void withdraw();  // a new source would need a descriptor, and there may be none
  [[nodiscard]] StopToken token() const { return StopToken(m_event.get()); }

 private:
  Fd m_event;
};

// Several tokens as one token, which is requested as long as any of them is. Not thread-safe. Throws std::system_error when
// there is no free descriptor or memory.
class AnyStop {
 public:
  AnyStop();
  void add(StopToken stop);  // the caller keeps `stop` open until remove()
  void remove(StopToken stop);
  [[nodiscard]] StopToken token() const { return StopToken(m_set.get()); }

 private:
  Fd m_set;
};

// A timer as a descriptor for poll(2). Unlike a timeout of poll(2), the timer is on time after a suspend.

// The time for a timer on CLOCK_BOOTTIME. Never zero, because zero disarms a timer.
timespec to_timespec(Instant when);

class Alarm {
 public:
  Alarm();

  // Readable once the alarm is due; -1: there was no free descriptor.
  [[nodiscard]] int fd() const { return m_timer.get(); }

  // Makes the descriptor unreadable until `due`; far_future: for ever. One thread at a time may call this.
  void set(Instant due);

 private:
  Fd m_timer;
  Instant m_due{};
};

// A thread in which all signals are blocked, so that another thread, which waits for signals, gets them.

// Throws std::system_error when the system has no thread left.
template <typename Body>
std::thread signal_blocked_thread(Body body)
{
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t& mask;
    ~Restore() { ::pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restore{before};
  return std::thread(std::move(body));
}

}  // namespace rlock

#define GUARDED_BY(mutex) RLOCK_THREAD_ANNOTATION(guarded_by(mutex))
// The caller of the function holds the mutex.
#define REQUIRES(mutex) RLOCK_THREAD_ANNOTATION(requires_capability(mutex))

namespace rlock {

class RLOCK_THREAD_ANNOTATION(capability("mutex")) Mutex {
 private:
  friend class MutexLock;
  std::mutex m_mutex;
};

// Holds the mutex from its constructor to its destructor, except between unlock() and lock().
class RLOCK_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) RLOCK_THREAD_ANNOTATION(acquire_capability(mutex)) : m_lock(mutex.m_mutex) {}
  ~MutexLock() RLOCK_THREAD_ANNOTATION(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() RLOCK_THREAD_ANNOTATION(release_capability()) { m_lock.unlock(); }
  void lock() RLOCK_THREAD_ANNOTATION(acquire_capability()) { m_lock.lock(); }
  // Releases the mutex while it waits. May return without a notification, so the caller checks its condition again.
  void wait(std::condition_variable& news) { news.wait(m_lock); }

 private:
  std::unique_lock<std::mutex> m_lock;
};

}  // namespace rlock
