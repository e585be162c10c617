// SPDX-License-Identifier: Apache-2.0
// What a holder tells operators about itself. Renewed beside the lock, written and refreshed by the same scripts.
#pragma once

#include "base/clock.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

inline constexpr std::size_t longest_label = 256;  // bytes

struct HolderInfo {
  std::string host;
  std::int64_t pid = 0;
  std::string user;
  std::string command;        // without secrets; cut to 200 bytes
  std::string label;          // cut to longest_label
  std::int64_t since_ms = 0;  // wall clock of the holder's host, for people
  Millis lease{0};
  bool automatic = false;  // renewed until the job is over
};

// "name=value" lines, values percent-escaped: legible in redis-cli, and no JSON is needed in core.
std::string encode(const HolderInfo& info);
// A field that is missing or unreadable keeps its default, secrets in the command are masked; nullopt when no field is legible.
std::optional<HolderInfo> decode_holder(std::string_view text);

}  // namespace rlock
