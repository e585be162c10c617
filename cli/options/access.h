// SPDX-License-Identifier: Apache-2.0
// How rlock identifies itself to the servers: passwords and TLS files.
#pragma once

#include "cli/options/server.h"

namespace rlock::cli {

// For each endpoint without a password in its URL: that of --password-file, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE, REDISCLI_AUTH, the
// config file's password-file, or that of another URL for the same server. `local:` has none, because its directory is private.
Result<Done> apply_passwords(const RawServer& raw, const Environment& environment, ServerSpec& server);

// The sentinels' own passwords; rlock never sends them those of the server.
Result<Done> apply_sentinel_passwords(const RawServer& raw, const Environment& environment, ServerSpec& server);

// The files for TLS, for the endpoints that use it. ErrorCode::usage: an option for TLS was given, and no endpoint uses it. A
// variable or a setting without effect is no error, because it may be for other servers.
Result<Done> apply_tls(const RawServer& raw, const Environment& environment, ServerSpec& server);

}  // namespace rlock::cli
