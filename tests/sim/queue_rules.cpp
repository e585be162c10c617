// SPDX-License-Identifier: Apache-2.0
#include "sim/queue_rules.h"

#include "base/defaults.h"

#include <algorithm>
#include <cstdlib>

namespace rlock::sim {
namespace {

constexpr double freezes_first = 4503599627370496;  // FREEZES_FIRST in lua/lib/names.lua
constexpr double priority_band = 8796093022208;     // PRIORITY_BAND

bool is_freeze(double score) { return score < 0; }
double arrival_of(double score, int priority)
{
  return is_freeze(score) ? score + freezes_first : score + priority * priority_band;
}

// Places of arguments of the script acquire.
constexpr std::size_t wait_mode_place = 3, ticket_place = 4, max_waiting_place = 7;

// Empty: it is missing.
std::string argument(const Words& request, std::size_t place)
{
  constexpr std::size_t common = 5;  // arguments that every verb has
  const std::size_t at = 3 + static_cast<std::size_t>(std::stoi(request.at(2))) + common + place;
  return at < request.size() ? request[at] : "";
}

}  // namespace

const std::string& caller_of(const Words& request)
{
  return request.at(3 + static_cast<std::size_t>(std::stoi(request.at(2))));
}

QueueRules::QueueRules(LockState& state, bool may_forget, std::function<void(const std::string&)> fail)
    : m_state(state), m_may_forget(may_forget), m_fail(std::move(fail))
{
}

void QueueRules::before_script()
{
  m_holder_before = m_state.exclusive_holder();
  m_queue_before = m_state.queue();
  m_priorities_before = m_state.priorities();
}

void QueueRules::after_script(const Words& request)
{
  if (m_state.latest_waiters() > 1) {
    m_fail("several waiters with --latest are in the queue after the script " + script_of(request));
  }
  check_joining(request);
  check_length(request);
  const std::string holder = m_state.exclusive_holder();
  const bool is_of_owner = !script_of(request).ends_with("_force");  // an operator sends that
  if (m_holder_before == caller_of(request) && is_of_owner && !m_may_forget) {
    m_untaken.erase(m_holder_before);
  }
  if (holder.empty() || holder == m_holder_before || m_state.is_mixed()) {
    return;
  }
  const std::string script = script_of(request);
  const std::string& caller = caller_of(request);
  if (!script.ends_with("_acquire") || holder != caller) {
    check_listening(script, caller, holder);
  }
  if (script.ends_with("_release")) {
    m_queue_before.erase(caller);  // it leaves the queue, and may find the lock free in the same script
  }
  const bool is_taken = script.ends_with("_acquire") && holder == caller;
  check_order(holder, is_taken && is_silent_in_front());
  if (!is_taken) {
    m_untaken[holder] = m_state.now_us();
  }
}

// A caller that comes for the first time. Its score is not compared with those of freezes, which are below 0.
void QueueRules::check_joining(const Words& request)
{
  const std::string& caller = caller_of(request);
  const auto line = m_state.queue();
  const auto joined = line.find(caller);
  if (!script_of(request).ends_with("_acquire") || joined == line.end() || m_queue_before.contains(caller) ||
      is_freeze(joined->second) || argument(request, ticket_place) != "0") {
    return;
  }
  auto priorities = m_state.priorities();
  for (const auto& [waiter, score] : line) {
    const bool is_in_front = score < joined->second;
    if (waiter != caller && !is_freeze(score) && is_in_front != (priorities[waiter] >= priorities[caller])) {
      m_fail(caller + " with priority " + std::to_string(priorities[caller]) + " joined " +
             (is_in_front ? "behind " : "in front of ") + waiter + " with priority " +
             std::to_string(priorities[waiter]));
    }
  }
}

// A caller with a ticket is in line already. A newer waiter with --latest takes the place of another one.
void QueueRules::check_length(const Words& request)
{
  const std::string most = script_of(request).ends_with("_acquire") ? argument(request, max_waiting_place) : "";
  const std::string& caller = caller_of(request);
  const auto line = m_state.queue();
  if (most.empty() || argument(request, ticket_place) != "0" || argument(request, wait_mode_place) == "latest" ||
      m_queue_before.contains(caller) || !line.contains(caller)) {
    return;
  }
  const auto others = std::count_if(line.begin(), line.end(), [&](const auto& each) {
    return each.first != caller && !is_freeze(each.second) && m_state.listens(each.first);
  });
  if (others >= std::stoi(most)) {
    m_fail(caller + " joined " + std::to_string(others) + " waiters that listen with --max-waiting " + most);
  }
}

void QueueRules::check_listening(const std::string& script, const std::string& caller, const std::string& holder)
{
  const auto place = m_queue_before.find(holder);
  if (place == m_queue_before.end()) {
    m_fail("the script " + script + " of " + caller + " gave the lock to " + holder + ", which did not ask for it");
  } else if (!m_state.listens(holder) &&
             static_cast<double>(m_state.now_us()) - arrival_of(place->second, m_priorities_before[holder]) >=
                 subscribe_grace.count()) {
    m_fail("the lock went to " + holder + ", which does not listen");
  }
}

// Whether the lock was lately handed over to a waiter that has not taken it: then those in front may be silent too.
bool QueueRules::is_silent_in_front()
{
  return std::any_of(m_untaken.begin(), m_untaken.end(), [&](const auto& each) {
    return std::abs(m_state.now_us() - each.second) < silence_memory.count();
  });
}

// `passes_silent`: the holder may pass the waiters in front of it, but no freeze.
void QueueRules::check_order(const std::string& holder, bool passes_silent)
{
  const auto place = m_queue_before.find(holder);
  for (const auto& [waiter, ticket] : m_queue_before) {
    const bool is_before = waiter != holder && (place == m_queue_before.end() || ticket < place->second);
    if (is_before && (!passes_silent || is_freeze(ticket)) && m_state.listens(waiter)) {
      m_fail("the lock went to " + holder + ", though " + waiter + " waits in front of it and listens");
    }
  }
}

}  // namespace rlock::sim
