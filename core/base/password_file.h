// SPDX-License-Identifier: Apache-2.0
// A password in a file, which may change while rlock runs.
#pragma once

#include "base/result.h"

#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// Returns the first line. ErrorCode::config: the file has no such line; the text names `named_by` and the path.
Result<std::string> read_password_file(const std::string& path, std::string_view named_by = "--password-file");

// The first line, if it is another password than `known`. nullopt: it is the same, or there is no file, or no line in it.
std::optional<std::string> changed_password(const std::string& path, const std::string& known);

}  // namespace rlock
