// SPDX-License-Identifier: Apache-2.0
// Scans the keys of a server, or of all masters of a cluster. As SCAN guarantees, a key that exists during the whole scan is
// found; a key that comes or goes meanwhile may be. Errors are those of the transport, and ErrorCode::internal for a scan that
// does not end.
#pragma once

#include "server/transport.h"

#include <string>
#include <string_view>
#include <vector>

namespace rlock {

// What may be a lock and whose name matches the glob, sorted: the hashes that look like locks of any client, and what has a
// holder record beside it. A script on the server looks at each page of the scan, so that a hash that is no lock costs no request.
Result<std::vector<std::string>> find_locks(Transport& transport, std::string_view pattern, const PerAnswer& limits);

// The locks with a key "rlock:PART:…" of this type ("hash", "list"), and whose name matches the glob, sorted.
Result<std::vector<std::string>> locks_beside(Transport& transport, std::string_view part, std::string_view pattern,
                                              std::string_view type, const PerAnswer& limits);

// Lua for the private server of `local:`: 0 where no lock is held, of whichever kind.
std::string any_lock_script();

}  // namespace rlock
