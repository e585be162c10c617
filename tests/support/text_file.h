// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rlock::test {

// All of it; "" when it cannot be read. A file in /proc whose process ends meanwhile cannot be read either; an
// istreambuf_iterator would throw.
inline std::string text_of(const std::filesystem::path& file)
{
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace rlock::test
