// SPDX-License-Identifier: Apache-2.0
// Finds out what a server means when it refuses a script, or meets a key of the wrong type, without naming the key.
#pragma once

#include "server/transport.h"

#include <string>
#include <string_view>

namespace rlock {

// Whether a request was refused because of one of its keys, and not because of the command.
bool is_about_keys(const Error& error);

// The error with `what` inserted before the advice in its parentheses.
Error naming(std::string_view what, Error error);

// The commands on that line of the script, counted from 1, with the key or channel that the line names:
// "HGET rlock:holder:{k}". Empty: none.
std::string requests_on_line(const ScriptCall& call, int line);

// Whether explained() can add to the error.
bool is_unclear(const Error& error);

// The error of the call, with the command, key or channel that was refused, or with the key of the wrong type. May send a
// request for each key of the call to find the one that the server means.
Error explained(Error error, Transport& transport, const ScriptCall& call, const CallLimits& limit);

}  // namespace rlock
