// SPDX-License-Identifier: Apache-2.0
// A slip of the hand, and the word that may have been meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlock::cli {

// " (did you mean 'status'?)", or `otherwise` when nothing is near.
std::string did_you_mean(std::string_view raw, std::span<const std::string> known, std::string_view otherwise);

}  // namespace rlock::cli
