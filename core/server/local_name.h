// SPDX-License-Identifier: Apache-2.0
// The name of a private server: an abstract unix socket that the server process holds until it ends. The kernel gives a name to
// one socket only and frees the name when the process ends, whatever happens to the server's files. Each network namespace has
// names of its own; containers and chroots with the network of their host share the names of the host. Private to server.
#pragma once

#include <optional>
#include <string>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

namespace rlock {

// Device and inode of the root directory, "fd01:2". A container or chroot has another identity, because it has other files.
// Processes that share a root file system have the same identity, also in different mount namespaces.
std::string root_identity();

struct AbstractAddress {
  sockaddr_un bytes{};
  socklen_t length = 0;
};

// The address of `name`, which has no leading zero byte and must fit.
AbstractAddress abstract_address(const std::string& name);

// Returns a descriptor without FD_CLOEXEC that holds the name; -1 and errno on failure. EADDRINUSE: another process holds the
// name. Async-signal-safe.
int hold_name(const AbstractAddress& address);

struct NameHolder {
  pid_t pid = 0;          // 0: not visible, because the process belongs to another user or container
  std::string directory;  // the working directory, as a path through /proc; empty: the directory was removed
};

// Finds the process that holds the name; nullopt: no process does.
std::optional<NameHolder> find_name_holder(const std::string& name);

}  // namespace rlock
