// SPDX-License-Identifier: Apache-2.0
// What the forms of a server's URL have in common. Private to server.
#pragma once

#include "server/url.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

bool is_host_name(std::string_view host);  // letters, digits and ".-_"

// Quotes the URL without its secrets.
Error bad_url(std::string_view url, std::string_view why);

std::optional<unsigned> parse_db(std::string_view text);
std::optional<std::string> percent_decoded(std::string_view text);

// Takes `user[:password]@` off the front of `rest`; false if it is not well escaped.
bool take_credentials(std::string_view& rest, Endpoint& endpoint);

// `host[:port]`, in which the port may be missing if `at` has one already. Nothing, or what is wrong with it.
std::optional<std::string_view> take_authority(std::string_view authority, HostPort& at);

// redis+sentinel:// and rediss+sentinel://: what follows that.
Result<Endpoint> parse_sentinel(std::string_view url, std::string_view rest, bool tls);

}  // namespace rlock
