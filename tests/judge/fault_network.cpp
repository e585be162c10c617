// SPDX-License-Identifier: Apache-2.0
// The faults of the way to a server.
#include "judge/faults.h"

#include <array>

namespace rlock::judge {
namespace {

// All connections of the server, or some of them.
unsigned some_percent(Rng& rng)
{
  constexpr std::array<unsigned, 4> shares{100, 100, 50, 20};
  return shares[below(rng, shares.size())];
}

Recipe network(std::string name, Harm harm, Direction direction = Direction::both, Millis longest_pause = Millis(0))
{
  const auto begin = [=](const ServerTarget& target, const std::string&, Rng& rng) {
    const auto pause = longest_pause == Millis(0)
                           ? Millis(0)
                           : Millis(1 + below(rng, static_cast<std::uint64_t>(longest_pause.count())));
    target.proxy->begin(
        {.harm = harm, .direction = direction, .pause = pause, .percent = some_percent(rng), .seed = rng.next()});
    return false;  // not known before the end
  };
  const auto end = [](const ServerTarget& target, const std::string&) { return target.proxy->end() > 0; };
  return {.name = std::move(name), .begin = begin, .end = end};
}

}  // namespace

std::span<const Recipe> network_recipes()
{
  static const std::vector<Recipe> all{
      network("net-delay", Harm::delay, Direction::both, Millis(400)),
      network("net-drip", Harm::drip, Direction::both, Millis(20)),
      network("net-hold", Harm::hold),
      network("net-hold-requests", Harm::hold, Direction::to_server),
      network("net-hold-replies", Harm::hold, Direction::to_client),
      network("net-swallow", Harm::swallow),
      network("net-swallow-replies", Harm::swallow, Direction::to_client),
      network("net-cut", Harm::cut),
      network("net-half-open-client", Harm::cut, Direction::to_server),
      network("net-half-open-server", Harm::cut, Direction::to_client),
  };
  return all;
}

}  // namespace rlock::judge
