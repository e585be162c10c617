// SPDX-License-Identifier: Apache-2.0
// Collects the facts about one server: asks it, its sentinels and the nodes of its cluster.
#pragma once

#include "doctor/facts.h"
#include "lock/names.h"
#include "server/transport.h"
#include "server/url.h"

namespace rlock {

struct CollectOptions {
  LockName name;   // of a trial lock, see random_lock_name
  Millis ttl;      // that the locks on this server will have
  Millis timeout;  // bounds each answer
};

// The same endpoint for a client without a name and a password.
Endpoint without_password(Endpoint endpoint);

// Takes about a second, because of the rate of the server's clock. `transport` leads to `endpoint`, `anonymous` to the
// same without a password.
Facts collect_facts(Transport& transport, Transport& anonymous, const Endpoint& endpoint, const CollectOptions& options,
                    const Clock& clock, Rng& rng);

}  // namespace rlock
