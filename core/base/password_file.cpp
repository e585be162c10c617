// SPDX-License-Identifier: Apache-2.0
#include "base/password_file.h"

#include "base/result.h"
#include "base/text.h"

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace rlock {
namespace {

constexpr std::size_t longest_password = 65'536;  // bytes; a device may have no end

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

Result<std::string> read_password_file(const std::string& path, std::string_view named_by)
{
  const auto unreadable = [&](const std::string& why, ErrorCode code = ErrorCode::config) {
    return Error{code, std::string(named_by) + ": cannot read a password from " + printable(path) + ": " + why};
  };
  const auto unreadable_by = [&](int error) {
    return unreadable(std::generic_category().message(error), is_shortage(error) ? ErrorCode::os : ErrorCode::config);
  };
  const File file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) {
    return unreadable_by(errno);
  }
  std::string line;
  for (int c = std::fgetc(file.get()); c != EOF && c != '\n' && line.size() <= longest_password;
       c = std::fgetc(file.get())) {
    line += static_cast<char>(c);
  }
  if (std::ferror(file.get()) != 0) {
    return unreadable_by(errno);
  }
  if (line.size() > longest_password) {
    return unreadable("its first line is too long");
  }
  if (line.ends_with('\r')) {
    line.pop_back();
  }
  if (line.empty()) {
    return unreadable("its first line is empty");
  }
  return line;
}

std::optional<std::string> changed_password(const std::string& path, const std::string& known)
{
  auto password = path.empty() ? Result<std::string>(known) : read_password_file(path);
  return password && *password != known ? std::optional(*std::move(password)) : std::nullopt;
}

}  // namespace rlock
