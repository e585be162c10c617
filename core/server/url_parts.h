// SPDX-License-Identifier: Apache-2.0
// The parts that several forms of a server URL have in common. Private to server.
#pragma once

#include "server/url.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// What is wrong when take_credentials fails.
constexpr std::string_view escape_percent = "a % in user or password must be written %25";

bool is_host_name(std::string_view host);  // letters, digits and ".-_"
bool is_host(std::string_view host);       // a host name or an address, as other servers may name one

// Quotes the URL without its secrets.
Error bad_url(std::string_view url, std::string_view why);

std::optional<unsigned> parse_db(std::string_view text);
std::optional<std::string> percent_decoded(std::string_view text);

// Removes `user[:password]@` from the front of `rest`; false: it is not escaped correctly.
bool take_credentials(std::string_view& rest, Endpoint& endpoint);

// Reads `host[:port]`; without a port `at` keeps its own. Returns what is wrong, or nullopt.
std::optional<std::string_view> take_authority(std::string_view authority, HostPort& at);

// For redis+sentinel:// and rediss+sentinel://; `rest` follows that.
Result<Endpoint> parse_sentinel(std::string_view url, std::string_view rest, bool tls);

}  // namespace rlock
