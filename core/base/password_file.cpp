// SPDX-License-Identifier: Apache-2.0
#include "base/password_file.h"

#include "base/os_error.h"
#include "base/text.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace rlock {
namespace {

Error unreadable(const std::string& path, const std::string& why, ErrorCode code = ErrorCode::config)
{
  return {code, "--password-file: cannot read a password from " + printable(path) + ": " + why};
}

Error unreadable(const std::string& path, int error)
{
  return unreadable(path, std::generic_category().message(error),
                    is_shortage(error) ? ErrorCode::os : ErrorCode::config);
}

constexpr std::size_t longest_password = 65'536;  // bytes; a device may have no end

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

Result<std::string> read_password_file(const std::string& path)
{
  const File file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) {
    return unreadable(path, errno);
  }
  std::string line;
  for (int c = std::fgetc(file.get()); c != EOF && c != '\n' && line.size() <= longest_password;
       c = std::fgetc(file.get())) {
    line += static_cast<char>(c);
  }
  if (std::ferror(file.get()) != 0) {
    return unreadable(path, errno);
  }
  if (line.size() > longest_password) {
    return unreadable(path, "its first line is too long");
  }
  if (line.ends_with('\r')) {
    line.pop_back();
  }
  if (line.empty()) {
    return unreadable(path, "its first line is empty");
  }
  return line;
}

}  // namespace rlock
