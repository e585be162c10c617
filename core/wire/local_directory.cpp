// SPDX-License-Identifier: Apache-2.0
#include "wire/local_directory.h"

#include "base/text.h"
#include "wire/local_server.h"
#include "wire/socket_path.h"
#include "wire/wait.h"

#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace rlock {
namespace {

// Empty if all is well.
std::string weakness(const std::string& directory)
{
  struct stat found {};
  if (::lstat(directory.c_str(), &found) != 0) {
    return os_text(errno);
  }
  if (!S_ISDIR(found.st_mode)) {
    return "it is no directory (remove it)";
  }
  if (found.st_uid != ::geteuid()) {
    return "it belongs to another user (set XDG_RUNTIME_DIR to a directory of yours)";
  }
  if ((found.st_mode & 077) != 0) {
    return "others can get at it (chmod 700 " + printable(directory) + ")";
  }
  return {};
}

Error unusable(const std::string& directory, const std::string& why)
{
  return {Fault::config, "local: cannot use " + printable(directory) + ": " + why};
}

}  // namespace

std::vector<std::string> local_server_directories(const std::string& xdg_runtime_dir, unsigned uid)
{
  const std::string of_session = "/run/user/" + std::to_string(uid);
  if (!xdg_runtime_dir.empty() && xdg_runtime_dir != of_session) {
    return {xdg_runtime_dir + "/rlock"};
  }
  return {of_session + "/rlock", "/tmp/rlock-" + std::to_string(uid)};
}

std::string local_socket(const std::string& directory) { return directory + "/redis.sock"; }

std::string local_log(const std::string& directory) { return directory + "/redis.log"; }

bool is_private_directory(const std::string& directory) { return weakness(directory).empty(); }

Result<bool> prepare_directory(const std::string& directory)
{
  if (!directory.starts_with('/')) {
    return unusable(directory, "it is not absolute (correct XDG_RUNTIME_DIR)");
  }
  if (!fits_socket_address(local_socket(directory))) {
    return unusable(directory,
                    "a unix socket's path can have 107 bytes at most (set XDG_RUNTIME_DIR to a "
                    "shorter one)");
  }
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    if (errno == ENOENT) {
      return false;
    }
    return unusable(directory, os_text(errno));
  }
  const std::string weak = weakness(directory);
  if (!weak.empty()) {
    return unusable(directory, weak);
  }
  return true;
}

}  // namespace rlock
