// SPDX-License-Identifier: Apache-2.0
// The name of a private server: an abstract unix socket that the server process holds for its life. The kernel gives a
// name to one socket only, and frees it when that process ends, whatever has happened to the server's files. Each network
// namespace has names of its own. Private to wire.
#pragma once

#include <optional>
#include <string>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

namespace rlock {

struct AbstractAddress {
  sockaddr_un bytes{};
  socklen_t length = 0;
};

// `name`: without the leading zero byte; it must fit.
AbstractAddress abstract_address(const std::string& name);

// A descriptor without CLOEXEC that holds the name; -1 and errno, EADDRINUSE where another process holds it.
// Async-signal-safe.
int hold_name(const AbstractAddress& address);

struct NameHolder {
  pid_t pid = 0;          // 0: a process that this one cannot see into: another user's, or another container's
  std::string directory;  // a path through /proc to the directory in which the process works; empty: it was removed
};

// nullopt: no process holds the name.
std::optional<NameHolder> find_name_holder(const std::string& name);

}  // namespace rlock
