// SPDX-License-Identifier: Apache-2.0
// The time of a record where the store has no clock: that of the client, when the store has answered. A time from before the request
// would be earlier than that of a record which another client writes meanwhile. Then the two would move the time of the record on,
// ahead of all clocks.
#include "support/etcd_fixture.h"
#include "support/integration.h"
#include "support/limits.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;

namespace {

const BootClock the_clock;

// The server stands still while it has the request.
void check_time_of_read(record::Backend& backend, const std::function<void()>& stop,
                        const std::function<void()>& resume)
{
  const auto connected = backend.read("k", soon());
  REQUIRE_MESSAGE(connected, connected.error().text);
  stop();
  std::int64_t resumed_at_ms = 0;
  std::thread resuming([&] {
    std::this_thread::sleep_for(200ms);  // else the request may not have been sent, and the case proves nothing
    resumed_at_ms = wall_clock_ms();
    resume();
  });
  const auto state = backend.read("k", soon());
  resuming.join();
  REQUIRE_MESSAGE(state, state.error().text);
  CHECK(state->time_us >= resumed_at_ms * 1000);
}

}  // namespace

ETCD_CASE("etcd: the time of a record is that of the answer")
{
  const auto backend = server.open_backend(the_clock);
  check_time_of_read(
      *backend, [&] { server.stop(); }, [&] { server.resume(); });
}

TEST_CASE("zookeeper: the time of a record is that of the answer")
{
  ZookeeperServer server;
  const auto backend = server.open_backend(the_clock);
  check_time_of_read(
      *backend, [&] { server.stop(); }, [&] { server.resume(); });
}
