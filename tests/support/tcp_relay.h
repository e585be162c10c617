// SPDX-License-Identifier: Apache-2.0
// A relay between two servers of a test on 127.0.0.1. After freeze() nothing arrives any more on either side, as behind a link that is
// cut; thaw() ends these connections, and new ones pass again.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <thread>
#include "base/fd.h"
#include "base/stop.h"

namespace rlock::test {

class TcpRelay {
 public:
  explicit TcpRelay(std::uint16_t to);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  [[nodiscard]] std::uint16_t port() const { return m_port; }
  void freeze() { m_is_frozen = true; }
  void thaw()
  {
    m_ends_links = true;
    m_is_frozen = false;
  }
  [[nodiscard]] int connections() const { return m_connections; }

 private:
  struct Link {
    Fd client;
    Fd server;
  };
  void relay();
  bool pass_on(const Fd& from, const Fd& to) const;

  std::uint16_t m_to;
  std::uint16_t m_port = 0;
  Fd m_listener;
  std::list<Link> m_links;  // only used by m_thread
  std::atomic<bool> m_is_frozen = false;
  std::atomic<bool> m_ends_links = false;  // they have lost bytes
  std::atomic<int> m_connections = 0;
  StopSource m_over;
  std::thread m_thread;
};

}  // namespace rlock::test
