// SPDX-License-Identifier: Apache-2.0
// Relays between the nodes of an etcd cluster, which can keep everything away from one node that the others send to it. So a leader
// that was stopped does not hear of a new leader before its own election timeout, and answers clients meanwhile.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>
#include "base/fd.h"
#include "base/stop.h"

namespace rlock::test {

class EtcdPeers {
 public:
  // The ports on which the nodes expect their peers.
  explicit EtcdPeers(std::vector<std::uint16_t> ports);
  ~EtcdPeers();
  EtcdPeers(const EtcdPeers&) = delete;
  EtcdPeers& operator=(const EtcdPeers&) = delete;

  // Where the other nodes reach the node.
  [[nodiscard]] std::uint16_t port(std::size_t node) const { return m_relays[node].port; }
  // From now on no byte passes from or to the node. `member`: its number in etcd, which it names in its requests.
  void cut_off(std::size_t node, std::uint64_t member);
  // Everything passes again. Connections that have lost bytes end.
  void join();

 private:
  struct Relay {
    std::uint16_t to;
    std::uint16_t port = 0;
    Fd listener = {};
  };
  struct Link {
    std::size_t to;  // the node
    Fd client;
    Fd server;
    std::string from = {};  // the member that connected, in hexadecimal digits; empty: it has said nothing yet
    bool has_lost = false;  // bytes, since the node was cut off
  };
  struct Cut {
    std::size_t node;
    std::string member;
  };
  void relay();
  bool pass_on(Link& link, const Fd& from, const Fd& to) const;
  [[nodiscard]] bool is_cut(const Link& link) const;
  void accept(std::size_t node);

  std::vector<Relay> m_relays;
  std::list<Link> m_links;  // only used by m_thread
  mutable std::mutex m_mutex;
  std::optional<Cut> m_cut;  // guarded by m_mutex
  StopSource m_over;
  std::thread m_thread;
};

}  // namespace rlock::test
