// SPDX-License-Identifier: Apache-2.0
#include "cli/options/config_file.h"

#include "base/fd.h"
#include "base/os_error.h"
#include "base/text.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rlock::cli {
namespace {

constexpr std::size_t largest_file = 1 << 20;

Error wrong(const std::string& where, const std::string& what) { return {ErrorCode::config, where + ": " + what}; }

Error unreadable(const std::string& path, int error)
{
  return {is_shortage(error) ? ErrorCode::os : ErrorCode::config, path + ": " + std::generic_category().message(error)};
}

// nullopt: there is no such file.
Result<std::optional<ConfigFile>> read_file(const std::string& path)
{
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) {
    return std::optional<ConfigFile>{};
  }
  ConfigFile file{.path = printable(path), .text = {}};
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return unreadable(file.path, errno);
  }
  file.is_public = (info.st_mode & S_IROTH) != 0;
  std::array<char, 4096> part{};
  for (ssize_t got = 1; got > 0;) {
    got = ::read(fd.get(), part.data(), part.size());
    if (got < 0) {
      return unreadable(file.path, errno);
    }
    file.text.append(part.data(), static_cast<std::size_t>(got));
    if (file.text.size() > largest_file) {
      return wrong(file.path, "too large for a config file");
    }
  }
  return std::optional(std::move(file));
}

std::string user_path(const Environment& environment)
{
  const std::string_view config = environment.value("XDG_CONFIG_HOME");
  if (config.starts_with('/')) {
    return std::string(config) + "/rlock.toml";
  }
  const std::string_view home = environment.value("HOME");
  return home.empty() ? "" : std::string(home) + "/.config/rlock.toml";
}

}  // namespace

Result<std::optional<ConfigFile>> find_config(const Environment& environment, const std::string& system_wide)
{
  const std::string named(environment.value("RLOCK_CONFIG"));
  if (!named.empty()) {
    auto file = read_file(named);
    return file && !*file ? wrong("RLOCK_CONFIG", "there is no file " + printable(named)) : std::move(file);
  }
  // A file that this user may not read is skipped, because sudo and cron may leave HOME to another user's directory.
  const std::string own = user_path(environment);
  if (!own.empty() && ::access(own.c_str(), R_OK) == 0) {
    return read_file(own);
  }
  return read_file(system_wide);
}

}  // namespace rlock::cli
