// SPDX-License-Identifier: Apache-2.0
#include "sim/rules.h"

#include "sim/limits.h"
#include "support/redis_fixture.h"

#include <algorithm>

namespace rlock::sim {
namespace {

constexpr Nanos told_and_dead = nanos(Millis{1300});   // a second, and the time of messages
constexpr Nanos longest_effect = nanos(Millis{2500});  // of a fault that is over, on its client: reconnecting, claims
constexpr std::size_t longest_answer = 100;            // in the story
constexpr std::string_view lost_exit = "exit 121";

std::string text_of(const VirtualJob& job)
{
  return "the job of client " + std::to_string(job.client) + " (fence " + std::to_string(job.fence) + ")";
}

bool is_script(const Words& request) { return request[0].starts_with("EVAL"); }

std::string seconds(Nanos time) { return std::to_string(static_cast<double>(time) / 1e9) + " s"; }

bool has_fail_over(const Schedule& schedule)
{
  return std::ranges::any_of(schedule.faults, [](const Fault& fault) { return fault.kind == FaultKind::fail_over; });
}

}  // namespace

Rules::Rules(const Schedule& schedule, World& world, Server& server, std::function<void(const std::string&)> note)
    : m_schedule(schedule),
      m_world(world),
      m_note(std::move(note)),
      m_state(schedule, server),
      m_queue(m_state, has_fail_over(schedule), [this](const std::string& text) { fail(text); })
{
  for (const ClientPlan& plan : schedule.clients) {
    m_disturbed_until.resize(std::max(m_disturbed_until.size(), static_cast<std::size_t>(plan.number) + 1), -1);
    m_is_forced = m_is_forced || plan.cancels;
  }
}

void Rules::fail(const std::string& text)
{
  if (!m_broken) {
    m_broken = text;
    m_note("BROKEN: " + text);
  }
}

const ClientPlan& Rules::plan_of(const VirtualJob& job) const
{
  return *std::find_if(m_schedule.clients.begin(), m_schedule.clients.end(),
                       [&](const ClientPlan& plan) { return plan.number == job.client; });
}

bool Rules::exclude(const VirtualJob& one, const VirtualJob& other) const
{
  return !kind_of(mode_of(one)).is_shared || !kind_of(mode_of(other)).is_shared;
}

// The grant may be older than the job by half of the lease.
bool Rules::may_be_lost(const VirtualJob& job) const { return m_lost_at >= job.began - nanos(m_schedule.ttl) / 2; }

bool Rules::is_disturbed(int client, Nanos since) const
{
  return m_disturbed_until[static_cast<std::size_t>(client)] >= since;
}

void Rules::fault_began(const Fault& fault)
{
  m_note("FAULT " + show(fault));
  m_has_hit_holder = m_has_hit_holder ||
                     std::ranges::any_of(m_alive, [&](const VirtualJob* job) { return job->client == fault.client; });
  if (fault.kind == FaultKind::kill_runner || fault.kind == FaultKind::kill_both) {
    return;  // the run is over
  }
  const Nanos until = nanos(end_of(fault)) + longest_effect + nanos(m_schedule.server_timeout);
  const bool is_outage = fault.kind == FaultKind::restart_server || fault.kind == FaultKind::lose_all_data ||
                         fault.kind == FaultKind::fail_over || fault.kind == FaultKind::cut_off_member ||
                         fault.kind == FaultKind::stop_leader;
  for (std::size_t client = 0; client < m_disturbed_until.size(); ++client) {
    if (is_outage || fault.client == static_cast<int>(client)) {
      m_disturbed_until[client] = std::max(m_disturbed_until[client], until);
    }
  }
  m_is_forced = m_is_forced || fault.kind == FaultKind::force;
  if (loses_data(fault.kind)) {
    m_lost_at = m_world.now();
    const bool has_no_clock = m_schedule.store == StoreKind::sessions && fault.kind == FaultKind::lose_all_data;
    m_number_is_lost =
        m_number_is_lost || has_no_clock || (fault.kind == FaultKind::step_clock && fault.amount < Millis{0});
  }
}

void Rules::run_began(int client)
{
  if (m_waiting.empty() && m_alive.empty()) {
    m_idle_since = m_world.now();
  }
  m_waiting[client] = m_world.now();
  m_note("client " + std::to_string(client) + " runs");
}

void Rules::run_ended(int client, const std::string& end)
{
  m_waiting.erase(client);
  m_note("client " + std::to_string(client) + " ends: " + end);
  for (Overlap& overlap : m_overlaps) {
    if (overlap.is_over || overlap.earlier->client != client) {
      continue;
    }
    overlap.is_over = true;
    if (end != lost_exit && end != "killed" && !is_disturbed(client, overlap.since)) {
      fail(text_of(*overlap.earlier) + " overlapped with another one, and its run ended with " + end);
    }
  }
}

void Rules::job_began(VirtualJob& job)
{
  m_note(text_of(job) + " begins");
  check_idle();
  m_waiting.erase(job.client);
  check_fence(job);
  check_min_hold(job);
  int permits = 1;
  for (VirtualJob* const other : m_alive) {
    if (other->owner == job.owner) {
      continue;
    }
    const bool is_conflict = exclude(job, *other);
    permits += is_conflict || other->is_nested ? 0 : 1;
    if (is_conflict && !may_be_lost(*other)) {
      fail(text_of(job) + " began while " + text_of(*other) + " was alive");
    } else if (is_conflict) {
      m_overlaps.push_back({.earlier = other, .since = m_world.now()});
    }
  }
  const auto* const limit = std::get_if<Permits>(&mode_of(job));
  const bool all_are_sure =
      std::none_of(m_alive.begin(), m_alive.end(), [&](auto* each) { return may_be_lost(*each); });
  if (limit != nullptr && permits > static_cast<int>(limit->limit) && all_are_sure) {
    fail(text_of(job) + " began as number " + std::to_string(permits) + " of " + std::to_string(limit->limit));
  }
  m_alive.push_back(&job);
}

void Rules::check_fence(const VirtualJob& job)
{
  if (kind_of(mode_of(job)).is_shared || m_number_is_lost || job.is_nested) {
    return;
  }
  if (job.fence <= m_last_fence) {
    fail(text_of(job) + " has no greater fence than the one before: " + std::to_string(m_last_fence));
  }
  m_last_fence = job.fence;
}

// What counts is the request that was granted, which came before the job.
void Rules::check_min_hold(const VirtualJob& job)
{
  const bool is_new = !kind_of(mode_of(job)).is_shared && !job.is_nested;
  if (is_new && m_world.now() < m_kept_until && m_lost_at < 0) {
    fail(text_of(job) + " began though the lock is kept for " + seconds(m_kept_until - m_world.now()) + " more");
  }
}

// --min-hold holds for a job that ended by itself.
void Rules::note_min_hold(const VirtualJob& job)
{
  const Nanos kept = nanos(plan_of(job).min_hold) * 98 / 100 - nanos(Millis{100} + time_of_messages(m_schedule));
  if (!kind_of(mode_of(job)).is_shared && !m_is_forced && job.status == 0 && !is_disturbed(job.client, job.began)) {
    m_kept_until = std::max(m_kept_until, job.began + kept);
  }
}

void Rules::job_died(VirtualJob& job)
{
  note_min_hold(job);
  m_note(text_of(job) + " is dead");
  std::erase(m_alive, &job);
  const Instant end = job.deadline->times().lease_end;
  if (job.guardian->host.now() > end) {
    fail(text_of(job) + " lived to the end of its lease");
  }
  for (const Overlap& overlap : m_overlaps) {
    const Nanos together = m_world.now() - overlap.since;
    if (overlap.earlier == &job && together > told_and_dead && !is_disturbed(job.client, overlap.since)) {
      fail(text_of(job) + " overlapped with another one for " + seconds(together));
    }
  }
  if (m_alive.empty() && !m_waiting.empty()) {
    m_idle_since = m_world.now();
  }
}

void Rules::check()
{
  for (VirtualJob* const job : m_alive) {
    if (!may_be_lost(*job)) {
      check_hold(*job);
    }
  }
  check_told();
  check_idle();
}

// The lock is on the server, and stays there for as long as the job counts on it.
void Rules::check_hold(const VirtualJob& job)
{
  if (!m_state.is_held(mode_of(job), job.owner)) {
    return fail(text_of(job) + " is alive, and the server holds no lock for it");
  }
  const Nanos counted_on = job.guardian->host.true_time(job.deadline->times().lease_end);
  const Nanos left = m_state.hold_lasts_for(mode_of(job), job.owner).value_or(never - m_world.now());
  if (counted_on > m_world.now() + left + nanos(Millis{1})) {  // a key exists to the end of its last millisecond
    fail(text_of(job) + " counts on its lease for " + seconds(counted_on - m_world.now() - left) + " too long");
  }
}

// A grant that finds no holder is published, and the earlier holder asks the server at once.
void Rules::check_told()
{
  for (const Overlap& overlap : m_overlaps) {
    const Nanos together = m_world.now() - overlap.since;
    const bool is_late =
        !m_told.contains(overlap.earlier->owner) && overlap.earlier->is_alive && together > time_to_ask();
    if (is_late && !is_disturbed(overlap.earlier->client, overlap.since)) {
      fail(text_of(*overlap.earlier) + " overlaps with another one, and its rlock has not asked the server for " +
           seconds(together));
    }
  }
}

// A watchdog that has just begun subscribes first. Later it reads messages no more often than each 50 ms.
Nanos Rules::time_to_ask() const { return nanos(Millis{300} + time_of_messages(m_schedule)); }

void Rules::before_request(const Words& request)
{
  if (is_script(request)) {
    m_queue.before_script();
  }
}

void Rules::after_request(int client, const Words& request, const Reply& answer)
{
  const std::string script = script_of(request);
  std::string shown = test::show(answer).substr(0, longest_answer);
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  m_note("server: client " + std::to_string(client) + " " + (script.empty() ? request[0] : script) + ": " + shown);
  if (answer.is_error() && !answer.text.starts_with("NOSCRIPT")) {
    fail("the script " + script + " failed: " + answer.text);
  }
  if (is_script(request)) {
    after_script(script, request, answer);
  }
}

void Rules::after_script(const std::string& script, const Words& request, const Reply& answer)
{
  m_queue.after_script(request);
  if (const auto key = m_state.key_without_ttl()) {
    fail("the key " + *key + " has no ttl");
  }
  if (script.ends_with("_renew") && !answer.elements.empty() && answer.elements.front().text == "lost") {
    m_told.insert(caller_of(request));
  }
}

void Rules::check_idle()
{
  if (!m_alive.empty() || m_waiting.empty()) {
    return;
  }
  Nanos since = never;
  for (const auto& [client, began] : m_waiting) {
    since = std::min(since, began);
  }
  const Nanos idle = m_world.now() - std::max({since, m_idle_since, idle_counts_from(m_schedule)});
  if (idle > idle_limit(m_schedule, m_state.is_mixed())) {
    fail("runs have waited for " + seconds(idle) + ", and no job is alive");
  }
  auto limit = undisturbed_wait_limit(m_schedule, m_state.is_mixed());
  if (limit && m_schedule.stops_only_waiters && m_has_hit_holder) {
    *limit += nanos(m_schedule.ttl);  // a waiter that had become the holder: its lock ends with its ttl
  }
  for (const auto& [client, began] : m_waiting) {
    const Nanos waits_since = std::max(began, m_idle_since);
    if (limit && m_world.now() - waits_since > *limit && !is_disturbed(client, waits_since)) {
      fail("client " + std::to_string(client) + " waits undisturbed for " + seconds(m_world.now() - waits_since) +
           ", and no job is alive");
    }
  }
}

}  // namespace rlock::sim
