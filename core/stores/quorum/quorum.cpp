// SPDX-License-Identifier: Apache-2.0
#include "stores/quorum/quorum.h"

namespace rlock {

std::size_t quorum_size(QuorumRule rule, const LockKind& kind, std::size_t servers)
{
  if (rule == QuorumRule::all) {
    return servers;
  }
  const auto* permits = std::get_if<Permits>(&kind);
  const std::size_t holders = permits != nullptr ? std::max(permits->limit, 1U) : 1;
  return servers * holders / (holders + 1) + 1;
}

Decision decide_grant(const Tally& tally, std::size_t quorum)
{
  if (tally.yes >= quorum) {
    return Decision::carried;
  }
  const std::size_t all = tally.yes + tally.no + tally.failed + tally.silent;
  if (tally.failed > all - quorum) {
    return Decision::unknown;
  }
  const bool can_be_carried = tally.yes + tally.silent >= quorum;
  return !can_be_carried && tally.yes + tally.no >= quorum ? Decision::refused : Decision::open;
}

Decision decide_proof(const Tally& tally, std::size_t quorum)
{
  if (tally.yes >= quorum) {
    return Decision::carried;
  }
  const std::size_t all = tally.yes + tally.no + tally.failed + tally.silent;
  if (tally.no > all - quorum) {
    return Decision::refused;
  }
  const bool open = tally.yes + tally.silent >= quorum || tally.no + tally.silent > all - quorum;
  return open ? Decision::open : Decision::unknown;
}

}  // namespace rlock
