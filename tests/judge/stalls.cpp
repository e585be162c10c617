// SPDX-License-Identifier: Apache-2.0
#include "judge/stalls.h"

#include <utility>

namespace rlock::judge {
namespace {

constexpr Millis shortest{15};  // what counts as a stall
constexpr Millis step{5};
constexpr Millis between_pings{40};

}  // namespace

StallMeter::StallMeter(std::function<void()> act, Millis expected)
    : m_thread([this, act = std::move(act), expected] { measure(act, expected); })
{
}

void StallMeter::stop()
{
  m_stop = true;
  if (m_thread.joinable()) {
    m_thread.join();
  }
}

void StallMeter::measure(const std::function<void()>& act, Millis expected)
{
  const BootClock clock;
  for (Instant before = clock.now(); !m_stop;) {
    act();
    const Instant now = clock.now();
    if (now - before >= expected + shortest) {
      m_stalls.push_back({before + expected, now});
    }
    before = now;
  }
}

StallMeter machine_stalls()
{
  return {[] { std::this_thread::sleep_for(step); }, step};
}

StallMeter server_stalls(Servers& servers)
{
  const auto ping = [&servers] {
    std::this_thread::sleep_for(between_pings);
    servers.ask_each([](const Ask& ask) { static_cast<void>(bool(ask({"PING"}))); });
  };
  return {ping, between_pings};
}

}  // namespace rlock::judge
