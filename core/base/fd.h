// SPDX-License-Identifier: Apache-2.0
// A file descriptor that closes itself. Move-only. Every descriptor that rlock opens has FD_CLOEXEC, so none of them reaches
// the job. A descriptor without that flag was inherited.
#pragma once

#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

namespace rlock {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : m_fd(fd) {}
  Fd(Fd&& other) noexcept : m_fd(std::exchange(other.m_fd, -1)) {}
  Fd& operator=(Fd&& other) noexcept
  {
    if (this != &other) {
      reset();
      m_fd = std::exchange(other.m_fd, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return m_fd; }
  explicit operator bool() const { return m_fd >= 0; }
  void reset()
  {
    if (m_fd >= 0) {
      ::close(std::exchange(m_fd, -1));
    }
  }

 private:
  int m_fd = -1;
};

// Closes all descriptors from `first` to `last`, as far as they are open. Async-signal-safe.
inline void close_range_if_any(int first, int last)
{
  if (first <= last) {
    ::syscall(SYS_close_range, first, last, 0);
  }
}

inline constexpr int no_last_descriptor = 0x7fffffff;

}  // namespace rlock
