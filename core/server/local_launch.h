// SPDX-License-Identifier: Apache-2.0
// Brings the private server into the world, detached from whoever asked for it. Private to wire.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <string>

namespace rlock {

// redis-server or valkey-server, from the PATH; ErrorCode::config, with what to install, if neither.
Result<std::string> find_server_program();

bool somebody_listens(const std::string& socket_path);

enum class LaunchNews : char { listens = 'L', name_taken = 'T' };

// A descriptor that gives one LaunchNews, or the end when the server ended before that.
//
// `lock` is held on by the process that watches over the start, until one or the other: the caller may be interrupted or
// killed meanwhile, and a second server beside a first that does not listen yet would take its socket and its file away.
// The server does not inherit the lock. It holds the abstract socket `name` for its life.
//
// May be called by a process with several threads and by a child subreaper: the server never becomes its child.
Result<Fd> launch_server(const std::string& program, const std::string& directory, const std::string& name,
                         const Fd& lock);

}  // namespace rlock
