// SPDX-License-Identifier: Apache-2.0
// Reads what `rlock history` and `rlock status` tell about the lock "k" of a server.
#pragma once

#include "support/json.h"
#include "support/redis_fixture.h"

#include <sys/types.h>
#include <string>
#include <vector>

namespace rlock::test {

std::vector<Json> history_of(const RedisServer& server, const std::string& key = "k");  // the last run first
Json status_of(const RedisServer& server);

// Those of `rlock status --json KEY`, in their order; 0: a client that is no rlock.
std::vector<pid_t> pids_waiting(const std::string& status);

// "failed 3, succeeded 0"
std::string outcomes(const std::vector<Json>& runs);

}  // namespace rlock::test
