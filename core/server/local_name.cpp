// SPDX-License-Identifier: Apache-2.0
#include "server/local_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace rlock {
namespace {

namespace fs = std::filesystem;

// The inode number of the socket with this name, from /proc/net/unix; empty: there is none.
std::string inode_of(const std::string& name)
{
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string address, references, protocol, flags, type, state, inode, path;
    if (fields >> address >> references >> protocol >> flags >> type >> state >> inode >> path && path == "@" + name) {
      return inode;
    }
  }
  return {};
}

bool has_open(const fs::path& process, const std::string& inode)
{
  const std::string wanted = "socket:[" + inode + "]";
  std::error_code gone;
  for (fs::directory_iterator each(process / "fd", gone), end; !gone && each != end; each.increment(gone)) {
    std::error_code closed;
    if (fs::read_symlink(each->path(), closed) == wanted) {
      return true;
    }
  }
  return false;
}

bool is_process_of_this_user(const fs::path& path)
{
  const std::string number = path.filename();
  struct stat about {};
  return std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) &&
         ::stat(path.c_str(), &about) == 0 && about.st_uid == ::geteuid();
}

// 0: no visible process of this user.
pid_t process_with(const std::string& inode)
{
  std::error_code failed;
  for (fs::directory_iterator each("/proc", failed), end; !failed && each != end; each.increment(failed)) {
    if (is_process_of_this_user(each->path()) && has_open(each->path(), inode)) {
      return std::stoi(each->path().filename());
    }
  }
  return 0;
}

// Through /proc, so that the path is right in another mount namespace too (a service with a private /tmp).
std::string working_directory_of(pid_t pid)
{
  const std::string link = "/proc/" + std::to_string(pid) + "/cwd";
  std::error_code gone;
  const std::string target = fs::read_symlink(link, gone);
  return gone || target.ends_with(" (deleted)") ? "" : link + "/.";
}

}  // namespace

std::string root_identity()
{
  struct stat root {};
  ::stat("/", &root);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%llx:%llu", static_cast<unsigned long long>(root.st_dev),
                static_cast<unsigned long long>(root.st_ino));
  return text.data();
}

AbstractAddress abstract_address(const std::string& name)
{
  AbstractAddress address;
  address.bytes.sun_family = AF_UNIX;
  std::memcpy(address.bytes.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

int hold_name(const AbstractAddress& address)
{
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address.bytes), address.length) != 0) {
    ::close(fd);
    return -1;  // close does not change errno when it succeeds
  }
  return fd;
}

std::optional<NameHolder> find_name_holder(const std::string& name)
{
  const std::string inode = inode_of(name);
  if (inode.empty()) {
    return std::nullopt;
  }
  NameHolder holder{.pid = process_with(inode), .directory = {}};
  if (holder.pid != 0) {
    holder.directory = working_directory_of(holder.pid);
  }
  return holder;
}

}  // namespace rlock
