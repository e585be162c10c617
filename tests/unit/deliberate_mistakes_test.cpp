// SPDX-License-Identifier: Apache-2.0
// The controls of the judge and the mutations are texts that name lines of rlock. They run too long for every change, so a change
// of such a line is noticed here.
#include "support/integration.h"
#include "support/paths.h"

#include <sstream>

using namespace rlock::test;

namespace {

const std::filesystem::path top = RLOCK_SOURCE_DIR;

struct ReplacedLines {
  std::string file;
  std::string text;  // the lines that are replaced
  int number;        // of the line in the list that begins it, for a failure
};

// The hunks of a patch: what each expects to find.
std::vector<ReplacedLines> hunks_of(const std::filesystem::path& patch)
{
  std::vector<ReplacedLines> hunks;
  std::string file;
  int number = 0;
  for (const std::string& line : test::lines_of(test::text_of(patch))) {
    ++number;
    if (line.starts_with("--- a/")) {
      file = line.substr(6);
    } else if (line.starts_with("@@ ")) {
      hunks.push_back({file, "", number});
    } else if (line.starts_with("diff ")) {
      file.clear();
    } else if (!file.empty() && !hunks.empty() && (line.starts_with(" ") || line.starts_with("-"))) {
      hunks.back().text += line.substr(1) + "\n";
    }
  }
  return hunks;
}

// The mutations of mutations/list.txt: their "-" lines.
std::vector<ReplacedLines> mutations()
{
  std::vector<ReplacedLines> all;
  int number = 0;
  for (const std::string& line : test::lines_of(test::text_of(top / "tests/mutations/list.txt"))) {
    ++number;
    if (line.starts_with("= ")) {
      all.push_back({"", "", number});
    } else if (line.starts_with("@ ")) {
      all.back().file = line.substr(2);
    } else if (line.starts_with("- ")) {
      all.back().text += (all.back().text.empty() ? "" : "\n") + line.substr(2);
    }
  }
  return all;
}

void expect_once(const ReplacedLines& replaced)
{
  CAPTURE(replaced.number);
  CAPTURE(replaced.file);
  CAPTURE(replaced.text);
  REQUIRE_FALSE(replaced.text.empty());
  CHECK(count(test::text_of(top / replaced.file), replaced.text) == 1);
}

}  // namespace

TEST_CASE("deliberate mistakes: each control of the judge fits the code")
{
  int patches = 0;
  for (const auto& entry : std::filesystem::directory_iterator(top / "tests/judge/controls")) {
    CAPTURE(entry.path().filename().string());
    const std::vector<ReplacedLines> hunks = hunks_of(entry.path());
    CHECK_FALSE(hunks.empty());
    for (const ReplacedLines& hunk : hunks) {
      expect_once(hunk);
    }
    ++patches;
  }
  CHECK(patches >= 7);
}

TEST_CASE("deliberate mistakes: each mutation fits the code")
{
  const std::vector<ReplacedLines> all = mutations();
  CHECK(all.size() >= 40);
  for (const ReplacedLines& mutation : all) {
    expect_once(mutation);
  }
}
