// SPDX-License-Identifier: Apache-2.0
#include "server/local_directory.h"

#include "base/defaults.h"
#include "base/duration.h"
#include "base/text.h"
#include "net/socket_path.h"
#include "net/wait.h"
#include "server/local_name.h"
#include "server/local_server.h"

#include <cerrno>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

namespace rlock {
namespace {

// Why the directory is not private; empty: it is.
std::string permission_problem(const std::string& directory)
{
  struct stat found {};
  if (::lstat(directory.c_str(), &found) != 0) {
    return os_text(errno);
  }
  if (!S_ISDIR(found.st_mode)) {
    return "it is no directory (remove it)";
  }
  if (found.st_uid != ::geteuid()) {
    return std::string("it belongs to another user") + set_runtime_directory;
  }
  if ((found.st_mode & 077) != 0) {
    return "other users can access it (chmod 700 " + printable(directory) + ")";
  }
  return {};
}

Error unusable(const std::string& directory, const std::string& why)
{
  return {ErrorCode::config, "local: cannot use " + printable(directory) + ": " + why};
}

}  // namespace

Result<LocalSpec> local_spec(const std::string& xdg_runtime_dir, const std::string& name, const std::string& idle,
                             unsigned uid)
{
  constexpr std::size_t longest = 32;
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (name.size() > longest || name.find_first_not_of(allowed) != std::string::npos) {
    return Error{ErrorCode::config, "RLOCK_LOCAL_NAME: '" + printable(name) +
                                        "' is no name (use at most 32 letters, digits, '-', '_' and '.')"};
  }
  const auto idle_time = idle.empty() ? default_local_idle : read_duration(idle);
  if (!std::holds_alternative<Millis>(idle_time)) {
    return Error{ErrorCode::config, "RLOCK_LOCAL_IDLE: '" + printable(idle) + "' is no duration (try 10m; 0: never)"};
  }
  const std::string user = std::to_string(uid);
  const std::string suffix = name.empty() ? "" : "-" + name;
  const std::string of_session = "/run/user/" + user;
  LocalSpec spec{.directories = {of_session + "/rlock" + suffix, "/tmp/rlock-" + user + suffix},
                 .name = "rlock-local-" + user + "-" + root_identity() + suffix,
                 .idle = std::get<Millis>(idle_time)};
  if (!xdg_runtime_dir.empty() && xdg_runtime_dir != of_session) {
    spec.directories = {xdg_runtime_dir + "/rlock" + suffix};
  }
  return spec;
}

std::string local_socket(const std::string& directory) { return directory + "/" + std::string(local_socket_name); }

std::string local_log(const std::string& directory) { return directory + "/redis.log"; }

bool is_private_directory(const std::string& directory) { return permission_problem(directory).empty(); }

Result<bool> prepare_directory(const std::string& directory)
{
  if (!directory.starts_with('/')) {
    return unusable(directory, "it is not absolute (correct XDG_RUNTIME_DIR)");
  }
  if (!fits_socket_address(local_socket(directory))) {
    return unusable(directory, socket_path_too_long() + " (set XDG_RUNTIME_DIR to a shorter one)");
  }
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    if (errno == ENOENT) {
      return false;
    }
    return unusable(directory, os_text(errno));
  }
  const std::string weak = permission_problem(directory);
  if (!weak.empty()) {
    return unusable(directory, weak);
  }
  return true;
}

}  // namespace rlock
