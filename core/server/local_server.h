// SPDX-License-Identifier: Apache-2.0
// `local:`: a private redis-server for each user and root file system of this host, shared by all rlock processes of that user.
//
// The server works in a directory of mode 0700 that belongs to the user (another owner or a symbolic link is refused),
// on a unix socket, with an append-only file so that a crash of the server loses no lock. It is detached, so that it
// outlives the process that started it. It holds an abstract socket (local_name.h) until it ends, so that no second
// server is started when the directory was removed or when two processes look in different directories. It ends when it has had
// no connection and no held lock for some time (local_idle.h), and the next caller starts it with its data.
#pragma once

#include "base/call_limits.h"
#include "base/fd.h"
#include "base/result.h"
#include "server/url.h"

#include <string>
#include <vector>

namespace rlock {

struct LocalSpec {
  std::vector<std::string> directories;  // where to look for the server and where to start it, best first
  std::string name;                      // of its abstract socket
  Millis idle{0};                        // as IdleRule::time
  std::string any_lock = {};  // Lua that returns 0 where no lock is held; empty: the server never ends by itself
  bool starts = true;         // false: a server that does not run is unreachable
};

// The directories are $XDG_RUNTIME_DIR/rlock or /run/user/UID/rlock, then /tmp/rlock-UID. An XDG_RUNTIME_DIR other than
// /run/user/UID is the only one. `name` (RLOCK_LOCAL_NAME) is that of a further server of the same user; empty: the
// user's default server. `idle`: RLOCK_LOCAL_IDLE; empty: default_local_idle. ErrorCode::config: `name` or `idle` is invalid.
Result<LocalSpec> local_spec(const std::string& xdg_runtime_dir, const std::string& name, const std::string& idle,
                             unsigned uid);

struct LocalServer {
  Endpoint endpoint;  // a unix socket
  Fd entry;           // the server does not end by itself while this is open: keep it until the connection is made
};

// A server that answers PING and is not loading. Starts the server if it does not run. A server that runs in none of the
// directories is found by the process that holds the name. Where none runs, it is started in the directory that was used last,
// which has the data.
//   unreachable  the server did not start: the text says where its log is; or another process holds the name and cannot be
//                reached: the text says which process
//   config       no redis-server or valkey-server in PATH (the text says what to install), or the
//                directory is not private
Result<LocalServer> local_server(const LocalSpec& spec, const Clock& clock, const CallLimits& limit);

}  // namespace rlock
