// SPDX-License-Identifier: Apache-2.0
// Asks several targets one question at the same time. `parallel_query` starts a thread for each target; the threads end with
// the query. A caller that has threads already, as the quorum has, lets them put their replies into a PendingReplies.
#pragma once

#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/stop.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace rlock {

// The replies in the order of the targets; nullopt: no reply yet.
template <typename T>
using Replies = std::vector<std::optional<T>>;

template <typename T>
bool all_replied(const Replies<T>& replies)
{
  return std::all_of(replies.begin(), replies.end(), [](const auto& reply) { return reply.has_value(); });
}

// Collects the replies. Threads: one thread waits and takes; any thread may put.
template <typename T>
class PendingReplies {
 public:
  // Without a free descriptor wait() looks for replies every few milliseconds.
  explicit PendingReplies(std::size_t targets) : m_replies(targets), m_news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // A reply that comes after take() is dropped.
  void put(std::size_t target, T reply)
  {
    const MutexLock lock(m_mutex);
    if (m_open) {
      m_replies[target].emplace(std::move(reply));
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(m_news.get(), &one, sizeof one);
    }
  }

  // Returns when `enough(replies so far)` is true, at the deadline, or when the stop is requested, whichever is first.
  template <typename Enough>
  void wait(const Clock& clock, const CallLimits& limit, Enough enough)
  {
    for (;;) {
      {
        const MutexLock lock(m_mutex);
        std::uint64_t seen = 0;
        [[maybe_unused]] const auto got = ::read(m_news.get(), &seen, sizeof seen);
        if (enough(std::as_const(m_replies))) {
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

  Replies<T> take()
  {
    const MutexLock lock(m_mutex);
    m_open = false;
    return std::move(m_replies);
  }

 private:
  static constexpr Millis look_again{5};  // the pause between two looks, where there was no descriptor for m_news

  Mutex m_mutex;
  Replies<T> m_replies GUARDED_BY(m_mutex);
  bool m_open GUARDED_BY(m_mutex) = true;
  Fd m_news;  // readable when a reply was put since wait() looked
};

// Threads that are joined at the end of the scope at the latest. Not thread-safe.
class JoinedThreads {
 public:
  JoinedThreads() = default;
  ~JoinedThreads()
  {
    for (std::thread& thread : m_threads) {
      thread.join();
    }
  }
  JoinedThreads(const JoinedThreads&) = delete;
  JoinedThreads& operator=(const JoinedThreads&) = delete;

  // False: the system has no thread left, and `body` has not run.
  template <typename Body>
  bool start(const Body& body)
  {
    m_threads.reserve(m_threads.size() + 1);  // so that push_back cannot fail after the thread has started
    try {
      m_threads.push_back(signal_blocked_thread(body));
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

 private:
  std::vector<std::thread> m_threads;
};

// Calls `question(target, limits)` for each target, all within `limit`, and returns the replies in the order of the
// targets. `wait(pending)` returns when the caller has enough replies; then the function stops the open questions, unless
// their deadline has passed. All threads have ended when the function returns, so the process may fork. Where the system has
// no thread left, the calling thread asks. Throws std::system_error when there is no free descriptor.
template <typename Target, typename Question, typename Wait>
auto parallel_query(const std::vector<Target>& targets, const Clock& clock, const CallLimits& limit,
                    const Question& question, const Wait& wait)
{
  using T = std::invoke_result_t<const Question&, const Target&, const CallLimits&>;
  PendingReplies<T> pending(targets.size());
  StopSource enough;
  {
    JoinedThreads threads;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto ask = [&, i](StopToken stop) {
        pending.put(i, question(targets[i], CallLimits{.deadline = limit.deadline, .stop = stop}));
      };
      if (!threads.start([ask, stop = enough.token()] { ask(stop); })) {
        ask(limit.stop);
      }
    }
    wait(pending);
    if (clock.now() < limit.deadline) {
      enough.request();
    }
  }
  std::vector<T> replies;
  for (auto& reply : pending.take()) {
    replies.push_back(*std::move(reply));
  }
  return replies;
}

// The same for a caller that wants every reply.
template <typename Target, typename Question>
auto parallel_query(const std::vector<Target>& targets, const Clock& clock, const CallLimits& limit,
                    const Question& question)
{
  return parallel_query(targets, clock, limit, question, [&](auto& pending) {
    pending.wait(clock, {.deadline = far_future, .stop = limit.stop},
                 [](const auto& replies) { return all_replied(replies); });
  });
}

}  // namespace rlock
