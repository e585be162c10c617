// SPDX-License-Identifier: Apache-2.0
// `local:` one private redis-server for each user of this host, shared by all their rlocks.
//
// It lives in a directory of mode 0700 owned by the user (another owner or a symbolic link is
// refused), on a unix socket, with an append-only file so that a crash of the server loses no lock,
// and detached, so that it outlives whoever started it. Two rlocks that start it at the same moment
// start one (flock on a file beside the socket).
#pragma once

#include "base/result.h"
#include "base/stop.h"
#include "wire/url.h"

#include <string>
#include <vector>

namespace rlock {

// Where to look, best first: $XDG_RUNTIME_DIR/rlock or /run/user/UID/rlock, then /tmp/rlock-UID. A
// server found alive in any of them is used, so that a cron job without a session finds the one
// that a login started. With an XDG_RUNTIME_DIR of the user's own choosing there is that one only.
std::vector<std::string> local_server_directories(const std::string& xdg_runtime_dir, unsigned uid);

// A unix endpoint that answers PING, started if need be, ready (not loading) by the limit.
//   unreachable  it did not come up; the text says where its log is
//   config       no redis-server or valkey-server in PATH (the text says what to install), or the
//                directory is not safe
Result<Endpoint> local_server(const std::vector<std::string>& directories, const Clock& clock,
                              const Limit& limit);

}  // namespace rlock
