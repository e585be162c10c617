// SPDX-License-Identifier: Apache-2.0
#include "process/command.h"

#include "base/text.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rlock {
namespace {

enum class Found { executable, directory, forbidden, hidden, absent };  // hidden: no permission to look

Found look_at(const std::string& path)
{
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return errno == EACCES ? Found::hidden : Found::absent;
  }
  if (S_ISDIR(info.st_mode)) {
    return Found::directory;
  }
  const bool allowed = ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
  return allowed ? Found::executable : Found::forbidden;
}

Error not_found(const std::string& name, const char* why)
{
  const bool is_a_line = name.find(' ') != std::string::npos;
  return {ErrorCode::not_found, "cannot execute " + printable(name) + ": " + why +
                                    (is_a_line ? " (give its words apart, or a shell: sh -c '...')" : "")};
}

Error not_executable(const std::string& path, Found found)
{
  const char* why = found == Found::directory ? "it is a directory" : "permission denied (is it marked executable?)";
  return {ErrorCode::not_executable, "cannot execute " + printable(path) + ": " + why};
}

Result<std::string> find_at(const std::string& path)
{
  const Found found = look_at(path);
  if (found == Found::executable) {
    return path;
  }
  if (found == Found::absent) {
    return not_found(path, "no such file");
  }
  return not_executable(path, found);
}

// An empty element of PATH means the current directory.
std::string join(std::string_view directory, const std::string& name)
{
  return (directory.empty() ? "." : std::string(directory)) + "/" + name;
}

std::string default_path()
{
  std::string path(::confstr(_CS_PATH, nullptr, 0), '\0');
  ::confstr(_CS_PATH, path.data(), path.size());
  path.resize(path.empty() ? 0 : path.size() - 1);  // without the final NUL
  return path;
}

}  // namespace

Result<std::string> find_command(const std::string& name, std::optional<std::string_view> path_variable)
{
  if (name.empty()) {
    return not_found("''", "an empty name is no command");
  }
  if (name.find('/') != std::string::npos) {
    return find_at(name);
  }

  const std::string path = path_variable ? std::string(*path_variable) : default_path();
  // Like execvp(3), skips a file that may not be executed, and reports that file if no other is found. A directory that may not
  // be searched is not reported, because it is in PATH for every name.
  Error failure = not_found(name, "not found in PATH");
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t to = std::min(path.find(':', from), path.size());
    const std::string candidate = join(path.substr(from, to - from), name);
    const Found found = look_at(candidate);
    if (found == Found::executable) {
      return candidate;
    }
    if (found == Found::forbidden || found == Found::directory) {
      failure = not_executable(candidate, found);
    }
    from = to + 1;
  }
  return failure;
}

}  // namespace rlock
