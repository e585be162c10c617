// SPDX-License-Identifier: Apache-2.0
#include "judge/server_faults.h"

#include "base/stop.h"
#include "support/seeded_rng.h"

#include <algorithm>
#include <iostream>
#include <stdexcept>

namespace rlock::judge {
namespace {

constexpr Millis longest_mending{240'000};
constexpr Millis between_settlings{200};
constexpr Millis between_calms{20'000};
constexpr Millis calm_time{5000};

}  // namespace

ServerFaults::ServerFaults(ServerFaultOptions options) : m_options(std::move(options))
{
  const std::vector<std::string_view> known = topology_names();
  if (std::find(known.begin(), known.end(), m_options.topology) == known.end()) {
    throw std::invalid_argument("no such topology: " + m_options.topology);
  }
  m_thread = std::thread([this] { run(); });
  while (!await(Phase::made, std::chrono::hours(1))) {
  }
}

ServerFaults::~ServerFaults()
{
  set(Phase::over);
  m_thread.join();
}

std::vector<std::string> ServerFaults::names() const
{
  std::vector<std::string> names;
  for (const ServerFault& fault : m_faults) {
    names.push_back(fault.name);
  }
  return names;
}

void ServerFaults::begin() { set(Phase::storm); }

std::vector<FaultRecord> ServerFaults::records() const
{
  const std::lock_guard lock(m_mutex);
  return m_records;
}

void ServerFaults::set(Phase phase)
{
  const std::lock_guard lock(m_mutex);
  m_phase = phase;
  m_changed.notify_all();
}

bool ServerFaults::await(Phase phase, Millis timeout)
{
  std::unique_lock lock(m_mutex);
  return m_changed.wait_for(lock, timeout, [&] { return m_phase >= phase; });
}

void ServerFaults::run()
{
  m_servers = make_servers(m_options.topology);
  m_faults = m_servers->faults(m_options.keys);
  set(Phase::made);
  while (!await(Phase::storm, std::chrono::hours(1))) {
  }
  storm();
  if (await(Phase::over, Millis(0))) {
    m_servers.reset();
    return;
  }
  m_wrong = settle();
  set(Phase::settled);
  while (!await(Phase::over, std::chrono::hours(1))) {
  }
  m_servers.reset();
}

bool ServerFaults::all_answer()
{
  bool all = true;
  try {
    m_servers->ask_each([&](const Ask& ask) { all = bool(ask({"PING"})) && all; });
  } catch (...) {  // as below
    return false;
  }
  return all;
}

// On a busy machine a fixture may give up. Not empty: it did all the time, and why.
std::string ServerFaults::settle()
{
  const BootClock clock;
  std::string wrong;
  for (const Instant end = clock.now() + longest_mending; clock.now() < end;) {
    try {
      m_servers->settle();
      return "";
    } catch (const std::exception& failed) {
      wrong = failed.what();
    } catch (...) {  // doctest's assertions throw a type that is no std::exception
      wrong = "an assertion failed";
    }
    std::cerr << "the servers do not serve again: " + wrong + "\n";
    clock.sleep_until(clock.now() + between_settlings, StopToken::never());
  }
  return wrong;
}

std::string ServerFaults::end_and_settle()
{
  set(Phase::settling);
  while (!await(Phase::settled, std::chrono::hours(1))) {
  }
  return m_wrong;
}

void ServerFaults::storm()
{
  test::SeededRng rng(m_options.seed);
  std::vector<ServerFault> faults = m_faults;
  std::erase_if(faults, [&](const ServerFault& fault) { return !m_options.wanted(fault.name); });
  const auto pause = [&] {
    return Millis(static_cast<std::int64_t>(below(rng, 2 * static_cast<std::uint64_t>(m_options.pause.count()))));
  };
  const BootClock clock;
  Instant next_calm = clock.now() + between_calms / 2;
  while (!await(Phase::settling, pause())) {
    if (m_options.calms && clock.now() >= next_calm) {
      be_calm();
      next_calm = clock.now() + between_calms;
    } else if (!faults.empty()) {
      inject(faults[below(rng, faults.size())], rng);
    }
  }
}

void ServerFaults::be_calm()
{
  m_calm = true;
  await(Phase::settling, calm_time);
  m_calm = false;
}

void ServerFaults::inject(const ServerFault& fault, Rng& rng)
{
  const BootClock clock;
  FaultRecord record{.name = fault.name, .excuse = fault.excuse, .key = {}, .begin = clock.now(), .end = {}};
  const Hit hit = fault.act(rng);
  if (hit.gave_up || !all_answer()) {
    settle();
  }
  record.end = clock.now();
  record.key = hit.key;
  record.done = hit.done;
  record.excuse = hit.done ? fault.excuse : Excuse::none;
  if (hit.failed_over_since) {
    record.name += " (with a fail-over)";
    record.excuse = Excuse::fail_over;
    record.begin = std::min(record.begin, *hit.failed_over_since);
  }
  const std::lock_guard lock(m_mutex);
  m_records.push_back(record);
}

}  // namespace rlock::judge
