// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rlock::test {

// The text of a file; empty: the file cannot be read. That includes a file in /proc whose process ends meanwhile, for which an
// istreambuf_iterator would throw.
inline std::string text_of(const std::filesystem::path& file)
{
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const std::string& text)
{
  std::vector<std::string> lines;
  std::istringstream rest(text);
  for (std::string line; std::getline(rest, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace rlock::test
