// SPDX-License-Identifier: Apache-2.0
// Scans the keys of a server, or of all masters of a cluster. Errors are those of the transport.
#pragma once

#include "server/transport.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// The keys of this type ("hash", "list") whose name matches the glob, sorted. As SCAN guarantees, a key that exists during the
// whole scan is found; a key that comes or goes meanwhile may be.
Result<std::vector<std::string>> keys_like(Transport& transport, std::string_view pattern, std::string_view type,
                                           const PerAnswer& limits);

// The hashes that look like locks of any client, and whose name matches the glob, sorted. A script on the server looks at them in
// batches, so that a hash that is no lock costs no request.
Result<std::vector<std::string>> hashes_like_locks(Transport& transport, std::string_view pattern,
                                                   const PerAnswer& limits);

// The locks with a key "rlock:PART:…" of this type, and whose name matches the glob, sorted.
Result<std::vector<std::string>> locks_beside(Transport& transport, std::string_view part, std::string_view pattern,
                                              std::string_view type, const PerAnswer& limits);

}  // namespace rlock
