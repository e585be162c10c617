// SPDX-License-Identifier: Apache-2.0
// What an error reply means to a lock client (texts of Redis 6.2 to 8, measured).
#pragma once

#include "base/result.h"

#include <string_view>

namespace rlock {

// `where` names the server, as Endpoint::shown. LOADING, BUSY, OOM, MISCONF, READONLY, MASTERDOWN,
// NOREPLICAS, CLUSTERDOWN, TRYAGAIN, "max number of clients" are unfit; NOAUTH, WRONGPASS, NOPERM
// and the two ways a script is denied are refused; WRONGTYPE and "DB index is out of range" are
// config; anything else is internal. Redis 6.2 wraps the code of an error inside a script (`ERR
// Error running script ... -READONLY ...`): the first ` -CODE ` counts then. Some that belong to
// these are treated like them: DENIED (protected mode) is refused, MOVED and ASK are config. What is
// refused inside a script has its line, for the text says neither command nor key.
Error error_from_reply(std::string_view text, std::string_view where);

bool is_unknown_script(std::string_view text);  // NOSCRIPT, wrapped or not

}  // namespace rlock
