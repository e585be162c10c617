// SPDX-License-Identifier: Apache-2.0
// Several leases of one job, with different ttls.
#include "lease/lease.h"

#include "support/fake_store.h"
#include "support/integration.h"

#include <atomic>
#include <memory>

using namespace rlock::test;

namespace {

const BootClock real;
const Log quiet(Verbosity::quiet);

// A granted lock on a server of its own.
struct Held {
  explicit Held(Millis ttl)
      : store(store_on(std::make_shared<FakeServer>(), real)),
        spec{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = ttl, .who = {}, .once = {}},
        lease(*store, acquired(), 10ms, real, quiet)
  {
  }

  GrantedLock acquired()
  {
    const Owner owner = Owner::of("alice");
    const Instant sent_at = real.now();
    REQUIRE(store->acquire(spec, owner, {}, {.deadline = sent_at + 5s, .stop = StopToken::never()}));
    return {.spec = spec, .owner = owner, .lease = {.from = sent_at, .length = spec.ttl}, .listener = {}};
  }

  std::unique_ptr<LockStore> store;
  LockRequest spec;
  Lease lease;
};

}  // namespace

TEST_CASE("lease group: the job's deadline is the end of the lease that ends first")
{
  constexpr Millis short_ttl{2s};
  Held lasting(60s);
  Held brief(short_ttl);
  std::atomic<int> moves{0};
  std::atomic<bool> counts_on_the_longer{false};
  LeaseGroup group({.watch = {.renews = true, .consequence = "the job will be stopped"},
                    .on_moved =
                        [&](const LeaseBudget& lease) {
                          ++moves;
                          if (lease.valid_until() > real.now() + short_ttl) {
                            counts_on_the_longer = true;
                          }
                        }},
                   real, quiet);
  group.add(lasting.lease);
  group.add(brief.lease);
  wait_until(
      [&] {
        group.watch();
        return lasting.lease.is_watched() && brief.lease.is_watched();
      },
      "both are watched");
  wait_until([&] { return moves >= 3; }, "the short lease was renewed");
  group.stop_watchdogs();
  CHECK_FALSE(counts_on_the_longer);
}
