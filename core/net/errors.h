// SPDX-License-Identifier: Apache-2.0
// What an error reply means to a lock client. The texts are those of Redis 6.2 to 8.
#pragma once

#include "base/result.h"

#include <string_view>

namespace rlock {

// The error of a reply. `where`: the server, as Endpoint::shown. The table in errors.cpp maps the code of the reply to an
// ErrorCode; an unknown code is ErrorCode::internal. Redis 6.2 wraps the code of an error inside a script (`ERR Error running
// script ... -READONLY ...`): then the first ` -CODE ` counts. A refusal inside a script sets Error::script_line, because the
// text names neither the command nor the key.
Error error_from_reply(std::string_view text, std::string_view where);

bool is_missing_rule(
    const Error&
        error);  // true: the ACL of the user lacks a right; false: the user could not log in, or another reason

bool is_unknown_script(std::string_view text);   // NOSCRIPT, wrapped or not
bool is_unknown_command(std::string_view text);  // the server does not have the command, or has it renamed

}  // namespace rlock
