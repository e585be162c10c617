// SPDX-License-Identifier: Apache-2.0
// The name of a private server: an abstract unix socket that the server process holds until it ends. The kernel gives a
// name to one socket only and frees it when the process ends, whatever happens to the server's files. Each network
// namespace has names of its own; containers and chroots with the network of their host share them. Private to server.
#pragma once

#include <optional>
#include <string>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

namespace rlock {

// Device and inode of the root directory, "fd01:2": another one in a container or chroot, whose files are others. Processes
// that share a root file system have the same, also in different mount namespaces.
std::string root_identity();

struct AbstractAddress {
  sockaddr_un bytes{};
  socklen_t length = 0;
};

// `name`: without the leading zero byte. It must fit.
AbstractAddress abstract_address(const std::string& name);

// A descriptor without CLOEXEC that holds the name; -1 and errno on failure, EADDRINUSE if another process holds the
// name. Async-signal-safe.
int hold_name(const AbstractAddress& address);

struct NameHolder {
  pid_t pid = 0;          // 0: not visible, because it belongs to another user or container
  std::string directory;  // its working directory, as a path through /proc; empty: it was removed
};

// nullopt: no process holds the name.
std::optional<NameHolder> find_name_holder(const std::string& name);

}  // namespace rlock
