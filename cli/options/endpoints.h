// SPDX-License-Identifier: Apache-2.0
// Which servers: from --server, a variable or the config file to endpoints.
#pragma once

#include "cli/options/environment.h"
#include "store/open.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

inline constexpr std::string_view default_url = "redis://127.0.0.1:6379";

// The URLs in a variable are separated by spaces.
std::vector<std::string> urls_in(std::string_view text);

struct NamedEndpoints {
  std::vector<Endpoint> endpoints;  // at least one; several form a quorum
  std::string named_by;             // "--server", "RLOCK_SERVER", "/etc/rlock.toml:3", "REDIS_URL" or "default"
};

// The endpoints of `urls`, the values of --server; when it is empty those of RLOCK_SERVER, the config file, REDIS_URL, or the
// default server, whichever is set first. REDIS_URL comes behind the file, because it is often the server of an application,
// such as a cache. The error names the source of a bad URL: ErrorCode::usage for an option, else ErrorCode::config.
Result<NamedEndpoints> resolve_endpoints(const std::vector<std::string>& urls, const Environment& environment);

}  // namespace rlock::cli
