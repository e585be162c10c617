// SPDX-License-Identifier: Apache-2.0
// Starts the private server, detached from the process that starts it. Private to server.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "server/local_idle.h"

#include <string>

namespace rlock {

// The path of redis-server or valkey-server in PATH. ErrorCode::config: there is neither; the text says what to install.
Result<std::string> find_server_program();

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
Result<Fd> launch_server(const std::string& program, const std::string& directory, const std::string& name,
                         const IdleRule& idle, const Fd& lock);

}  // namespace rlock
