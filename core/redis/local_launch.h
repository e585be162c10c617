// SPDX-License-Identifier: Apache-2.0
// Starts the private server, detached from the process that starts it. Private to redis.
#pragma once

#include <sys/types.h>
#include <string>
#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"

namespace rlock {

// Ends a private server that no process uses. Private to redis.
//
// A client holds a shared lock (flock(2)) on the directory of the server from before it looks for the server until it is
// connected (local_entry). The watching process ends the server under the exclusive lock, after the server has said that it has
// no connection but the one of the watching process, and that no client has connected since the last question. So no client finds
// a server and then cannot reach it. The watching process also holds the lock of the processes that start a server, so that the
// next server begins after the end of this server.

// When the server must end. The caller makes the rule before the fork, because another thread may hold the lock of malloc.
struct IdleRule {
  Millis time;             // how long without a connection and without a held lock; 0: the server never ends by itself
  std::string lock_query;  // the request that the server answers with 0 if no lock is held
};

// Watches the server, a child of this process that works in the working directory of this process, and ends it by `rule`. Returns
// when the server has ended for any reason. Makes only async-signal-safe calls.
void end_when_idle(pid_t server, const IdleRule& rule);

// The request `EVAL SCRIPT 0`.
std::string eval_request(const std::string& script);

// Returns a descriptor; while it is open, the server in this directory does not end by itself. No descriptor: there is no such
// directory. Errors: ErrorCode::unreachable: the server is still ending at the deadline; ErrorCode::os.
Result<Fd> local_entry(const std::string& directory, const Clock& clock, const CallLimits& limit);

struct ServerProgram {
  std::string path;
  std::string called;  // its argv[0]
};
// Redis or Valkey in PATH. ErrorCode::config: there is neither; the text says what to install.
Result<ServerProgram> find_server_program();

bool is_listening(const std::string& socket_path);

enum class LaunchEvent : char { listens = 'L', name_taken = 'T' };

// Returns a descriptor from which the caller reads one LaunchEvent, or the end of file if the server ended before.
//
// A watching process starts the server and holds `lock` until the LaunchEvent, because the caller may be interrupted or killed
// meanwhile, and a second server beside a server that does not listen yet would replace its socket and its file. The server does
// not inherit the lock. The server holds the abstract socket `name` until it ends. The watching process ends the server by
// `idle`.
//
// The caller may have several threads and may be a child subreaper: the server never becomes a child of the caller.
Result<Fd> launch_server(const ServerProgram& program, const std::string& directory, const std::string& name,
                         const IdleRule& idle, const Fd& lock);

}  // namespace rlock
