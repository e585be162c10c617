// SPDX-License-Identifier: Apache-2.0
// How many clients at once, or requests of theirs, a case asks of the kind of server that RLOCK_TEST_ON names.
#pragma once

namespace rlock::test {

// `usual`; an eighth of it on FerretDB, whose program of the tests serves one request at a time. A job in a crowd costs it some
// forty requests, and each takes it 1 to 15 ms.
int crowd_of(int usual);

// Whether a waiter far back closes its connection and asks every ten seconds (Traits::spares_connections). Those behind it may pass
// it meanwhile, and the lock may be free.
bool far_waiters_may_sleep();

}  // namespace rlock::test
