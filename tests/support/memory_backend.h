// SPDX-License-Identifier: Apache-2.0
// Records of locks in the memory of the test program, for the record engine: what a database is for it, with real messages.
#pragma once

#include <memory>
#include <string>
#include "base/clock.h"
#include "store/record/record_backend.h"

namespace rlock::test {

// Adds the scheme `records` to the table of engines: records:NAME is the store NAME, which lives as long as the process. May be
// called again.
void add_record_engine();

// A backend on that store. `clock` must outlive it, and is the clock of the store.
std::unique_ptr<record::Backend> memory_backend(const std::string& name, const Clock& clock);

}  // namespace rlock::test
