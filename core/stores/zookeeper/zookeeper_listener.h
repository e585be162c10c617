// SPDX-License-Identifier: Apache-2.0
// The messages to a client that listens: the data of an ephemeral node for each channel, which the client watches. Private to
// stores/zookeeper.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>
#include "base/fd.h"
#include "engine/script_host.h"
#include "stores/zookeeper/zookeeper_client.h"
#include "stores/zookeeper/zookeeper_layout.h"

namespace rlock::zookeeper {

class WatchingSource;

// The client of the requests, with what its listeners share: one connection carries the events of all of them. Its session is needed
// while a listener or a presence (NodePresences::shares_session) has nodes in it.
struct SharedClient {
  std::shared_ptr<Client> client;
  std::set<std::string>
      changed;  // watched nodes of which an event has come, and which their listener has not read again
  std::vector<WatchingSource*> sources = {};
  [[nodiscard]] bool has_listeners() const { return !sources.empty(); }
};

// Shares the connection with the requests.
class WatchingSource final : public MessageSource {
 public:
  WatchingSource(std::shared_ptr<SharedClient> shared, Layout layout, const Clock& clock);
  ~WatchingSource() override;
  WatchingSource(const WatchingSource&) = delete;
  WatchingSource& operator=(const WatchingSource&) = delete;

  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override;
  Result<std::optional<Message>> next(const CallLimits& limit) override;
  [[nodiscard]] int fd() const override;

  // The source gets the message when the node is gone, and waits for no other node for this channel any more. False: it does not
  // listen to the channel, or the node cannot be watched.
  bool tell_when_gone(const std::string& path, const Message& message, const CallLimits& limit);

 private:
  struct Node {
    std::string lock;
    std::string channel;
    std::string path;
    std::int64_t last = 0;  // the number of the last message that was read
  };

  // A node of another owner, whose end is a message.
  struct Foreign {
    std::string path;
    Message at_end;
  };

  Result<Done> make(Node& node, const CallLimits& limit);
  Result<Done> take_events(const CallLimits& limit);
  Result<Done> read_changed(const CallLimits& limit);
  Result<Done> take_news(Node& node, const Answer& answer);
  [[nodiscard]] bool must_read(const std::string& path) const;
  [[nodiscard]] bool must_read_any() const;
  [[nodiscard]] bool is_connected_anew() const { return m_connection != m_shared->client->connection_number(); }

  std::shared_ptr<SharedClient> m_shared;
  Client& m_client;
  const Layout m_layout;
  const Clock& m_clock;
  SystemRng m_rng;
  std::vector<Node> m_nodes;
  std::vector<Foreign> m_foreign;
  std::deque<Message> m_heard;
  std::uint64_t m_session = 0;     // in which the nodes are
  std::uint64_t m_connection = 0;  // on which they are watched
  Fd m_readable;
};

}  // namespace rlock::zookeeper
