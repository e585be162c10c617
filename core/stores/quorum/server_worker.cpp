// SPDX-License-Identifier: Apache-2.0
#include "stores/quorum/server_worker.h"

#include "base/stop.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace rlock {

ServerWorker::ServerWorker(QuorumServer server) : m_server(std::move(server)) {}

void ServerWorker::stop_thread()
{
  if (!m_thread.joinable()) {
    return;
  }
  {
    const MutexLock lock(m_mutex);
    m_over = true;
    interrupt();
  }
  m_news.notify_one();
  m_thread.join();
  const MutexLock lock(m_mutex);
  m_over = false;
}

bool ServerWorker::post(std::string topic, PostMode mode, Task task)
{
  bool unresponsive = false;
  {
    const MutexLock lock(m_mutex);
    unresponsive = m_failed || m_busy || !m_posted.empty();
    if (mode == PostMode::interrupt) {
      interrupt();
    }
    std::erase_if(m_posted, [&](const Posted& earlier) {
      return earlier.topic == topic && (mode != PostMode::repeat || earlier.mode == PostMode::repeat);
    });
    m_posted.push_back({std::move(topic), mode, std::move(task)});
  }
  if (!m_thread.joinable()) {
    try {
      m_thread = signal_blocked_thread([this] { work(); });
    } catch (const std::system_error&) {
      return true;
    }
  }
  m_news.notify_one();
  return unresponsive;
}

void ServerWorker::interrupt()
{
  if (m_busy && !m_interrupted) {
    m_interrupted = true;
    m_stop.request();
  }
}

void ServerWorker::interrupt_for_next()
{
  const MutexLock lock(m_mutex);
  if (std::ranges::any_of(m_posted, [](const Posted& waiting) { return waiting.mode != PostMode::repeat; })) {
    interrupt();
  }
}

bool ServerWorker::is_idle() const
{
  const MutexLock lock(m_mutex);
  return !m_busy && m_posted.empty();
}

void ServerWorker::work()
{
  MutexLock lock(m_mutex);
  for (;;) {
    while (!m_over && m_posted.empty()) {
      lock.wait(m_news);
    }
    if (m_over) {
      return;
    }
    if (std::exchange(m_interrupted, false)) {
      m_stop.withdraw();
    }
    const Posted next = begin_next();
    const CallLimits limit{.deadline = far_future, .stop = m_stop.token()};
    lock.unlock();
    const bool answered = next.task(m_server, limit);
    lock.lock();
    end(answered);
  }
}

void ServerWorker::work_here(const CallLimits& limit)
{
  MutexLock lock(m_mutex);
  while (!m_posted.empty()) {
    const Posted next = begin_next();
    lock.unlock();
    const bool answered = next.task(m_server, limit);
    lock.lock();
    end(answered);
  }
}

ServerWorker::Posted ServerWorker::begin_next()
{
  Posted next = std::move(m_posted.front());
  m_posted.pop_front();
  m_busy = true;
  return next;
}

void ServerWorker::end(bool answered)
{
  m_busy = false;
  m_failed = !answered;
}

}  // namespace rlock
