// SPDX-License-Identifier: Apache-2.0
// Asks one server, and who leads to it, all that the doctor wants to know.
#pragma once

#include "doctor/facts.h"
#include "lock/names.h"
#include "wire/transport.h"
#include "wire/url.h"

namespace rlock {

struct Examination {
  LockName name;   // of a lock of our own, see name_of_our_own
  Millis ttl;      // that locks here are to have
  Millis timeout;  // bounds each answer
};

// Takes about a second, for the rate of the server's clock. `transport` leads to `endpoint`.
Facts examine(Transport& transport, const Endpoint& endpoint, const Examination& what, const Clock& clock, Rng& rng);

}  // namespace rlock
