// SPDX-License-Identifier: Apache-2.0
// What an error reply means to a lock client. The texts are those of Redis 6.2 to 8.
#pragma once

#include "base/result.h"

#include <string_view>

namespace rlock {

// `where` is the server, as Endpoint::shown. The table in errors.cpp maps the code of the reply; an unknown code is
// ErrorCode::internal. Redis 6.2 wraps the code of an error inside a script (`ERR Error running script ... -READONLY
// ...`): then the first ` -CODE ` counts. Error::script_line is set for a refusal inside a script, because the text
// names neither the command nor the key.
Error error_from_reply(std::string_view text, std::string_view where);

bool is_missing_rule(
    const Error& error);  // the ACL of the user lacks a right; false: it could not log in, or another reason

bool is_unknown_script(std::string_view text);  // NOSCRIPT, wrapped or not

}  // namespace rlock
