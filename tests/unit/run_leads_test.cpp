// SPDX-License-Identifier: Apache-2.0
#include "run/prepared_job.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

StopLeads leads(Millis ttl, Millis kill_after) { return stop_leads(ttl, kill_after); }

}  // namespace

TEST_CASE("leads: KILL comes before the last resort, and that before the end of the lease, whatever --kill-after says")
{
  for (const Millis ttl : {100ms, 200ms, 1000ms, 5000ms, 30'000ms, 3'600'000ms}) {
    for (const Millis kill_after : {0ms, 1ms, 100ms, 5000ms, 600'000ms}) {
      CAPTURE(ttl.count());
      CAPTURE(kill_after.count());
      const StopLeads found = leads(ttl, kill_after);
      CHECK(found.last_resort >= std::min(ttl / 6, std::clamp(ttl / 20, 10ms, 500ms)));
      CHECK(found.kill > found.last_resort);
      CHECK(found.signal >= found.kill);
      CHECK(found.signal <= std::max(found.kill, std::min(kill_after, ttl / 6)));
    }
  }
  CHECK(leads(30s, 5s).signal == 5s);
  CHECK(leads(30s, 5s).kill == 750ms);
  CHECK(leads(30s, 5s).last_resort == 500ms);
}
