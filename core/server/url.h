// SPDX-License-Identifier: Apache-2.0
// Parses the URL of a server (contract: redis://, rediss://, unix://, redis+sentinel://, redis+cluster://, local:).
#pragma once

#include "base/result.h"
#include "net/endpoint.h"

#include <string_view>

namespace rlock {

// Errors are ErrorCode::usage. They quote the URL without the text before its '@'.
Result<Endpoint> parse_url(std::string_view url);

}  // namespace rlock
