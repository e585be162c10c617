// SPDX-License-Identifier: Apache-2.0
// Suggests a known word for one that the user mistyped.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlock::cli {

// " (did you mean 'status'?)", or `otherwise` when no known word is similar.
std::string did_you_mean(std::string_view typed, std::span<const std::string> known, std::string_view otherwise);

}  // namespace rlock::cli
