// SPDX-License-Identifier: Apache-2.0
// Who the master is, by what its sentinels say. Private to wire.
#pragma once

#include "net/connection.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace rlock {

// What one sentinel said.
struct SentinelReply {
  Connection sentinel;
  std::optional<HostPort> master;  // missing: it knows no master of that name
  std::uint64_t epoch = 0;         // of its knowledge: grows with each fail-over
};

struct FoundMaster {
  Endpoint endpoint;
  Connection sentinel;  // that named it
};

// Not thread-safe; may move between threads. Several sentinels are asked at once, each on a thread that has ended when the
// question is answered.
class Discovery {
 public:
  // `endpoint` is of Kind::sentinel; `clock` must outlive it.
  Discovery(const Endpoint& endpoint, const Clock& clock);

  // All are asked, and whose knowledge is newest is believed: one that was away during a fail-over still names the old master
  // for a while, and so does that one itself. Who takes much longer than the first to answer is not waited for.
  //   unreachable  none of them answers
  //   config       none of them knows a master of that name; or they are no sentinels
  //   refused, interrupted, os
  Result<FoundMaster> find(const CallLimits& limit);

  // Asks one of them. False: it names another master than this one. Without an answer soon nothing is known: true.
  bool still_names(const Endpoint& master, const CallLimits& limit);

 private:
  using Answers = std::vector<Result<SentinelReply>>;

  Result<SentinelReply> ask(const HostPort& at, const CallLimits& limit) const;
  Answers ask_all(const CallLimits& limit) const;
  [[nodiscard]] Error nobody_knows(const Answers& answers) const;

  Endpoint m_endpoint;
  const Clock* m_clock;
  std::size_t m_next = 0;  // whom to ask when one is enough
};

}  // namespace rlock
