// SPDX-License-Identifier: Apache-2.0
#include "judge/faults.h"

#include "support/wait_until.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

namespace rlock::judge {
namespace {

// Does it to each target. An exception (a fixture's assertion) means that the fault was not done there.
bool each_of(const std::vector<ServerTarget>& targets, const std::function<bool(const ServerTarget&)>& act)
{
  bool done = false;
  for (const ServerTarget& target : targets) {
    try {
      done = act(target) || done;
    } catch (...) {  // doctest's assertions throw a type that is no std::exception
    }
  }
  return done;
}

}  // namespace

Millis some_time(Rng& rng)
{
  struct Range {
    std::uint64_t percent;
    Millis from;
    Millis to;
  };
  constexpr Range ranges[] = {
      {60, Millis(20), Millis(600)}, {30, Millis(600), Millis(3000)}, {10, Millis(3000), Millis(6000)}};
  std::uint64_t draw = below(rng, 100);
  const auto* range = std::begin(ranges);
  while (draw >= range->percent) {
    draw -= range->percent;
    ++range;
  }
  return range->from + Millis(below(rng, static_cast<std::uint64_t>((range->to - range->from).count())));
}

ServerFault guarded_fault(std::string name, Excuse excuse, std::function<bool(Rng&)> act)
{
  // An exception says that a condition was awaited in vain; what the fault excuses may have happened before.
  const auto guarded = [excuse, act = std::move(act)](Rng& rng) {
    try {
      return Hit{.done = act(rng), .key = {}};
    } catch (...) {
      return Hit{.done = excuse != Excuse::none, .key = {}};
    }
  };
  return {.name = std::move(name), .excuse = excuse, .act = guarded};
}

ServerFault make_fault(const Recipe& recipe, const Choose& choose, const Words& keys)
{
  const auto act = [recipe, choose, keys](Rng& rng) {
    const std::string& key = keys[below(rng, keys.size())];
    std::vector<ServerTarget> targets;
    each_of({ServerTarget{}}, [&](const ServerTarget&) { return !(targets = choose(rng, key)).empty(); });
    bool done = each_of(targets, [&](const ServerTarget& target) { return recipe.begin(target, key, rng); });
    if (recipe.end) {
      std::this_thread::sleep_for(some_time(rng));
      done = each_of(targets, [&](const ServerTarget& target) { return recipe.end(target, key); }) || done;
    }
    return Hit{.done = done, .key = recipe.removes_key ? key : ""};
  };
  return {.name = recipe.name, .excuse = recipe.excuse, .act = act};
}

void add_faults(std::vector<ServerFault>& faults, std::span<const Recipe> recipes, const Choose& choose,
                const Words& keys)
{
  for (const Recipe& recipe : recipes) {
    faults.push_back(make_fault(recipe, choose, keys));
  }
}

}  // namespace rlock::judge
