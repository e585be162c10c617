// SPDX-License-Identifier: Apache-2.0
// One question to several servers at once: the place where their answers arrive.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "base/stop.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace rlock {

// By server; missing: silent so far.
template <typename T>
using Answers = std::vector<std::optional<Result<T>>>;

// Thread-safe: one waits, the servers' threads answer.
template <typename T>
class PendingReplies {
 public:
  explicit PendingReplies(std::size_t servers) : m_answers(servers), m_news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // What comes after take() is dropped.
  void put(std::size_t server, Result<T> answer)
  {
    const std::lock_guard guard(m_mutex);
    if (m_open) {
      m_answers[server].emplace(std::move(answer));
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(m_news.get(), &one, sizeof one);
    }
  }

  // Until these answers are enough, or the limit.
  template <typename Enough>
  void wait(const Clock& clock, const CallLimits& limit, Enough enough)
  {
    for (;;) {
      {
        const std::lock_guard guard(m_mutex);
        std::uint64_t seen = 0;
        [[maybe_unused]] const auto got = ::read(m_news.get(), &seen, sizeof seen);
        if (enough(m_answers)) {
          return;
        }
      }
      const Instant now = clock.now();
      if (now >= limit.deadline || limit.stop.requested()) {
        return;
      }
      std::array<pollfd, 2> waits{pollfd{.fd = m_news.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = limit.stop.fd(), .events = POLLIN, .revents = 0}};
      poll_until(waits, now, m_news ? limit.deadline : std::min(limit.deadline, now + look_again));
    }
  }

  Answers<T> take()
  {
    const std::lock_guard guard(m_mutex);
    m_open = false;
    return std::move(m_answers);
  }

 private:
  static constexpr Millis look_again{5};  // where there is no descriptor for the news

  std::mutex m_mutex;
  Answers<T> m_answers;  // guarded by m_mutex, as is
  bool m_open = true;
  Fd m_news;
};

}  // namespace rlock
