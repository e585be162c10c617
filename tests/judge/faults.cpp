// SPDX-License-Identifier: Apache-2.0
#include "judge/faults.h"

#include "support/wait_until.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

namespace rlock::judge {
namespace {

// An exception (a fixture's assertion) means that it was not done. doctest throws a type that is no std::exception.
bool succeeds(const std::function<bool()>& act)
{
  try {
    return act();
  } catch (...) {
    return false;
  }
}

bool each_of(const std::vector<ServerTarget>& targets, const std::function<bool(const ServerTarget&)>& act)
{
  bool done = false;
  for (const ServerTarget& target : targets) {
    done = succeeds([&] { return act(target); }) || done;
  }
  return done;
}

class FailOverWatch {
 public:
  explicit FailOverWatch(std::function<std::string()> masters) : m_masters(std::move(masters)) { has_changed(); }

  [[nodiscard]] Instant since() const { return m_since; }  // of the last look

  bool has_changed()
  {
    const Instant now = BootClock().now();
    std::string masters;
    if (!succeeds([&] { return !(masters = m_masters()).empty(); })) {  // the servers do not agree now
      return false;
    }
    m_since = now;
    return std::exchange(m_known, masters) != masters;
  }

 private:
  std::function<std::string()> m_masters;
  std::string m_known;
  Instant m_since{};
};

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
  // What the fault excuses may have happened before a condition was awaited in vain.
  const auto guarded = [excuse, act = std::move(act)](Rng& rng) {
    return Hit{.done = succeeds([&] { return act(rng); }) || excuse != Excuse::none};
  };
  return {.name = std::move(name), .excuse = excuse, .act = guarded};
}

ServerFault make_fault(const Recipe& recipe, const Choose& choose, const Words& keys)
{
  const auto act = [recipe, choose, keys](Rng& rng) {
    const std::string& key = keys[below(rng, keys.size())];
    std::vector<ServerTarget> targets;
    succeeds([&] { return !(targets = choose(rng, key)).empty(); });
    bool done = each_of(targets, [&](const ServerTarget& target) { return recipe.begin(target, key, rng); });
    if (recipe.end) {
      std::this_thread::sleep_for(some_time(rng));
      done = each_of(targets, [&](const ServerTarget& target) { return recipe.end(target, key); }) || done;
    }
    return Hit{.done = done, .key = recipe.removes_key ? key : "", .failed_over_since = {}};
  };
  return {.name = recipe.name, .excuse = recipe.excuse, .act = act};
}

void watch_fail_overs(std::vector<ServerFault>& faults, std::function<std::string()> masters, const Words& expected)
{
  const auto watch = std::make_shared<FailOverWatch>(std::move(masters));
  for (ServerFault& fault : faults) {
    const bool is_expected = std::find(expected.begin(), expected.end(), fault.name) != expected.end();
    fault.act = [watch, is_expected, act = std::move(fault.act)](Rng& rng) {
      const Instant since = watch->since();
      const bool before = watch->has_changed();
      Hit hit = act(rng);
      const bool meanwhile = watch->has_changed() && !is_expected;
      if (before || meanwhile) {
        hit.failed_over_since = since;
      }
      return hit;
    };
  }
}

void add_faults(std::vector<ServerFault>& faults, std::span<const Recipe> recipes, const Choose& choose,
                const Words& keys)
{
  for (const Recipe& recipe : recipes) {
    faults.push_back(make_fault(recipe, choose, keys));
  }
}

}  // namespace rlock::judge
