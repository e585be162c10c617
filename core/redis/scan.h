// SPDX-License-Identifier: Apache-2.0
// Scans the keys of a server, or of all masters of a cluster. As SCAN guarantees, the scan finds each key that exists during the
// whole scan, and may miss a key that comes or goes meanwhile. Errors: those of the transport; ErrorCode::internal: the scan does
// not end.
#pragma once

#include "redis/transport.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// The keys that may be locks and whose name matches the glob, sorted: the hashes that look like locks of any client, and the keys
// that have a holder record beside them. A script on the server filters each page of the scan, so that a hash that is no lock
// costs no request.
Result<std::vector<std::string>> find_locks(Transport& transport, std::string_view pattern, const PerAnswer& limits);

// The locks with a key "rlock:PART:…" of this type ("hash", "list"), and whose name matches the glob, sorted.
Result<std::vector<std::string>> locks_beside(Transport& transport, std::string_view part, std::string_view pattern,
                                              std::string_view type, const PerAnswer& limits);

// The Lua script by which the private server of `local:` tells whether a lock of any kind is held; 0: none.
std::string any_lock_script();

}  // namespace rlock
