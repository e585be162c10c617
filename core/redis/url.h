// SPDX-License-Identifier: Apache-2.0
// Parses the URL of a server: redis://, rediss://, unix://, redis+sentinel://, redis+cluster://, local: (rlock(1), SERVERS).
#pragma once

#include <optional>
#include <string_view>
#include "base/result.h"
#include "net/endpoint.h"
#include "net/url_parts.h"

namespace rlock {

// Errors: ErrorCode::usage; the text quotes the URL without the part before its '@'.
Result<Endpoint> parse_url(std::string_view url);

// Parses the parts that several forms of a server URL have in common. Private to redis.

// The reason when take_credentials fails.
constexpr std::string_view escape_percent = "a % in user or password must be written %25";

// The error of an invalid URL, which quotes the URL without its secrets.
Error bad_url(std::string_view url, std::string_view why);

std::optional<unsigned> parse_db(std::string_view text);

// Moves `user[:password]@` from the front of `rest` to `endpoint`; false: the escapes are invalid.
bool take_credentials(std::string_view& rest, Endpoint& endpoint);

// Reads `host[:port]` into `at`, which keeps its port if there is none. Returns what is wrong; nullopt: nothing.
std::optional<std::string_view> take_authority(std::string_view authority, HostPort& at);

// Parses redis+sentinel:// and rediss+sentinel://. `rest`: the text after the scheme.
Result<Endpoint> parse_sentinel(std::string_view url, std::string_view rest, bool tls);

}  // namespace rlock
