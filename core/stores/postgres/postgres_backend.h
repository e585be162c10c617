// SPDX-License-Identifier: Apache-2.0
// Keeps the records of locks in tables of a PostgreSQL database (12 or newer), and wakes waiters by NOTIFY.
#pragma once

#include <memory>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "stores/postgres/postgres_url.h"

namespace rlock::postgres {

// Connects at the first request, and makes the tables where they are missing, unless the URL says create=no. `clock` must
// outlive the backend.
std::unique_ptr<record::Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

}  // namespace rlock::postgres
