// SPDX-License-Identifier: Apache-2.0
// `local:`: a private redis-server for each user and root file system of this host, shared by all rlock processes of that user.
//
// The server works in a directory of mode 0700 that belongs to the user (rlock refuses another owner and a symbolic link), on a
// unix socket, with an append-only file, so that a crash of the server loses no lock. The server is detached, so that it outlives
// the process that started it. The server holds an abstract socket (local_name.h) until it ends, so that no process starts a
// second server when the directory was removed or when two processes look in different directories. The server ends when it has
// had no connection and no held lock for some time (local_idle.h), and the next caller starts it with its data.
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
  std::string name;                      // the name of its abstract socket
  Millis idle{0};                        // IdleRule::time
  std::string any_lock = {};  // a Lua script that returns 0 if no lock is held; empty: the server never ends by itself
  bool starts = true;         // false: a server that does not run is unreachable
};

// The directories are $XDG_RUNTIME_DIR/rlock or /run/user/UID/rlock, then /tmp/rlock-UID. If XDG_RUNTIME_DIR is not
// /run/user/UID, its directory is the only one. `name`: RLOCK_LOCAL_NAME, the name of a further server of the same user; empty:
// the user's default server. `idle`: RLOCK_LOCAL_IDLE; empty: default_local_idle. ErrorCode::config: `name` or `idle` is invalid.
Result<LocalSpec> local_spec(const std::string& xdg_runtime_dir, const std::string& name, const std::string& idle,
                             unsigned uid);

struct LocalServer {
  Endpoint endpoint;  // a unix socket
  Fd entry;  // while this is open, the server does not end by itself; keep it open until the connection is made
};

// Returns a server that answers PING and is not loading. Starts the server if it does not run. If the server runs in none of the
// directories, the process that holds the name leads to it. If no server runs, starts one in the directory that was used last,
// which has the data.
//   unreachable  the server did not start (the text says where its log is), or another process holds the name and cannot be
//                reached (the text names the process)
//   config       no redis-server or valkey-server in PATH (the text says what to install), or the
//                directory is not private
Result<LocalServer> local_server(const LocalSpec& spec, const Clock& clock, const CallLimits& limit);

}  // namespace rlock
