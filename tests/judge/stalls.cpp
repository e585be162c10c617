// SPDX-License-Identifier: Apache-2.0
#include "judge/stalls.h"

namespace rlock::judge {
namespace {

constexpr Millis step{5};
constexpr Millis shortest{15};  // what counts as a stall

}  // namespace

StallMeter::StallMeter() : m_thread([this] { measure(); }) {}

void StallMeter::stop()
{
  m_stop = true;
  if (m_thread.joinable()) {
    m_thread.join();
  }
}

void StallMeter::measure()
{
  const BootClock clock;
  for (Instant before = clock.now(); !m_stop;) {
    std::this_thread::sleep_for(step);
    const Instant now = clock.now();
    if (now - before >= step + shortest) {
      m_stalls.push_back({before + step, now});
    }
    before = now;
  }
}

}  // namespace rlock::judge
