// SPDX-License-Identifier: Apache-2.0
// What most tests include. `using namespace rlock::test` also opens rlock and the literals of std::chrono.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::test {

using namespace rlock;
using namespace std::chrono_literals;

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
inline bool has(const std::vector<std::string>& words, const std::string& word)
{
  return std::find(words.begin(), words.end(), word) != words.end();
}
// Each part is in the text.
inline void expect_has(const std::string& text, const std::vector<std::string>& parts)
{
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK_MESSAGE(has(text, part), text);
  }
}
// How often `part` occurs.
inline std::size_t count(std::string_view text, std::string_view part)
{
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace rlock::test

// A test case with a fixture of its own: `type name;`. Headers of fixtures and files of cases give it a short name, as SERVER_CASE.
#define CASE_WITH(type, name, title) CASE_WITH_BODY(DOCTEST_ANONYMOUS(case_with_), type, name, title)
#define CASE_WITH_BODY(body, type, name, title) \
  static void body(type& name);                 \
  TEST_CASE(title)                              \
  {                                             \
    type name;                                  \
    body(name);                                 \
  }                                             \
  static void body([[maybe_unused]] type& name)

// A test case that runs once for each value of a list.
#define CASE_FOR_EACH(type, name, list, title) \
  CASE_FOR_EACH_BODY(DOCTEST_ANONYMOUS(case_for_each_), type, name, list, title)
#define CASE_FOR_EACH_BODY(body, type, name, list, title) \
  static void body(const type& name);                     \
  TEST_CASE(title)                                        \
  {                                                       \
    for (const type& name : list) {                       \
      CAPTURE(shown(name));                               \
      body(name);                                         \
    }                                                     \
  }                                                       \
  static void body(const type& name)
