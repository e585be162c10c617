// SPDX-License-Identifier: Apache-2.0
// Which of a cluster's slots a key, or a channel, belongs to.
#pragma once

#include <string_view>

namespace rlock {

constexpr unsigned slot_count = 16384;

// Of what stands between the first '{' and the next '}', if that is anything; else of the whole name.
unsigned slot_of(std::string_view name);

}  // namespace rlock
