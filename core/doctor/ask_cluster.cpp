// SPDX-License-Identifier: Apache-2.0
#include "doctor/ask_group.h"

#include <algorithm>
#include <array>

namespace rlock::doctor {
namespace {

HostPort address_in(const Reply& node)
{
  const bool complete = node.elements.size() >= 2;
  return complete ? HostPort{node.elements[0].text, static_cast<std::uint16_t>(node.elements[1].integer)} : HostPort{};
}

// Each range of slots: the first slot, the last one, the owner, the replicas. The cluster leaves out nodes that are
// down.
std::vector<SlotOwner> owners_in(const Reply& slots)
{
  std::vector<SlotOwner> owners;
  for (const Reply& range : slots.elements) {
    if (range.elements.size() < 3) {
      continue;
    }
    const HostPort at = address_in(range.elements[2]);
    const auto same = [&](const SlotOwner& each) { return each.at == at; };
    if (std::none_of(owners.begin(), owners.end(), same)) {
      owners.push_back({at, range.elements.size() - 3});
    }
  }
  return owners;
}

}  // namespace

ClusterFacts ask_cluster(Transport& transport, std::string_view route_key, Millis timeout, const Clock& clock)
{
  const auto ask = [&](std::string_view what) {
    return transport.call(route_key, std::array<std::string_view, 2>{"CLUSTER", what},
                          {clock.now() + timeout, StopToken::never()});
  };
  ClusterFacts facts;
  const auto info = ask("INFO");
  facts.info = info ? Result(Fields::of_info(info->text)) : info.error();
  const auto slots = ask("SLOTS");
  facts.owners = slots ? Result(owners_in(*slots)) : slots.error();
  return facts;
}

}  // namespace rlock::doctor
