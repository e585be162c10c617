// SPDX-License-Identifier: Apache-2.0
// Collects the facts about one server: asks it, its sentinels and the nodes of its cluster.
#pragma once

#include "doctor/facts.h"
#include "lock/names.h"
#include "server/transport.h"
#include "server/url.h"

namespace rlock {

struct CollectOptions {
  LockName name;   // the name of a trial lock, from random_lock_name
  Millis ttl;      // the ttl that the locks on this server will have
  Millis timeout;  // bounds each answer
};

// The endpoint for a client without a user name and a password.
Endpoint without_password(Endpoint endpoint);

// Collects the facts. Takes about a second, because the function measures the rate of the server's clock. `transport` leads to
// `endpoint`, and `anonymous` to without_password(endpoint).
Facts collect_facts(Transport& transport, Transport& anonymous, const Endpoint& endpoint, const CollectOptions& options,
                    const Clock& clock, Rng& rng);

}  // namespace rlock
