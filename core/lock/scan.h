// SPDX-License-Identifier: Apache-2.0
// Looking through all keys, on every server that may have some.
#pragma once

#include "wire/transport.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// The keys of this type ("hash", "list") whose name matches the glob, sorted. They come and go meanwhile: what is there
// from the first to the last moment is found (SCAN).
Result<std::vector<std::string>> keys_like(Transport& transport, std::string_view pattern, std::string_view type,
                                           const Limit& limit);

// The locks whose name matches the glob and that have a key "rlock:PART:…" of this type beside them, sorted.
Result<std::vector<std::string>> locks_beside(Transport& transport, std::string_view part, std::string_view pattern,
                                              std::string_view type, const Limit& limit);

}  // namespace rlock
