// SPDX-License-Identifier: Apache-2.0
// Masks secrets in command lines before rlock stores, shows or logs them. Pure functions; any thread may call them.
//
// A secret is the user and password of a URL, and the value of every option or assignment whose name contains
// "password", "passwd", "secret", "token", "api-key" or "apikey", in any case: --x=V, --x V, X=V.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rlock {

inline constexpr std::string_view masked = "***";

// The words of a command joined by blanks, each secret replaced by `masked`. The word after -c is read as a shell reads
// it.
std::string shown_command(std::span<const std::string> words);

// The same for a command line whose word boundaries are lost, and for the text of a script: words end at blanks outside
// quotes. Masking a masked text changes nothing.
std::string without_secrets(std::string_view text);

}  // namespace rlock
