// SPDX-License-Identifier: Apache-2.0
// The nodes in which the records of locks stand, below CHROOT/rlock. Pure functions. Private to stores/zookeeper.
//
//   locks/NAME             the record of a lock; the data begins with its face
//   locks/NAME/ID-CHANNEL  a listener: ephemeral; the data is the last messages to it
//   events/NAME/NUMBER     the event log: a node for each entry
//   presence/ID            a client that lives: ephemeral
//   deletions              its version counts the records that were deleted
//
// The version of a node begins at 0 again when the node is made again. So a commit also compares the version of `deletions`, and a
// version of a record never comes back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/reply.h"
#include "engine/record_backend.h"

namespace rlock::zookeeper {

class Layout {
 public:
  explicit Layout(const std::string& chroot) : m_root(chroot + "/rlock") {}
  [[nodiscard]] const std::string& root() const { return m_root; }
  [[nodiscard]] std::string deletions() const { return m_root + "/deletions"; }
  [[nodiscard]] std::string locks() const { return m_root + "/locks"; }
  [[nodiscard]] std::string record(std::string_view name) const;
  [[nodiscard]] std::string all_events() const { return m_root + "/events"; }
  [[nodiscard]] std::string events(std::string_view name) const;
  [[nodiscard]] std::string event(std::string_view name, std::int64_t id) const;
  [[nodiscard]] std::string presences() const { return m_root + "/presence"; }
  [[nodiscard]] std::string presence(std::string_view id) const { return presences() + "/" + std::string(id); }
  // All nodes that must be there, each behind its parent: of the chroot, and the directories.
  [[nodiscard]] std::vector<std::string> directories() const;

 private:
  std::string m_root;
};

// Whether ZooKeeper takes the path of a node that is not its own. Empty: the root.
bool is_path(std::string_view path);

// The name of a node for a text of any bytes, and back. nullopt: rlock makes no such node.
std::string node_name(std::string_view text);
std::optional<std::string> text_of_node(std::string_view name);

// `id`: of the listener.
std::string listener_name(std::string_view id, std::string_view lock, std::string_view channel);
// nullopt: the node is no listener.
std::optional<std::string> channel_of_listener(std::string_view name, std::string_view lock);

struct RecordData {
  record::Face face;
  std::string bytes;
};
std::string encoded(std::string_view bytes, const record::Face& face);
std::optional<RecordData> record_data(std::string_view data);

// The last messages to a listener, numbered from 1.
struct Inbox {
  std::int64_t last = 0;           // the number of the last message
  std::vector<std::string> texts;  // the oldest first
};
inline constexpr std::size_t longest_inbox = 32;
std::string encoded(const Inbox& inbox);
// Empty where the data is invalid.
Inbox inbox_of(std::string_view data);

}  // namespace rlock::zookeeper
