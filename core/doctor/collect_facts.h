// SPDX-License-Identifier: Apache-2.0
// Asks one server, and who leads to it, all that the doctor wants to know.
#pragma once

#include "doctor/facts.h"
#include "lock/names.h"
#include "server/transport.h"
#include "server/url.h"

namespace rlock {

struct Examination {
  LockName name;   // of a lock of our own, see name_of_our_own
  Millis ttl;      // that locks here are to have
  Millis timeout;  // bounds each answer
};

// The same place for a client without a name and a password.
Endpoint without_password(Endpoint endpoint);

// Takes about a second, for the rate of the server's clock. `transport` leads to `endpoint`, `anonymous` to the same without
// a password.
Facts collect_facts(Transport& transport, Transport& anonymous, const Endpoint& endpoint, const Examination& what,
                    const Clock& clock, Rng& rng);

}  // namespace rlock
