// SPDX-License-Identifier: Apache-2.0
#include "doctor/bench.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <system_error>
#include <thread>
#include <vector>
#include "doctor/probe.h"

namespace rlock {
namespace {

using std::chrono_literals::operator""s;

// Measures on one store. Used from one thread.
class Bencher {
 public:
  Bencher(const BenchPlan& plan, LockName name, const Clock& clock, StopToken stop)
      : m_plan(plan),
        m_clock(clock),
        m_stop(stop),
        m_spec{.name = std::move(name), .kind = Plain{}, .ttl = 10s, .who = {.command = "rlock bench"}, .once = {}}
  {
  }

  Result<Done> connect()
  {
    ASSIGN_OR_RETURN(auto store, open_store(m_plan.server, m_clock, m_stop));
    m_store = std::move(store);
    const auto state = m_store->inspect(m_spec.name, limit());  // connects before the measurement
    const auto first = state ? pair() : Result<Done>(state.error());
    m_acquire.clear(), m_release.clear();
    return first;
  }

  Result<Done> pairs_until(Instant end)
  {
    while (m_clock.now() < end) {
      RETURN_IF_ERROR(pair());
    }
    return Done{};
  }

  // The next waiter hears that it has the lock and confirms it, as a waiting `run` does.
  Result<Done> hand_over_until(Instant end)
  {
    Owner holder = fresh_owner();
    Result<Done> done = take(holder, {});
    while (done && m_clock.now() < end) {
      const Owner next = fresh_owner();
      done = hand_over(holder, next);
      holder = next;
    }
    const auto released = m_store->release(m_spec, holder, {}, limit());
    return done && !released ? Result<Done>(released.error()) : done;
  }

  [[nodiscard]] const std::vector<Micros>& acquire() const { return m_acquire; }
  [[nodiscard]] const std::vector<Micros>& release() const { return m_release; }
  [[nodiscard]] const std::vector<Micros>& hand_over() const { return m_hand_over; }

 private:
  Owner fresh_owner() { return Owner::fresh(m_rng, ::getpid()); }
  [[nodiscard]] CallLimits limit() const { return {m_clock.now() + m_plan.server.timeout, m_stop}; }
  [[nodiscard]] Micros since(Instant start) const { return std::chrono::duration_cast<Micros>(m_clock.now() - start); }

  Result<Done> take(const Owner& owner, const AcquireOptions& options)
  {
    ASSIGN_OR_RETURN(const auto attempt, m_store->acquire(m_spec, owner, options, limit()));
    const Busy* busy = std::get_if<Busy>(&attempt);
    if (busy != nullptr && !busy->not_ready.empty()) {
      return Error{ErrorCode::server_not_ready, busy->not_ready};
    }
    const bool waits = options.queues && std::holds_alternative<Busy>(attempt);
    return waits || std::holds_alternative<Granted>(attempt)
               ? Result(Done{})
               : Error{ErrorCode::server_not_ready,
                       "a lock that no other client uses was not granted (is the server slow, or does it lose keys?)"};
  }

  Result<Done> pair()
  {
    const Owner owner = fresh_owner();
    const Instant start = m_clock.now();
    const auto taken = take(owner, {});
    m_acquire.push_back(since(start));
    const Instant middle = m_clock.now();
    const auto released = m_store->release(m_spec, owner, {}, limit());
    m_release.push_back(since(middle));
    return taken && !released ? Result<Done>(released.error()) : taken;
  }

  Result<Done> hand_over(const Owner& holder, const Owner& next)
  {
    ASSIGN_OR_RETURN(const auto listener, m_store->listen({&m_spec, 1}, next, limit()));
    RETURN_IF_ERROR(take(next, {.queues = true}));
    const Instant start = m_clock.now();
    RETURN_IF_ERROR(m_store->release(m_spec, holder, {}, limit()));
    std::array<pollfd, 2> waits{pollfd{listener->fd(), POLLIN, 0}, pollfd{m_stop.fd(), POLLIN, 0}};
    poll_until(waits, m_clock.now(), m_clock.now() + 1s);
    const auto taken = take(next, {});
    m_hand_over.push_back(since(start));
    return taken;
  }

