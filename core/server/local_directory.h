// SPDX-License-Identifier: Apache-2.0
// The directory of the private server, which no other user may access. Private to server.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace rlock {

// The names of files in the directory. They are literals, so that they end with a zero byte.
inline constexpr std::string_view local_socket_name = "redis.sock";
inline constexpr std::string_view start_lock_name = "start.lock";  // locked by the process that starts the server

// The advice when there is no such directory.
inline constexpr const char* set_runtime_directory = " (set XDG_RUNTIME_DIR to a directory of this user)";

std::string local_socket(const std::string& directory);
std::string local_log(const std::string& directory);

// Whether the directory exists, is no symbolic link, belongs to this user and is closed to other users. A socket in
// another directory may belong to another user, who would then decide which jobs of this user may run.
bool is_private_directory(const std::string& directory);

// Makes the directory if it does not exist. False: its parent does not exist. ErrorCode::config: the directory is not private, or
// its path is too long for a unix socket; the text says what to do.
Result<bool> prepare_directory(const std::string& directory);

}  // namespace rlock
