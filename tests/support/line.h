// SPDX-License-Identifier: Apache-2.0
// A server or a cluster, and holders and waiters of ours on one lock of it, "k".
#pragma once

#include "support/process.h"
#include "support/redis_cluster.h"
#include "support/redis_fixture.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rlock::test {

template <typename Server>
class LineAt {
 public:
  explicit LineAt(typename Server::Options options = {});

  // Has the lock when this returns; runs `job` under it.
  Process hold(const std::string& ttl, std::vector<std::string> job = {"sleep", "100"});

  // Stands in line before this returns. Its job writes its number and does `work`, words of a shell.
  void come(const std::string& ttl = "30s", const std::string& work = "", std::vector<std::string> options = {});
  void all_listen(std::size_t besides = 0);  // returns when they do, and so many holders, who do after a while

  [[nodiscard]] std::int64_t in_line() const;
  [[nodiscard]] pid_t holder() const;          // the process that has the lock; 0: nobody of ours
  [[nodiscard]] std::vector<int> ran() const;  // whose jobs began, in their order

  // rlock on this server, with words of one's own.
  [[nodiscard]] std::vector<std::string> rlock(const std::string& verb, std::vector<std::string> words) const;

  Server server;
  std::vector<Process> waiters;  // number i is the i-th that came

 private:
  std::filesystem::path m_log;
};

using Line = LineAt<RedisServer>;
using ClusterLine = LineAt<RedisCluster>;
extern template class LineAt<RedisServer>;
extern template class LineAt<RedisCluster>;

std::vector<int> numbers_below(int count);

}  // namespace rlock::test
