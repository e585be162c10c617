// SPDX-License-Identifier: Apache-2.0
// The slot of a cluster to which a key or a channel belongs.
#pragma once

#include <string_view>

namespace rlock {

constexpr unsigned slot_count = 16384;

// The slot of the text between the first '{' and the next '}', or of the whole name if there is no such text.
unsigned slot_of(std::string_view name);

}  // namespace rlock
