// SPDX-License-Identifier: Apache-2.0
// Finds the master of a group by its sentinels. Private to server.
#pragma once

#include "net/connection.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace rlock {

// The answer of one sentinel.
struct SentinelReply {
  Connection sentinel;
  std::optional<HostPort> master;  // nullopt: the sentinel knows no master of that name
  std::uint64_t epoch = 0;         // config-epoch, which grows with each fail-over
};

struct FoundMaster {
  Endpoint endpoint;
  Connection sentinel;  // the sentinel that named the master
};

// Threads: not thread-safe; may move between threads. find() uses a thread for each sentinel (parallel_query).
class Discovery {
 public:
  // `endpoint` is of Kind::sentinel; `clock` must outlive the object.
  Discovery(const Endpoint& endpoint, const Clock& clock);

  // Asks all sentinels and takes the answer with the greatest epoch, because a sentinel that was away during a fail-over names
  // the old master for a while, and the old master still says that it is a master. Does not wait for sentinels that take much
  // longer than the first sentinel.
  //   unreachable  no sentinel answers
  //   config       no sentinel knows a master of that name; or the servers are no sentinels
  //   refused, interrupted, os
  Result<FoundMaster> find(const CallLimits& limit);

  // Asks one sentinel whether this server is the master. Missing: it does not know, or does not answer soon; the next call
  // asks the next sentinel.
  std::optional<bool> still_names(const Endpoint& master, const CallLimits& limit);

 private:
  using Answers = std::vector<Result<SentinelReply>>;

  Result<SentinelReply> ask(const HostPort& at, const CallLimits& limit) const;
  Answers ask_all(const CallLimits& limit) const;
  [[nodiscard]] Error no_master_known(const Answers& answers) const;

  Endpoint m_endpoint;
  const Clock* m_clock;
  std::size_t m_next = 0;  // the sentinel that still_names asks
};

}  // namespace rlock
