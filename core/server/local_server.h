// SPDX-License-Identifier: Apache-2.0
// `local:` one private redis-server for each user of this host, shared by all rlock processes of that user.
//
// The server works in a directory of mode 0700 that belongs to the user (another owner or a symbolic link is refused), on
// a unix socket, with an append-only file so that a crash of the server loses no lock. It is detached, so that it
// outlives the process that started it. For its life it holds an abstract socket (local_name.h), so that there is no
// second server where the directory was removed or two processes look in different directories.
#pragma once

#include "base/result.h"
#include "base/stop.h"
#include "server/url.h"

#include <string>
#include <vector>

namespace rlock {

struct LocalPlace {
  std::vector<std::string> directories;  // where to look for the server and where to start it, best first
  std::string name;                      // of its abstract socket
};

// The directories are $XDG_RUNTIME_DIR/rlock or /run/user/UID/rlock, then /tmp/rlock-UID; with an XDG_RUNTIME_DIR of the
// user's own choosing, there only. `name` (RLOCK_LOCAL_NAME) tells a further server of the same user apart; empty: the
// user's only one. ErrorCode::config where it is no name.
Result<LocalPlace> local_place(const std::string& xdg_runtime_dir, const std::string& name, unsigned uid);

// A unix endpoint that answers PING, started if need be, ready (not loading) by the limit. A server that runs in none of
// the directories is found by the process that holds the name.
//   unreachable  it did not come up, and the text says where its log is; or another process holds the name, and no server
//                can be reached there: the text says which process
//   config       no redis-server or valkey-server in PATH (the text says what to install), or the
//                directory is not safe
Result<Endpoint> local_server(const LocalPlace& place, const Clock& clock, const CallLimits& limit);

}  // namespace rlock