  const BenchPlan& m_plan;
  const Clock& m_clock;
  StopToken m_stop;
  SystemRng m_rng;
  LockSpec m_spec;
  std::unique_ptr<LockStore> m_store;
  std::vector<Micros> m_acquire;
  std::vector<Micros> m_release;
  std::vector<Micros> m_hand_over;
};

void erase_everywhere(const BenchPlan& plan, std::span<const LockName> names, const Clock& clock)
{
  for (const Endpoint& endpoint : plan.server.endpoints) {
    ServerSpec one = plan.server;
    one.endpoints = {endpoint};
    const auto store = open_store(one, clock, StopToken::never());
    for (const LockName& name : names) {
      if (!store || !(*store)->erase(name, {clock.now() + plan.server.timeout, StopToken::never()})) {
        break;
      }
    }
  }
}

// All connections start when the last one is connected.
Result<double> pairs_per_second(const BenchPlan& plan, std::span<const LockName> names, const Clock& clock,
                                StopToken stop)
{
  std::vector<Bencher> benchers;
  for (const LockName& name : names) {
    benchers.emplace_back(plan, name, clock, stop);
    RETURN_IF_ERROR(benchers.back().connect());
  }
  std::vector<Result<Done>> ends(benchers.size(), Done{});
  std::vector<std::jthread> threads;
  const Instant start = clock.now();
  for (std::size_t i = 0; i < benchers.size(); ++i) {
    threads.emplace_back([&, i] { ends[i] = benchers[i].pairs_until(start + plan.time); });
  }
  threads.clear();
  const std::chrono::duration<double> took = clock.now() - start;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < benchers.size(); ++i) {
    if (!ends[i]) {
      return ends[i].error();
    }
    pairs += benchers[i].release().size();
  }
  return static_cast<double>(pairs) / took.count();
}

Result<BenchResult> measure(const BenchPlan& plan, std::span<const LockName> names, const Clock& clock, StopToken stop)
{
  Bencher alone(plan, names.front(), clock, stop);
  RETURN_IF_ERROR(alone.connect());
  RETURN_IF_ERROR(alone.pairs_until(clock.now() + plan.time));
  BenchResult result{
      .acquire = distribution_of(alone.acquire()), .release = distribution_of(alone.release()), .hand_over = {}};
  if (plan.server.endpoints.size() == 1) {
    RETURN_IF_ERROR(alone.hand_over_until(clock.now() + plan.time));
    result.hand_over = distribution_of(alone.hand_over());
  }
  ASSIGN_OR_RETURN(const auto pairs, pairs_per_second(plan, names, clock, stop));
  result.pairs_per_second = pairs;
  return result;
}

}  // namespace

Result<BenchResult> bench(const BenchPlan& plan, const Clock& clock, StopToken stop)
{
  SystemRng rng;
  std::vector<LockName> names;
  while (names.size() < plan.connections) {
    ASSIGN_OR_RETURN(auto name, random_lock_name(plan.prefix, "bench", rng));
    names.push_back(std::move(name));
  }
  Result<BenchResult> result = Error{ErrorCode::internal, "not measured"};
  try {
    result = measure(plan, names, clock, stop);
  } catch (const std::system_error& refused) {
    result = Error{ErrorCode::os, "cannot start a thread for each connection: " + refused.code().message()};
  }
  erase_everywhere(plan, names, clock);
  return result;
}

namespace {

Micros percentile(const std::vector<Micros>& sorted, std::size_t percent)
{
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

// 1, 2, 5, 10, …
Micros next_bound(Micros bound)
{
  Micros::rep leading = bound.count();
  while (leading >= 10) {
    leading /= 10;
  }
  return leading == 2 ? bound * 5 / 2 : bound * 2;
}

std::vector<Bucket> histogram_of(const std::vector<Micros>& sorted)
{
  std::vector<Bucket> buckets;
  auto from = sorted.begin();
  for (Micros bound{1}; from != sorted.end(); bound = next_bound(bound)) {
    const auto to = std::upper_bound(from, sorted.end(), bound);
    if (to != from || !buckets.empty()) {
      buckets.push_back({bound, static_cast<std::size_t>(to - from)});
    }
    from = to;
  }
  return buckets;
}

}  // namespace

Distribution distribution_of(std::vector<Micros> times)
{
  if (times.empty()) {
    return {};
  }
  std::sort(times.begin(), times.end());
  return {.count = times.size(),
          .p50 = percentile(times, 50),
          .p90 = percentile(times, 90),
          .p99 = percentile(times, 99),
          .max = times.back(),
          .histogram = histogram_of(times)};
}

}  // namespace rlock
