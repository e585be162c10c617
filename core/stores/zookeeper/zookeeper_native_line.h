// SPDX-License-Identifier: Apache-2.0
// The lines in which InterProcessMutex of Curator, and Lock of kazoo, wait. Private to stores/zookeeper.
//
// The line of the lock KEY is the children of the node CHROOT/KEY. A contender is ephemeral and sequential:
//   _c_UUID-lock-NUMBER  of Curator, in a container. Curator sorts all children by what is behind "lock-"
//   HEX__lock__NUMBER    of kazoo, which regards no other children
//   _c_UUID-__READ__NUMBER, _c_UUID-__WRIT__NUMBER
//                        of InterProcessReadWriteLock of Curator, in a container. It sorts all children by what is behind these marks. A
//                        writer holds the lock when it is the first child, a reader when no writer stands in front of it. A writer that
//                        also reads makes the reader's node with the number of its writer's node
// InterProcessMutex and InterProcessReadWriteLock do not exclude each other, so no contender is put into a line in which one of the
// other stands.
// The number is known only when the node is made, so a contender goes by the part before it: "_c_UUID", or HEX. Its order is the czxid.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "engine/native_line.h"
#include "stores/zookeeper/zookeeper_listener.h"

namespace rlock::zookeeper {

inline constexpr record::LineFormat curator_read_write{NativeFormat::curator, true};

// Pure functions.

// Those of the children that the clients of this format regard, in their order.
std::vector<std::string> line_in(record::LineFormat format, std::vector<std::string> children);
// The name of the contender whose node it is.
std::string contender_in(record::LineFormat format, std::string_view node);
// Whether the node's name is that of a contender of this format.
bool is_contender(record::LineFormat format, std::string_view node);
// The first of the children, which are in their order, that keeps the one of this name from the lock, or else its own node. Of a line
// in which it does not stand: the first that would keep a new contender (LookFor::reads) from it; empty: none.
std::string first_in(record::LineFormat format, const std::vector<std::string>& line, const std::string& own,
                     bool reads);
// Of a line of InterProcessReadWriteLock: the nodes that hold the lock.
std::vector<std::string> holding_in(const std::vector<std::string>& line);
// The node below `chroot` whose children are the line.
std::string line_path(std::string_view chroot, std::string_view lock);

class NativeNodes final : public record::NativeLine {
 public:
  // `shared` must outlive this.
  NativeNodes(record::LineFormat format, SharedClient& shared, std::string chroot)
      : m_format(format), m_shared(shared), m_chroot(std::move(chroot))
  {
  }

  [[nodiscard]] record::LineFormat format() const override { return m_format; }
  [[nodiscard]] bool binds_sessions() const override { return true; }
  [[nodiscard]] Result<Done> check_name(const LockName& lock) const override;
  [[nodiscard]] std::string contender_for(const record::PresenceId& presence) const override;
  Result<record::LineView> look(const LockName& lock, const record::LookFor& what, const CallLimits& limit) override;
  bool tell_when_gone(const LockName& lock, const std::string& contender, std::int64_t since, const News& news,
                      const CallLimits& limit) override;

  // The parts of a commit that change the line. Makes the directory of the line where the last look found none.
  Result<std::vector<Operation>> change(std::string_view lock, const record::LineChange& change,
                                        const CallLimits& limit);

 private:
  [[nodiscard]] std::string path_of(std::string_view lock) const { return line_path(m_chroot, lock); }
  [[nodiscard]] std::string node_of(std::string_view contender) const;
  [[nodiscard]] record::LineView named_view(const record::LookFor& what) const;
  [[nodiscard]] std::vector<record::Contender> waiting_behind(const record::LineView& view) const;
  Result<Done> read_line(std::string_view lock, const CallLimits& limit);
  [[nodiscard]] Result<Done> check_exclusion(std::string_view lock) const;
  Result<Done> make_directory(const std::string& path, const CallLimits& limit);

  const record::LineFormat m_format;
  SharedClient& m_shared;
  const std::string m_chroot;
  // At the last look.
  std::string m_lock;
  bool m_has_directory = false;
  std::vector<std::string> m_nodes;
};

}  // namespace rlock::zookeeper
