// SPDX-License-Identifier: Apache-2.0
#include "sim/shrink.h"

namespace rlock::sim {
namespace {

constexpr int most_tries = 600;

class Shrinking {
 public:
  Shrinking(Schedule schedule, const std::function<bool(const Schedule&)>& breaks_a_rule)
      : m_schedule(std::move(schedule)), m_breaks_a_rule(breaks_a_rule)
  {
  }

  Schedule run()
  {
    while (leave_out(&Schedule::faults, 0) || leave_out(&Schedule::clients, 1) || simplify_clients()) {
    }
    return m_schedule;
  }

 private:
  // True: the change is kept.
  bool keep(const Schedule& shorter)
  {
    if (m_tries >= most_tries || !(++m_tries, m_breaks_a_rule(shorter))) {
      return false;
    }
    m_schedule = shorter;
    return true;
  }

  template <typename Part>
  bool leave_out(std::vector<Part> Schedule::*parts, std::size_t least)
  {
    bool changed = false;
    for (std::size_t at = (m_schedule.*parts).size(); at-- > 0 && (m_schedule.*parts).size() > least;) {
      Schedule shorter = m_schedule;
      (shorter.*parts).erase((shorter.*parts).begin() + static_cast<std::ptrdiff_t>(at));
      changed = keep(shorter) || changed;
    }
    return changed;
  }

  bool simplify_clients()
  {
    bool changed = false;
    for (std::size_t at = 0; at < m_schedule.clients.size(); ++at) {
      changed = simplify(at, &ClientPlan::runs, m_schedule.clients[at].runs - 1, 1) || changed;
      changed = simplify(at, &ClientPlan::ignores_term, false, false) || changed;
      changed = simplify(at, &ClientPlan::automatic, true, true) || changed;
      changed = simplify(at, &ClientPlan::clock_rate, 1.0, 1.0) || changed;
      changed = simplify(at, &ClientPlan::nests, false, false) || changed;
      changed = simplify(at, &ClientPlan::min_hold, Millis{0}, Millis{0}) || changed;
    }
    return changed;
  }

  template <typename Value>
  bool simplify(std::size_t at, Value ClientPlan::*what, Value value, Value least)
  {
    Schedule simpler = m_schedule;
    if (value < least || simpler.clients[at].*what == value) {
      return false;
    }
    simpler.clients[at].*what = value;
    return keep(simpler);
  }

  Schedule m_schedule;
  const std::function<bool(const Schedule&)>& m_breaks_a_rule;
  int m_tries = 0;
};

}  // namespace

Schedule shrink(Schedule schedule, const std::function<bool(const Schedule&)>& breaks_a_rule)
{
  return Shrinking(std::move(schedule), breaks_a_rule).run();
}

}  // namespace rlock::sim
