// SPDX-License-Identifier: Apache-2.0
#include "cli/options/wipe.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rlock::cli {

void wipe_passwords(std::span<char* const> argv)
{
  constexpr std::string_view secret = "sentinel_password=";
  for (char* word : argv) {
    if (char* const parameter = std::strstr(word, secret.data()); parameter != nullptr) {
      char* const value = parameter + secret.size();
      std::fill(value, value + std::strlen(value), '*');
    }
    char* const scheme_end = std::strstr(word, "://");
    // The last '@', because a password without percent-encoding may contain more of them.
    char* const at = scheme_end == nullptr ? nullptr : std::strrchr(scheme_end, '@');
    if (at != nullptr) {
      std::fill(scheme_end + 3, at, '*');
    }
  }
}

}  // namespace rlock::cli
