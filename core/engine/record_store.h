// SPDX-License-Identifier: Apache-2.0
// Opens the LockStore that keeps its records in a Backend.
#pragma once

#include <memory>
#include "base/clock.h"
#include "engine/record_backend.h"
#include "lock/store.h"

namespace rlock::record {

// `clock` must outlive the store.
std::unique_ptr<LockStore> store_on(std::unique_ptr<Backend> backend, const Clock& clock);

}  // namespace rlock::record
