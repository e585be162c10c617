// SPDX-License-Identifier: Apache-2.0
// Parses the URL of a server: redis://, rediss://, unix://, redis+sentinel://, redis+cluster://, local: (rlock(1), SERVERS).
#pragma once

#include "base/result.h"
#include "net/endpoint.h"

#include <string_view>

namespace rlock {

// Errors: ErrorCode::usage; the text quotes the URL without the part before its '@'.
Result<Endpoint> parse_url(std::string_view url);

}  // namespace rlock
