// SPDX-License-Identifier: Apache-2.0
// The server refuses a script, or finds something else at one of its keys, without a word about which: found out here.
#pragma once

#include "server/transport.h"

#include <string>
#include <string_view>

namespace rlock {

// A request was refused for one of its keys, and not for what it does.
bool is_about_keys(const Error& error);

// The error with what it was about, before the advice in its brackets.
Error naming(std::string_view what, Error error);

// The requests on that line of the script, counted from 1, with their key or channel where the line names it:
// "HGET rlock:holder:{k}". Empty: none.
std::string requests_on_line(const ScriptCall& call, int line);

// What explained() can say more about.
bool is_unclear(const Error& error);

// `error`, which came of the call, with the command, the key or the channel that was refused, or the key that holds
// something else than what rlock keeps there. A key that the server refused before it ran the script, or that holds
// something else, is looked for by asking for each.
Error explained(Error error, Transport& transport, const ScriptCall& call, const CallLimits& limit);

}  // namespace rlock
