// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_listener.h"

#include <algorithm>
#include <utility>
#include "base/hex.h"
#include "base/wait.h"

namespace rlock::s3 {
namespace {

constexpr Millis longest_look{5000};
// After a conflict with another writer of the object; its limit grows with each.
constexpr Millis pause_after_conflict{50};
constexpr Millis longest_pause_after_conflict{1000};

}  // namespace

Millis pause_between_looks(bool is_alone)
{
  // Well before a hand-over that it must confirm is over (handover_confirmation).
  constexpr Millis of_waiter{1000};
  constexpr Millis of_holder_alone{2000};
  return is_alone ? of_holder_alone : of_waiter;
}

PollingSource::PollingSource(const ConnectionSpec& spec, const Clock& clock, std::unique_ptr<Rng> rng)
    : LookingSource(clock), m_connection(spec, clock), m_rng(std::move(rng)), m_id(hex_of(m_rng->next()))
{
}

// Takes the messages that came since the last look.
void PollingSource::take(Lock& lock, const SeenObject& seen)
{
  std::set<std::string> present;
  for (const StoredMessage& each : seen.object.messages) {
    present.insert(each.id);
    if (lock.is_seeded && !lock.known.contains(each.id) &&
        std::ranges::find(lock.channels, each.message.channel) != lock.channels.end()) {
      hear(each.message);
    }
  }
  lock.known = std::move(present);
  lock.is_seeded = true;
  lock.etag = seen.etag;
  const auto& listeners = seen.object.listeners;
  const auto own = std::ranges::find(listeners, m_id, &StoredListener::id);
  lock.is_registered = own != listeners.end();
  lock.is_alone = listeners.size() <= 1;
}

// Writes this listener, and that it lives, into the object. Other clients write the object at the same time.
Result<Done> PollingSource::enter(const std::string& name, Lock& lock, const CallLimits& limit)
{
  for (Millis pause = pause_after_conflict;; pause = std::min(pause * 2, longest_pause_after_conflict)) {
    ASSIGN_OR_RETURN(auto answer, m_connection.ask(read_request(name), limit));
    ASSIGN_OR_RETURN(auto seen, seen_in(std::move(answer), name, m_connection));
    take(lock, seen);
    LockObject next = seen.object;
    next.time_us = seen.time_us;
    auto own = std::ranges::find(next.listeners, m_id, &StoredListener::id);
    if (own == next.listeners.end()) {
      own = next.listeners.insert(own, {.id = m_id, .seen_us = 0, .channels = {}});
    }
    own->seen_us = seen.time_us;
    own->channels = lock.channels;
    ASSIGN_OR_RETURN(const auto written, m_connection.ask(write_request(seen, next, m_rng->next()), limit));
    if (written.kind == Answer::Kind::done) {
      seen.object = std::move(next);
      seen.etag = written.etag;
      take(lock, seen);
      return Done{};
    }
    const Instant until = clock().now() + Millis(below(*m_rng, static_cast<std::uint64_t>(pause.count())));
    if (until >= limit.deadline) {
      return Error{.code = ErrorCode::server_not_ready,
                   .text = m_connection.where() + ": so many clients write the object of one lock that this one cannot",
                   .was_there = true};
    }
    if (clock().sleep_until(until, limit.stop) == Wake::stopped) {
      return interrupted();
    }
  }
}

Result<Done> PollingSource::add(std::span<const LockChannel> channels, const CallLimits& limit)
{
  std::set<std::string> names;
  for (const LockChannel& each : channels) {
    m_locks[std::string(each.lock)].channels.emplace_back(each.channel);
    names.emplace(each.lock);
  }
  for (const std::string& name : names) {
    RETURN_IF_ERROR(check_name(name, m_connection));
    RETURN_IF_ERROR(enter(name, m_locks[name], limit));
  }
  m_next_beat = clock().now() + listener_beat;
  look_after(pause_until_look());
  return Done{};
}

Result<Done> PollingSource::read(const CallLimits& limit)
{
  std::vector<Request> requests;
  for (const auto& [name, lock] : m_locks) {
    requests.push_back(read_request(name, lock.etag));
  }
  auto answers = m_connection.ask_all(requests, limit);
  auto answer = answers.begin();
  for (auto& [name, lock] : m_locks) {
    ASSIGN_OR_RETURN(auto one, std::move(*answer++));
    if (one.kind != Answer::Kind::not_modified) {
      ASSIGN_OR_RETURN(const auto seen, seen_in(std::move(one), name, m_connection));
      take(lock, seen);
    }
  }
  return Done{};
}

Result<Millis> PollingSource::look(const CallLimits& limit)
{
  const CallLimits each{std::max(limit.deadline, clock().now() + longest_look), limit.stop};
  RETURN_IF_ERROR(read(each));
  const bool beats = clock().now() >= m_next_beat;
  for (auto& [name, lock] : m_locks) {
    if (beats || !lock.is_registered) {
      RETURN_IF_ERROR(enter(name, lock, each));
    }
  }
  if (beats) {
    m_next_beat = clock().now() + listener_beat;
  }
  return pause_until_look();
}

Millis PollingSource::pause_until_look() const
{
  Millis shortest = longest_look;
  for (const auto& [name, lock] : m_locks) {
    shortest = std::min(shortest, pause_between_looks(lock.is_alone));
  }
  return shortest;
}

}  // namespace rlock::s3
