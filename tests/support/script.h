// SPDX-License-Identifier: Apache-2.0
// Shell scripts that call rlock, and the keepers that they leave behind.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rlock::test {

// Runs `bash -c text` with rlock in PATH and the server in $URL.
Process script(const RedisServer& server, const std::string& text, ProcessOptions options = {});

// The built rlock, with the options that rlock_argv adds on a quorum.
std::filesystem::path rlock_program();

// The processes whose command line names this server.
std::vector<pid_t> keepers(const RedisServer& server);

// Waits until there is a keeper and the script has its token, which the script shows by printing "ready".
pid_t keeper_of(const RedisServer& server, const Process& ready_script);

// Until no keeper is left.
void wait_for_end(const RedisServer& server);

// Takes the lock x away from its holder, as a client that rlock does not know.
void give_to_another(const RedisServer& server);

}  // namespace rlock::test
