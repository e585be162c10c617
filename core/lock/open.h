// SPDX-License-Identifier: Apache-2.0
// From "which server" to a store that locks can be taken in.
#pragma once

#include "lock/store.h"
#include "wire/url.h"

#include <memory>
#include <string>

namespace rlock {

struct ServerSpec {
  Endpoint endpoint;
  Millis timeout{5000};                        // bounds connecting and every answer
  std::string runtime_directory;  // for Endpoint::Kind::local: the value of XDG_RUNTIME_DIR
};

// Starts the local server where that is what is asked for; else touches no network yet. `clock` must outlive the store.
Result<std::unique_ptr<LockStore>> open_store(const ServerSpec& server, const Clock& clock, Stop stop);

}  // namespace rlock
