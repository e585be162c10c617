// SPDX-License-Identifier: Apache-2.0
// Keeps the records of locks in a bucket, an object for each lock, behind record::Backend.
#pragma once

#include <memory>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "stores/s3/s3_url.h"

namespace rlock::s3 {

// `clock` must outlive the backend. Connects at the first request.
std::unique_ptr<record::Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

}  // namespace rlock::s3
