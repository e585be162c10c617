// SPDX-License-Identifier: Apache-2.0
// Random interleavings of clients of the record engine. No two clients may believe that they hold the lock. The same run with a
// deliberate mistake of the store or of the engine must find the mistake.
#include "unit/interleaving_clients.h"

using namespace rlock::test;

namespace {

// Whether the mistake breaks the lock within some seconds of work.
bool is_found(Mistake mistake, HoldsEnd how)
{
  Found found;
  for (int first = 0; found.violations == 0 && first < 256; first += 2) {
    found = run_worlds(mistake, 2, first, how);
  }
  return found.violations > 0;
}

}  // namespace

TEST_CASE("record interleavings: whatever comes between, late or never, one client at a time holds the lock")
{
  const Found found = run_worlds(Mistake::none, 8);
  CHECK(found.grants > 300);
  CHECK(found.conflicts > 100);
  CHECK(found.violations == 0);
}

TEST_CASE("record interleavings: deliberate mistakes of the store and of the engine are found")
{
  for (const Mistake mistake :
       {Mistake::time_after_state, Mistake::no_comparison, Mistake::version_comes_back, Mistake::remembered_decision}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(is_found(mistake, HoldsEnd::by_time));
  }
}

TEST_CASE("record interleavings with presences: one client at a time holds the lock, whatever clocks and members say")
{
  const Found found = run_worlds(Mistake::none, 8, 0, HoldsEnd::with_presences);
  CHECK(found.grants > 300);
  CHECK(found.conflicts > 100);
  CHECK(found.violations == 0);
}

TEST_CASE("record interleavings with presences: deliberate mistakes of the store are found")
{
  for (const Mistake mistake : {Mistake::no_comparison, Mistake::version_comes_back, Mistake::gone_before_record}) {
    CAPTURE(static_cast<int>(mistake));
    CHECK(is_found(mistake, HoldsEnd::with_presences));
  }
}

// A case each, because a search can take half a minute.
TEST_CASE("record interleavings with presences: a keep-alive that counts as a renewal is found")
{
  CHECK(is_found(Mistake::ping_is_proof, HoldsEnd::with_presences));
}

TEST_CASE("record interleavings with presences: a lease that counts from its answer is found")
{
  CHECK(is_found(Mistake::counted_from_answer, HoldsEnd::with_presences));
}

TEST_CASE("record interleavings with presences: an impatient operator is found")
{
  CHECK(is_found(Mistake::impatient_operator, HoldsEnd::with_presences));
}
