// SPDX-License-Identifier: Apache-2.0
#include "judge/server_faults.h"

#include "support/seeded_rng.h"

#include <algorithm>
#include <stdexcept>

namespace rlock::judge {

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
  set(Phase::made);
  while (!await(Phase::storm, std::chrono::hours(1))) {
  }
  storm();
  if (await(Phase::over, Millis(0))) {
    m_servers.reset();
    return;
  }
  m_settled = settle();
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

// On a busy machine a fixture may give up. false: more than once.
bool ServerFaults::settle()
{
  for (int tries = 0; tries < 3; ++tries) {
    try {
      m_servers->settle();
      return true;
    } catch (...) {  // doctest's assertions throw a type that is no std::exception
    }
  }
  return false;
}

bool ServerFaults::end_and_settle()
{
  set(Phase::settling);
  while (!await(Phase::settled, std::chrono::hours(1))) {
  }
  return m_settled;
}

void ServerFaults::storm()
{
  test::SeededRng rng(m_options.seed);
  std::vector<ServerFault> faults = m_servers->faults(m_options.keys);
  std::erase_if(faults, [&](const ServerFault& fault) { return !m_options.wanted(fault.name); });
  const auto pause = [&] {
    return Millis(static_cast<std::int64_t>(below(rng, 2 * static_cast<std::uint64_t>(m_options.pause.count()))));
  };
  while (!await(Phase::settling, pause())) {
    if (!faults.empty()) {
      inject(faults[below(rng, faults.size())], rng);
    }
  }
}

void ServerFaults::inject(const ServerFault& fault, Rng& rng)
{
  const BootClock clock;
  FaultRecord record{.name = fault.name, .excuse = fault.excuse, .key = {}, .begin = clock.now(), .end = {}};
  const Hit hit = fault.act(rng);
  if (!all_answer()) {
    settle();  // the fixture gave up before it had ended the fault
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
