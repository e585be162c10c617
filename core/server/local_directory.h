// SPDX-License-Identifier: Apache-2.0
// The directory of the private server: nobody else may get at what is in it. Private to wire.
#pragma once

#include "base/result.h"

#include <string>

namespace rlock {

std::string local_socket(const std::string& directory);
std::string local_log(const std::string& directory);

// There, no symbolic link, ours, and closed to everybody else. A socket anywhere else could be
// another user's, who would then decide which of our jobs may run.
bool is_private_directory(const std::string& directory);

// Makes it if need be. False where its parent does not exist; ErrorCode::config, with the fix, if it is
// not private or too deep for a unix socket.
Result<bool> prepare_directory(const std::string& directory);

}  // namespace rlock
