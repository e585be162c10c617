// SPDX-License-Identifier: Apache-2.0
// A Transport to the private server of `local:`. Before each connection the transport looks for that server, and starts the
// server if it does not run. After a crash the server comes back with the locks of its append-only file.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/defaults.h"
#include "base/fd.h"
#include "base/result.h"
#include "redis/transport.h"
#include "redis/url.h"

namespace rlock {

// `local:`: a private redis-server for each user and root file system of this host, shared by all rlock processes of that user.
//
// The server works in a directory of mode 0700 that belongs to the user (rlock refuses another owner and a symbolic link), on a
// unix socket, with an append-only file, so that a crash of the server loses no lock. The server is detached, so that it outlives
// the process that started it. The server holds an abstract socket (LocalSpec::name) until it ends, so that no process starts a
// second server when the directory was removed or when two processes look in different directories. The server ends when it has
// had no connection and no held lock for some time (end_when_idle in local_launch.h), and the next caller starts it with its data.

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
//   config       no program of Redis or Valkey in PATH (the text says what to install), or the
//                directory is not private
Result<LocalServer> local_server(const LocalSpec& spec, const Clock& clock, const CallLimits& limit);

class Local final : public Direct {
 public:
  // `clock` must outlive the transport.
  Local(LocalSpec spec, const Clock& clock);

  // The errors are those of local_server.
  Result<Done> connect(const CallLimits& limit) override;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;

 private:
  const LocalSpec m_spec;
};

// The directory of the private server, which no other user may access. Private to redis.

// The names of files in the directory. They are literals, so that they end with a zero byte.
inline constexpr std::string_view local_socket_name = "redis.sock";
inline constexpr std::string_view start_lock_name = "start.lock";  // locked by the process that starts the server

// The advice when there is no such directory.
inline constexpr const char* set_runtime_directory = " (set XDG_RUNTIME_DIR to a directory of this user)";

std::string local_socket(const std::string& directory);
std::string local_log(const std::string& directory);

// Whether the directory exists, is no symbolic link, belongs to this user and is closed to other users. A socket in
// another directory may belong to another user, who would then decide which jobs of this user may run.
bool is_private_directory(const std::string& directory);

// Makes the directory if it does not exist. False: its parent does not exist. ErrorCode::config: the directory is not private, or
// its path is too long for a unix socket; the text says what to do.
Result<bool> prepare_directory(const std::string& directory);

// The name of a private server: an abstract unix socket that the server process holds until it ends. The kernel gives a name to
// one socket only and frees the name when the process ends, whatever happens to the server's files. Each network namespace has
// names of its own; containers and chroots with the network of their host share the names of the host. Private to redis.

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
