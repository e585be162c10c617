// SPDX-License-Identifier: Apache-2.0
// Looking through all keys, on every server that may have some.
#pragma once

#include "server/transport.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// The keys of this type ("hash", "list") whose name matches the glob, sorted. They come and go meanwhile: what is there
// from the first to the last moment is found (SCAN).
Result<std::vector<std::string>> keys_like(Transport& transport, std::string_view pattern, std::string_view type,
                                           const PerAnswer& limits);

// The hashes whose name matches the glob and which look like locks, as clients of any kind write them, sorted. The server
// itself looks through them, a batch at a time: what is no lock costs no request of its own.
Result<std::vector<std::string>> hashes_like_locks(Transport& transport, std::string_view pattern,
                                                   const PerAnswer& limits);

// The locks whose name matches the glob and that have a key "rlock:PART:…" of this type beside them, sorted.
Result<std::vector<std::string>> locks_beside(Transport& transport, std::string_view part, std::string_view pattern,
                                              std::string_view type, const PerAnswer& limits);

}  // namespace rlock
