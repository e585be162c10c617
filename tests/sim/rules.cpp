// SPDX-License-Identifier: Apache-2.0
#include "sim/rules.h"

#include "base/defaults.h"
#include "store/redis/lock_keys.h"

#include <algorithm>

namespace rlock::sim {
namespace {

constexpr Nanos told_and_dead = nanos(Millis{1300});  // a second, and the time of messages
constexpr Nanos aftermath = nanos(Millis{2500});  // for which a fault may still delay its client: reconnecting, claims
constexpr std::size_t longest_answer = 100;       // in the story
constexpr double time_to_subscribe = 250'000;     // us that a new waiter has, SUBSCRIBE_GRACE in lua/lib/queue.lua
constexpr std::string_view lost_exit = "exit 121";

std::string text_of(const VirtualJob& job)
{
  return "the job of client " + std::to_string(job.client) + " (fence " + std::to_string(job.fence) + ")";
}

std::string seconds(Nanos time) { return std::to_string(static_cast<double>(time) / 1e9) + " s"; }

// The 16 bytes of the uuid, as lua/kinds/permits.lua writes them.
std::string permit_of(const std::string& owner)
{
  std::string digits = owner.substr(0, 36);
  std::erase(digits, '-');
  std::string bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

const LockKeys& keys_of(const Mode& mode)
{
  static std::map<std::size_t, LockKeys> all;
  return all.try_emplace(mode.index(), *LockName::parse("stock"), mode).first->second;
}

}  // namespace

Rules::Rules(const Schedule& schedule, World& world, Server& server, std::function<void(const std::string&)> note)
    : m_schedule(schedule),
      m_world(world),
      m_server(server),
      m_note(std::move(note)),
      m_is_mixed(std::any_of(
          schedule.clients.begin(), schedule.clients.end(),
          [&](const auto& plan) { return keys_of(plan.mode).queue != keys_of(schedule.clients.front().mode).queue; })),
      m_only_crashes(std::all_of(schedule.faults.begin(), schedule.faults.end(), [](const Fault& fault) {
        return fault.kind == FaultKind::kill_runner || fault.kind == FaultKind::kill_guardian ||
               fault.kind == FaultKind::kill_both;
      }))
{
  for (const ClientPlan& plan : schedule.clients) {
    m_disturbed_until.resize(std::max(m_disturbed_until.size(), static_cast<std::size_t>(plan.number) + 1), -1);
  }
}

void Rules::fail(const std::string& text)
{
  if (!m_broken) {
    m_broken = text;
    m_note("BROKEN: " + text);
  }
}

const Mode& Rules::mode_of(const VirtualJob& job) const
{
  return std::find_if(m_schedule.clients.begin(), m_schedule.clients.end(),
                      [&](const ClientPlan& plan) { return plan.number == job.client; })
      ->mode;
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
  if (fault.kind == FaultKind::kill_runner || fault.kind == FaultKind::kill_both) {
    return;  // the run is over
  }
  const Nanos until = nanos(end_of(fault)) + aftermath + nanos(m_schedule.server_timeout);
  const bool is_outage = fault.kind == FaultKind::restart_server || fault.kind == FaultKind::lose_all_data ||
                         fault.kind == FaultKind::fail_over;
  for (std::size_t client = 0; client < m_disturbed_until.size(); ++client) {
    if (is_outage || fault.client == static_cast<int>(client)) {
      m_disturbed_until[client] = std::max(m_disturbed_until[client], until);
    }
  }
  if (loses_data(fault.kind)) {
    m_lost_at = m_world.now();
    m_clock_went_back = m_clock_went_back || (fault.kind == FaultKind::step_clock && fault.amount < Millis{0});
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
  int permits = 1;
  for (VirtualJob* const other : m_alive) {
    const bool is_conflict = exclude(job, *other);
    permits += is_conflict ? 0 : 1;
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
  const bool may_be_less = m_clock_went_back && m_lost_at >= 0;  // the number and the clock were lost
  if (kind_of(mode_of(job)).is_shared || may_be_less) {
    return;
  }
  if (job.fence <= m_last_fence) {
    fail(text_of(job) + " has no greater fence than the one before: " + std::to_string(m_last_fence));
  }
  m_last_fence = job.fence;
}

void Rules::job_died(VirtualJob& job)
{
  m_note(text_of(job) + " is dead");
  std::erase(m_alive, &job);
  const Instant end = job.deadline->valid_until();
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

bool Rules::is_held(const VirtualJob& job)
{
  const Mode& mode = mode_of(job);
  const LockKeys& keys = keys_of(mode);
  ModelRedis& redis = m_server.redis();
  const auto is_there = [](const Value& value) { return value.kind == Value::Kind::text; };
  if (std::holds_alternative<Plain>(mode)) {
    return is_there(redis.command({"HGET", keys.lock, job.owner}));
  }
  if (std::holds_alternative<Writer>(mode)) {
    return is_there(redis.command({"HGET", keys.lock, job.owner + ":write"}));
  }
  if (std::holds_alternative<Reader>(mode)) {
    return is_there(redis.command({"HGET", keys.lock, job.owner})) &&
           redis.command({"EXISTS", keys.reads + job.owner + ":rwlock_timeout:1"}).integer == 1;
  }
  if (std::holds_alternative<Permits>(mode)) {
    const Value score = redis.command({"ZSCORE", keys.second, permit_of(job.owner)});
    return is_there(score) && std::stod(score.text) >= static_cast<double>(redis.time() / 1000);
  }
  return redis.command({"GET", keys.lock}).text == job.owner;
}

void Rules::check()
{
  for (VirtualJob* const job : m_alive) {
    if (!may_be_lost(*job) && !is_held(*job)) {
      fail(text_of(*job) + " is alive, and the server holds no lock for it");
    }
  }
  check_idle();
}

void Rules::before_request(const Words& request)
{
  if (!request[0].starts_with("EVAL")) {
    return;
  }
  m_holder_before = exclusive_holder();
  m_queue_before.clear();
  const auto& keys = m_server.redis().keys();
  const auto queue = keys.find(keys_of(m_schedule.clients.front().mode).queue);
  if (queue != keys.end()) {
    m_queue_before = std::get<SortedSet>(queue->second.data).scores;
  }
}

void Rules::after_request(int client, const Words& request, const Value& answer)
{
  const std::string script = script_of(request);
  std::string shown = show(answer).substr(0, longest_answer);
  std::replace(shown.begin(), shown.end(), '\n', ' ');
  m_note("server: client " + std::to_string(client) + " " + (script.empty() ? request[0] : script) + ": " + shown);
  if (answer.kind == Value::Kind::error && !answer.text.starts_with("NOSCRIPT")) {
    fail("the script " + request.at(1) + " failed: " + answer.text);
  }
  if (request[0].starts_with("EVAL")) {
    check_ttls();
    check_new_holder(request);
  }
}

void Rules::check_ttls()
{
  for (const auto& [key, entry] : m_server.redis().keys()) {
    const LockKeys& permits = keys_of(Permits{2});
    const bool is_permits = std::holds_alternative<Permits>(m_schedule.clients.front().mode) &&
                            (key == permits.lock || key == permits.second);
    if (!entry.expires && !is_permits) {
      fail("the key " + key + " has no ttl");
    }
  }
}

// Empty: there is none, or the lock is shared.
std::string Rules::exclusive_holder()
{
  const auto& keys = m_server.redis().keys();
  const auto lock = keys.find("stock");
  if (lock == keys.end() || std::holds_alternative<Permits>(m_schedule.clients.front().mode)) {
    return {};
  }
  if (const auto* text = std::get_if<std::string>(&lock->second.data)) {
    return *text;
  }
  const auto& hash = std::get<Hash>(lock->second.data);
  return hash.size() == 1 ? hash.front().first : std::string();
}

void Rules::check_new_holder(const Words& request)
{
  const std::string holder = exclusive_holder();
  if (holder.empty() || holder == m_holder_before || m_is_mixed) {
    return;
  }
  const std::string script = script_of(request);
  const std::string& caller = request.at(3 + static_cast<std::size_t>(std::stoi(request.at(2))));
  const bool takes_itself = script.ends_with("_acquire") && holder == caller;
  const auto place = m_queue_before.find(holder);
  if (!takes_itself && place == m_queue_before.end()) {
    fail("the script " + script + " of " + caller + " gave the lock to " + holder + ", which did not ask for it");
    return;
  }
  const double now = static_cast<double>(m_server.redis().time());
  if (!takes_itself && !listens(holder) && now - place->second >= time_to_subscribe) {
    fail("the lock went to " + holder + ", which does not listen");
  }
  check_order(holder);
}

bool Rules::listens(const std::string& waiter)
{
  const std::string channel = keys_of(m_schedule.clients.front().mode).owner_channel + waiter;
  return m_server.redis().count_subscribers(channel) > 0;
}

void Rules::check_order(const std::string& holder)
{
  const auto place = m_queue_before.find(holder);
  for (const auto& [waiter, ticket] : m_queue_before) {
    const bool is_before = waiter != holder && (place == m_queue_before.end() || ticket < place->second);
    if (is_before && listens(waiter)) {
      fail("the lock went to " + holder + ", though " + waiter + " waits in front of it and listens");
    }
  }
}

// Without faults only messages take time. Each crash costs a ttl. After other faults a waiter may have missed a message: it
// asks by itself (look_again_after), and another one may have missed the lock that it was handed (handover_confirmation).
Nanos Rules::idle_limit() const
{
  // A waiter polls while the lock is held as another kind, less often the further behind it is.
  const Millis poll = m_is_mixed ? Millis{1000} * static_cast<int>(m_schedule.clients.size()) : Millis{0};
  const Nanos slack = nanos(Millis{500} + poll + 60 * m_schedule.latency);
  if (m_schedule.faults.empty()) {
    return slack;
  }
  const Nanos one_ttl = nanos(m_schedule.ttl) + slack;
  return m_only_crashes ? one_ttl
                        : one_ttl + nanos(look_again_after + handover_confirmation + m_schedule.server_timeout);
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
  Millis set_back{0};
  for (const Fault& fault : m_schedule.faults) {
    set_back += fault.kind == FaultKind::step_clock ? std::chrono::abs(fault.amount) : Millis{0};
  }
  const Nanos calm = m_only_crashes ? 0 : nanos(calm_from(m_schedule) + set_back);
  const Nanos idle = m_world.now() - std::max({since, m_idle_since, calm});
  if (idle > idle_limit()) {
    fail("runs have waited for " + seconds(idle) + ", and no job is alive");
  }
}

}  // namespace rlock::sim
