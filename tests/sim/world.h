// SPDX-License-Identifier: Apache-2.0
// Virtual time: events, and processes whose threads are fibers. Code of rlock that runs in a fiber blocks in poll(2) or on a
// Clock; interpose.cpp leads both here. Code takes no time; only waiting does. Which of the runnable fibers goes on is
// chosen by the seed.
#pragma once

#include "base/clock.h"
#include "sim/fiber.h"

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace rlock::sim {

constexpr Nanos nanos(Millis time) { return std::chrono::nanoseconds(time).count(); }

class SeededRng final : public Rng {
 public:
  explicit SeededRng(std::uint64_t seed) : m_engine(seed) {}
  std::uint64_t next() override { return m_engine(); }
  Nanos up_to(Nanos most)
  {
    return most <= 0 ? 0 : static_cast<Nanos>(below(*this, static_cast<std::uint64_t>(most) + 1));
  }
  bool one_in(unsigned count) { return below(*this, count) == 0; }

 private:
  std::mt19937_64 m_engine;
};

// The clock of a machine, which runs at a rate of its own.
class Host final : public Clock {
 public:
  explicit Host(double rate) : m_rate(rate) {}
  [[nodiscard]] Instant now() const override;
  Wake sleep_until(Instant when, const StopToken& stop) const override;
  [[nodiscard]] Nanos true_time(Instant when) const;  // rounded up

 private:
  double m_rate;
};

struct Process {
  std::string name;
  const Host& host;
  int client;
  bool is_stopped = false;  // by SIGSTOP
  bool is_dead = false;
};

class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  static World& current();

  [[nodiscard]] Nanos now() const { return m_now; }
  void at(Nanos when, std::function<void()> event);
  void after(Nanos delay, std::function<void()> event) { at(m_now + delay, std::move(event)); }

  Process& start(std::string name, const Host& host, int client, std::function<void()> main);
  Fiber& start_thread(std::function<void()> body);  // of the process that runs
  // The process runs no more. What its fibers own is freed by unwind(), which may come later.
  void kill(Process& process) { process.is_dead = true; }
  void unwind(Process& process);
  [[nodiscard]] bool has_ended(const Process& process) const;  // all its fibers have

  // Called with the process that has just run.
  std::function<void(Process& process)> after_run;
  Nanos longest_wake_up = 200'000;

  // One event, or one fiber until it blocks. False: nothing is left to do.
  bool step();

  // For a fiber: waits for descriptors, until `deadline`, or for the end of another fiber.
  int block(pollfd* waits, nfds_t count, Nanos deadline);
  void join(const Fiber& other);
  void note_look_at_clock();

 private:
  void look_for_ready();
  Fiber* choose();
  void wait(Fiber& fiber, pollfd* waits, nfds_t count, Nanos deadline, const Fiber* joins);
  void drop_done();

  Nanos m_now = 0;
  int m_looks_at_clock = 0;  // since a fiber went on
  SeededRng m_rng;
  std::multimap<Nanos, std::function<void()>> m_events;
  std::vector<std::unique_ptr<Process>> m_processes;
  std::vector<std::unique_ptr<Fiber>> m_fibers;
};

}  // namespace rlock::sim
