// SPDX-License-Identifier: Apache-2.0
// Brings the private server into the world, detached from whoever asked for it. Private to wire.
#pragma once

#include "base/fd.h"
#include "base/result.h"

#include <string>

namespace rlock {

// redis-server or valkey-server, from the PATH; Fault::config, with what to install, if neither.
Result<std::string> find_server_program();

bool somebody_listens(const std::string& socket_path);

// A descriptor that gives one byte when the server listens, and the end when it ended before that.
//
// `lock` is held on by the process that watches over the start, until one or the other: whoever
// asked may be interrupted or killed meanwhile, and a second server beside a first that does not
// listen yet would take its socket and its file away. The server itself does not inherit it.
Result<Fd> launch_server(const std::string& program, const std::string& directory, const Fd& lock);

}  // namespace rlock
