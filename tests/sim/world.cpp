// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include "base/stop.h"
#include "sim/interpose.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rlock::sim {
namespace {

World* the_world = nullptr;

// A machine has run for a while when the schedule begins, so that no instant is before its start.
constexpr double running_for = 1e15;

}  // namespace

Instant Host::now() const
{
  World::current().note_look_at_clock();
  const double since = static_cast<double>(World::current().now()) * m_rate;
  return Instant{std::chrono::nanoseconds(static_cast<Nanos>(running_for + since))};
}

Nanos Host::true_time(Instant when) const
{
  if (when == far_future) {
    return never;
  }
  const auto since = static_cast<double>(when.time_since_epoch().count()) - running_for;
  return static_cast<Nanos>(std::ceil(since / m_rate)) + 1;
}

Wake Host::sleep_until(Instant when, const StopToken& stop) const
{
  pollfd wait{.fd = stop.fd(), .events = POLLIN, .revents = 0};
  for (;;) {
    if (stop.requested()) {
      return Wake::stopped;
    }
    if (now() >= when) {
      return Wake::due;
    }
    World::current().block(&wait, 1, true_time(when));
  }
}

World::World(std::uint64_t seed) : m_rng(seed) { the_world = this; }

// Code that waits for a time without blocking would never end, because only blocking lets time pass.
void World::note_look_at_clock()
{
  constexpr int most = 100'000;
  if (++m_looks_at_clock > most && Fiber::running() != nullptr) {
    m_looks_at_clock = 0;
    throw std::logic_error("code waits without blocking");
  }
}

World::~World()
{
  for (const auto& process : m_processes) {
    process->is_dead = true;
  }
  for (const auto& process : m_processes) {
    unwind(*process);
  }
  the_world = nullptr;
}

World& World::current() { return *the_world; }

void World::at(Nanos when, std::function<void()> event) { m_events.emplace(std::max(when, m_now), std::move(event)); }

Process& World::start(std::string name, const Host& host, int client, std::function<void()> main)
{
  m_processes.push_back(std::make_unique<Process>(Process{std::move(name), host, client}));
  // A process that died before it began runs nothing: the parts of the simulation that it needs may be gone.
  auto begin = [process = m_processes.back().get(), main = std::move(main)] {
    if (!process->is_dead) {
      main();
    }
  };
  m_fibers.push_back(std::make_unique<Fiber>(*m_processes.back(), std::move(begin)));
  m_fibers.back()->ready_at = m_now;
  return *m_processes.back();
}

Fiber& World::start_thread(std::function<void()> body)
{
  m_fibers.push_back(std::make_unique<Fiber>(Fiber::running()->process, std::move(body)));
  m_fibers.back()->is_thread = true;
  m_fibers.back()->ready_at = m_now;
  return *m_fibers.back();
}

// The threads first, because the first fiber waits for their ends.
void World::unwind(Process& process)
{
  for (const bool threads : {true, false}) {
    for (std::size_t i = 0; i < m_fibers.size(); ++i) {
      Fiber& fiber = *m_fibers[i];
      while (&fiber.process == &process && fiber.is_thread == threads && !fiber.is_done) {
        fiber.resume();
      }
    }
  }
}

bool World::has_ended(const Process& process) const
{
  return std::none_of(m_fibers.begin(), m_fibers.end(),
                      [&](const auto& fiber) { return &fiber->process == &process && !fiber->is_done; });
}

void World::wait(Fiber& fiber, pollfd* waits, nfds_t count, Nanos deadline, const Fiber* joins)
{
  fiber.waits = waits;
  fiber.wait_count = count;
  fiber.deadline = deadline;
  fiber.joins = joins;
  fiber.ready_at = never;
  fiber.suspend();
}

int World::block(pollfd* waits, nfds_t count, Nanos deadline)
{
  Fiber& fiber = *Fiber::running();
  if (fiber.process.is_dead) {
    throw Killed{};
  }
  wait(fiber, waits, count, deadline, nullptr);
  if (fiber.process.is_dead) {
    throw Killed{};
  }
  return real_poll(waits, count, 0);
}

// Throws nothing, because destructors join. A process is unwound only when its threads have ended.
void World::join(const Fiber& other)
{
  if (!other.is_done) {
    wait(*Fiber::running(), nullptr, 0, never, &other);
  }
}

// All descriptors of all fibers with one poll(2).
void World::look_for_ready()
{
  std::vector<pollfd> all;
  std::vector<Fiber*> whose;
  for (const auto& fiber : m_fibers) {
    if (fiber->is_done || fiber->process.is_dead || fiber->ready_at != never) {
      continue;
    }
    if (fiber->deadline <= m_now || (fiber->joins != nullptr && fiber->joins->is_done)) {
      fiber->ready_at = m_now + m_rng.up_to(longest_wake_up);
      continue;
    }
    for (nfds_t i = 0; i < fiber->wait_count; ++i) {
      all.push_back({.fd = fiber->waits[i].fd, .events = fiber->waits[i].events, .revents = 0});
      whose.push_back(fiber.get());
    }
  }
  if (!all.empty() && real_poll(all.data(), all.size(), 0) > 0) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].revents != 0 && whose[i]->ready_at == never) {
        whose[i]->ready_at = m_now + m_rng.up_to(longest_wake_up);
      }
    }
  }
}

// A runnable fiber; if there is none, time goes on. nullptr: an event was next, or nothing is left.
Fiber* World::choose()
{
  std::vector<Fiber*> runnable;
  for (const auto& fiber : m_fibers) {
    const bool can_run = !fiber->is_done && !fiber->process.is_dead && !fiber->process.is_stopped;
    if (can_run && fiber->ready_at <= m_now) {
      runnable.push_back(fiber.get());
    }
  }
  return runnable.empty() ? nullptr : runnable[below(m_rng, runnable.size())];
}

void World::drop_done()
{
  std::erase_if(m_fibers, [this](const auto& fiber) {
    const bool is_joined = std::any_of(m_fibers.begin(), m_fibers.end(), [&](const auto& other) {
      return other && !other->is_done && &other->process == &fiber->process;
    });
    return fiber->is_done && !is_joined;
  });
}

bool World::step()
{
  look_for_ready();
  if (Fiber* const fiber = choose()) {
    Process& process = fiber->process;
    m_looks_at_clock = 0;
    fiber->resume();
    if (after_run) {
      after_run(process);
    }
    if (has_ended(process)) {
      drop_done();
    }
    return true;
  }
  Nanos next = m_events.empty() ? never : m_events.begin()->first;
  for (const auto& fiber : m_fibers) {
    if (!fiber->is_done && !fiber->process.is_dead && !fiber->process.is_stopped) {
      next = std::min({next, fiber->ready_at, fiber->ready_at == never ? fiber->deadline : never});
    }
  }
  if (next == never) {
    return false;
  }
  m_now = std::max(m_now, next);
  if (!m_events.empty() && m_events.begin()->first <= m_now) {
    const auto event = std::move(m_events.begin()->second);
    m_events.erase(m_events.begin());
    event();
  }
  return true;
}

}  // namespace rlock::sim
