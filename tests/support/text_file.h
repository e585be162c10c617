// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rlock::test {

// The text of a file; empty: the file cannot be read. That includes a file in /proc whose process ends meanwhile, for which an
// istreambuf_iterator would throw.
inline std::string text_of(const std::filesystem::path& file)
{
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace rlock::test
