// SPDX-License-Identifier: Apache-2.0
// Text that comes from elsewhere, made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace rlock {

// Control characters (C0, DEL and, in UTF-8, C1) as \n, \t or \xNN, a backslash doubled, so that a lock's name cannot
// move the cursor or forge a log line.
std::string printable(std::string_view text);

// User and password of every URL in the text, and sentinel_password among its parameters, as "***": what is shown or stored of other people's words.
std::string without_secrets(std::string_view text);

// As JSON writes it, in its quotes; what is no UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);

}  // namespace rlock
