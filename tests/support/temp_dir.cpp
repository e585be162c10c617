// SPDX-License-Identifier: Apache-2.0
#include "support/temp_dir.h"

#include <cerrno>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include <stdlib.h>

namespace rlock::test {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;
fs::path case_dir;  // of the running test case; empty until it is needed
fs::path home;      // below it, likewise
int made = 0;

}  // namespace

fs::path make_temp_dir(std::string_view purpose)
{
  const std::lock_guard lock(mutex);
  if (case_dir.empty()) {
    std::string pattern = fs::temp_directory_path() / "rlock-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "mkdtemp " + pattern);
    }
    case_dir = pattern;
  }
  const fs::path dir = case_dir / (std::to_string(++made) + "-" + std::string(purpose));
  fs::create_directory(dir);
  fs::permissions(dir, fs::perms::owner_all);
  return dir;
}

fs::path home_dir()
{
  static std::mutex first;  // make_temp_dir has its own
  const std::lock_guard lock(first);
  if (home.empty()) {
    home = make_temp_dir("home");
  }
  return home;
}

void remove_temp_dirs()
{
  if (const fs::path dir = keep_temp_dirs(); !dir.empty()) {
    std::error_code ignored;  // a process that is ending may still write there
    fs::remove_all(dir, ignored);
  }
}

fs::path keep_temp_dirs()
{
  const std::lock_guard lock(mutex);
  home.clear();
  made = 0;
  return std::exchange(case_dir, {});
}

}  // namespace rlock::test
