// SPDX-License-Identifier: Apache-2.0
// The forms of a server's URL, as `rlock help servers` shows them.
#pragma once

#include <span>
#include <string_view>

namespace rlock::cli {

inline constexpr std::string_view servers_topic = "servers";

struct ServerForm {
  std::string_view url;
  std::string_view meaning;
};
std::span<const ServerForm> server_forms();

}  // namespace rlock::cli
