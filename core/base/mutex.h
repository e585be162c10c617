// SPDX-License-Identifier: Apache-2.0
// A mutex whose use clang checks: with -Wthread-safety it warns where a field that is GUARDED_BY a mutex is used without
// it ("Thread Safety Analysis" in the documentation of clang). For other compilers the annotations are empty.
#pragma once

#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define RLOCK_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define RLOCK_THREAD_ANNOTATION(x)
#endif
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
