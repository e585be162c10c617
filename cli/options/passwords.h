// SPDX-License-Identifier: Apache-2.0
// Which password rlock sends to which server, and what an error says of it.
#pragma once

#include "cli/options/server.h"

#include <optional>
#include <span>
#include <string>

namespace rlock::cli {

// For each endpoint without a password in its URL: that of --password-file, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE, the variable of
// the server's own tools, the config file's password-file, or that of another URL for the same server. `local:` has none, because its
// directory is private. Warns of a file that every user may read.
Result<Done> apply_passwords(const RawServer& raw, const Environment& environment, ServerSpec& server);
// The sentinels' own passwords; rlock never sends them those of the server.
void apply_sentinel_passwords(const Environment& environment, ServerSpec& server);

// Where the password of the endpoint comes from; nullopt: it has none. `endpoint`, `url_origin`: of NamedEndpoints.
std::optional<Origin> origin_of_password(const RawServer& raw, const Environment& environment, const Endpoint& endpoint,
                                         const Origin& url_origin);

// The user that rlock names to the servers, and where its password stands: "the user 'ann' and the password in RLOCK_PASSWORD", for
// with_login. Empty: there is no password, or there are several.
std::string login_of(const NamedEndpoints& named, const RawServer& raw, const Environment& environment);

// Adds to a refusal of a server that a job, or a script with a lock, was refused for want of the outer rlock's password.
Error with_password_for_job(Error error, const Environment& environment);

// Writes '*' over user and password of every URL in argv, in place, because ps(1) reads that memory. Copy the words before,
// also those of the job, which needs them unchanged.
void wipe_passwords(std::span<char* const> argv);

}  // namespace rlock::cli
