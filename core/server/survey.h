// SPDX-License-Identifier: Apache-2.0
// The same question to several servers at once, each on a thread of its own. Private to wire.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "base/signal_blocked_thread.h"
#include "base/stop.h"
#include "net/wait.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace rlock {

// Not thread-safe. Throws std::system_error when there is no descriptor for it.
template <typename T>
class Survey {
 public:
  explicit Survey(std::size_t size) : m_answers(size), m_news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
  {
    if (!m_news) {
      throw std::system_error(errno, std::generic_category(), "eventfd");
    }
  }
  ~Survey() { end(); }
  Survey(const Survey&) = delete;
  Survey& operator=(const Survey&) = delete;

  // `question` is given a limit and returns a Result<T>. Where there can be no thread it is asked here.
  template <typename Question>
  void ask(std::size_t which, const CallLimits& limit, Question question)
  {
    try {
      m_threads.push_back(deaf_thread([this, which, question, deadline = limit.deadline] {
        put(which, question(CallLimits{.deadline = deadline, .stop = m_over.token()}));
      }));
    } catch (const std::system_error&) {
      put(which, question(limit));
    }
  }

  // In the order of the questions. Whoever has not answered when that is over, or when somebody else has answered and a moment
  // has passed, is cut short: ErrorCode::interrupted.
  std::vector<Result<T>> answers(const Clock& clock, const CallLimits& limit)
  {
    await(clock, limit);
    end();
    std::vector<Result<T>> all;
    for (auto& answer : m_answers) {
      all.push_back(*std::move(answer));
    }
    return all;
  }

 private:
  static constexpr Millis least_patience{50};

  void put(std::size_t which, Result<T> answer)
  {
    {
      const std::lock_guard guard(m_mutex);
      m_good = m_good || answer;
      m_answers[which] = std::move(answer);
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(m_news.get(), &one, sizeof one);
  }

  void await(const Clock& clock, const CallLimits& limit)
  {
    const Instant start = clock.now();
    CallLimits patience = limit;
    for (bool waits_for_good = true;;) {
      {
        const std::lock_guard guard(m_mutex);
        if (std::all_of(m_answers.begin(), m_answers.end(), [](const auto& answer) { return answer.has_value(); })) {
          return;
        }
        if (m_good && waits_for_good) {
          waits_for_good = false;
          const Instant now = clock.now();
          patience.deadline =
              std::min(limit.deadline, now + std::max<Instant::duration>(least_patience, 2 * (now - start)));
        }
      }
      const Waited waited = wait_for(m_news.get(), POLLIN, clock, patience);
      if (waited == Waited::stopped || (waited == Waited::late && !waits_for_good)) {
        return;
      }
      if (waited == Waited::late) {
        join();  // they have the same limit, and say what they were waiting for
        return;
      }
      std::uint64_t count = 0;
      [[maybe_unused]] const auto drained = ::read(m_news.get(), &count, sizeof count);
    }
  }

  void end()
  {
    m_over.request();
    join();
  }

  void join()
  {
    for (std::thread& thread : m_threads) {
      thread.join();
    }
    m_threads.clear();
  }

  std::mutex m_mutex;
  std::vector<std::optional<Result<T>>> m_answers;  // guarded by m_mutex
  bool m_good = false;                              // as well: one is no Error
  Fd m_news;
  StopSource m_over;
  std::vector<std::thread> m_threads;
};

}  // namespace rlock
