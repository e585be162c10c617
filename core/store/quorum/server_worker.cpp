// SPDX-License-Identifier: Apache-2.0
#include "store/quorum/server_worker.h"

#include "base/signal_blocked_thread.h"

#include <cstdint>
#include <system_error>
#include <utility>

#include <unistd.h>

namespace rlock {
namespace {

// A new one would take a descriptor, and there may be none.
void withdraw(const StopSource& stop)
{
  std::uint64_t requests = 0;
  [[maybe_unused]] const auto drained = ::read(stop.token().fd(), &requests, sizeof requests);
}

}  // namespace

ServerWorker::ServerWorker(QuorumServer server) : m_server(std::move(server)) {}

void ServerWorker::rest()
{
  if (!m_thread.joinable()) {
    return;
  }
  {
    const std::lock_guard guard(m_mutex);
    m_over = true;
    cut_off();
  }
  m_news.notify_one();
  m_thread.join();
  m_over = false;
}

bool ServerWorker::post(std::string topic, Word word, Task task)
{
  bool lame = false;
  {
    const std::lock_guard guard(m_mutex);
    lame = m_failed || m_busy || !m_posted.empty();
    if (word == Word::urgent) {
      cut_off();
    }
    std::erase_if(m_posted, [&](const Posted& earlier) {
      return earlier.topic == topic && (word != Word::further || earlier.word == Word::further);
    });
    m_posted.push_back({std::move(topic), word, std::move(task)});
  }
  if (!m_thread.joinable()) {
    try {
      m_thread = signal_blocked_thread([this] { work(); });
    } catch (const std::system_error&) {  // the next post tries again
      return true;
    }
  }
  m_news.notify_one();
  return lame;
}

void ServerWorker::cut_off()
{
  if (m_busy && !m_interrupted) {
    m_interrupted = true;
    m_stop.request();
  }
}

void ServerWorker::hurry()
{
  const std::lock_guard guard(m_mutex);
  if (!m_posted.empty()) {
    cut_off();
  }
}

bool ServerWorker::is_idle() const
{
  const std::lock_guard guard(m_mutex);
  return !m_busy && m_posted.empty();
}

void ServerWorker::work()
{
  std::unique_lock lock(m_mutex);
  for (;;) {
    m_news.wait(lock, [&] { return m_over || !m_posted.empty(); });
    if (m_over) {
      return;
    }
    if (std::exchange(m_interrupted, false)) {
      withdraw(m_stop);
    }
    const Posted next = std::move(m_posted.front());
    m_posted.pop_front();
    m_busy = true;
    const StopToken stop = m_stop.token();
    lock.unlock();
    const bool answered = next.task(m_server, stop);
    lock.lock();
    m_busy = false;
    m_failed = !answered;
  }
}

}  // namespace rlock
