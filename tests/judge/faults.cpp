// SPDX-License-Identifier: Apache-2.0
#include "judge/faults.h"

#include "support/wait_until.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

namespace rlock::judge {
namespace {

// An exception (a fixture gives up) means that it was not done.
Hit attempt(const std::string& name, const std::function<bool()>& act)
{
  try {
    return {.done = act()};
  } catch (const std::exception& failed) {
    std::cerr << name + ": " + failed.what() + "\n";
  } catch (...) {  // doctest throws a type that is no std::exception
    std::cerr << name + ": an assertion failed\n";
  }
  return {.gave_up = true};
}

void attempt_each(const Recipe& recipe, const std::vector<ServerTarget>& targets, Hit& hit,
                  const std::function<bool(const ServerTarget&)>& act)
{
  for (const ServerTarget& target : targets) {
    const Hit one = attempt(recipe.name, [&] { return act(target); });
    hit.done = hit.done || one.done;
    hit.gave_up = hit.gave_up || one.gave_up;
  }
}

class FailOverWatch {
 public:
  explicit FailOverWatch(std::function<std::string()> masters) : m_masters(std::move(masters)) { has_changed(); }

  [[nodiscard]] Instant since() const { return m_since; }  // of the last look

  bool has_changed()
  {
    const Instant now = BootClock().now();
    std::string masters;
    if (!attempt("ask for the masters", [&] { return !(masters = m_masters()).empty(); }).done) {
      return false;  // the servers do not agree now
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
      {60, Millis(20), Millis(600)}, {30, Millis(600), Millis(3000)}, {10, Millis(3000), longest_fault}};
  std::uint64_t draw = below(rng, 100);
  const auto* range = std::begin(ranges);
  while (draw >= range->percent) {
    draw -= range->percent;
    ++range;
  }
  return range->from + Millis(below(rng, static_cast<std::uint64_t>((range->to - range->from).count())));
}

ServerFault guarded_fault(const std::string& name, Excuse excuse, std::function<bool(Rng&)> act)
{
  // What the fault excuses may have happened before a condition was awaited in vain.
  const auto guarded = [name, excuse, act = std::move(act)](Rng& rng) {
    Hit hit = attempt(name, [&] { return act(rng); });
    hit.done = hit.done || excuse != Excuse::none;
    return hit;
  };
  return {.name = name, .excuse = excuse, .act = guarded};
}

ServerFault make_fault(const Recipe& recipe, const Choose& choose, const Words& keys)
{
  const auto act = [recipe, choose, keys](Rng& rng) {
    const std::string& key = keys[below(rng, keys.size())];
    std::vector<ServerTarget> targets;
    Hit hit = attempt(recipe.name, [&] {
      targets = choose(rng, key);
      return false;
    });
    hit.key = recipe.removes_key ? key : "";
    attempt_each(recipe, targets, hit, [&](const ServerTarget& target) { return recipe.begin(target, key, rng); });
    if (recipe.end) {
      std::this_thread::sleep_for(some_time(rng));
      attempt_each(recipe, targets, hit, [&](const ServerTarget& target) { return recipe.end(target, key); });
    }
    return hit;
  };
  return {.name = recipe.name, .excuse = recipe.excuse, .act = act};
}

void add_away(std::vector<ServerFault>& faults, const ReplicatedServers& servers)
{
  faults.push_back(guarded_fault("pause-master", Excuse::none, [servers](Rng& rng) {
    const auto longest = static_cast<std::uint64_t>(servers.fail_over_after.count()) / 4;
    return pause_server(*servers.master(rng), Millis(50 + below(rng, longest)));
  }));
  faults.push_back(guarded_fault("restart-master-with-data", Excuse::none, [servers](Rng& rng) {
    test::RedisServer& master = *servers.master(rng);
    master.kill_hard();
    master.restart();
    servers.await_master(master);
    return true;
  }));
  faults.push_back(guarded_fault("pause-replica", Excuse::none,
                                 [servers](Rng& rng) { return pause_server(*servers.replica(rng), some_time(rng)); }));
  faults.push_back(guarded_fault("restart-replica", Excuse::none, [servers](Rng& rng) {
    test::RedisServer& other = *servers.replica(rng);
    other.kill_hard();
    std::this_thread::sleep_for(some_time(rng));
    other.restart();
    servers.await_replica(other);
    return true;
  }));
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
      const bool meanwhile = watch->has_changed() && !(is_expected && hit.done);
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
