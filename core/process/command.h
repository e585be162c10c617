// SPDX-License-Identifier: Apache-2.0
// Finds the program of a command, so that rlock takes no lock for a command that does not exist.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// The path that execvp(3) would execute: `name` itself if it has a slash, else the first executable file
// of that name in `path` (the value of PATH; nullopt: PATH is not set, and the default of execvp(3) is used).
// Errors: ErrorCode::not_found, ErrorCode::not_executable.
Result<std::string> find_command(const std::string& name, std::optional<std::string_view> path);

}  // namespace rlock
