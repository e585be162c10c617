// SPDX-License-Identifier: Apache-2.0
// The event log of a lock: a node for each entry. Private to stores/zookeeper.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "engine/record_backend.h"
#include "stores/zookeeper/zookeeper_client.h"
#include "stores/zookeeper/zookeeper_layout.h"

namespace rlock::zookeeper {

// Threads: as Client. What it refers to must outlive it.
class EventNodes {
 public:
  EventNodes(Client& client, const Layout& layout, bool is_private)
      : m_client(client), m_layout(layout), m_is_private(is_private)
  {
  }

  // Backend::events of each lock.
  Result<std::vector<std::vector<std::string>>> read_each(std::span<const std::string_view> names,
                                                          const CallLimits& limit);

  // Adds the parts of a commit that change the log. `asks_first`: which entries are there. Without that, the parts take it that the log
  // has a directory and none of the entries that are written, and fail where this is wrong.
  Result<Done> add_to(std::vector<Operation>& parts, std::string_view name, const record::LogChange& log,
                      bool asks_first, const CallLimits& limit);

 private:
  Client& m_client;
  const Layout& m_layout;
  const bool m_is_private;
};

}  // namespace rlock::zookeeper
