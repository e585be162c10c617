// SPDX-License-Identifier: Apache-2.0
// The lists that name test cases by patterns: each pattern names a case, or a file of cases, that there is. The titles are read from
// the sources, because this program has only some of the cases.
#include "support/paths.h"
#include "support/test.h"
#include "support/text_file.h"

#include <fnmatch.h>

#include <filesystem>
#include <map>

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;

const fs::path tests = fs::path(RLOCK_SOURCE_DIR) / "tests";

// The text of the literals at the first quotation mark: "a" "b".
std::string literal_in(std::string_view code)
{
  std::string text;
  for (std::size_t at = code.find('"'); at < code.size() && code[at] == '"';) {
    for (++at; at < code.size() && code[at] != '"'; ++at) {
      at += code[at] == '\\' ? 1 : 0;
      text += code[at];
    }
    at = code.find_first_not_of(" \n", at + 1);
  }
  return text;
}

bool makes_cases(std::string_view macro)
{
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return macro.find_first_not_of(letters) == std::string_view::npos &&
         (macro.ends_with("_CASE") || macro == "TEST_CASE_FIXTURE" || macro == "TEST_EACH_KIND");
}

struct Sources {
  std::vector<std::string> files;   // "lua/queue"
  std::vector<std::string> titles;  // as ctest shows them, but for those of a kind of server

  Sources()
  {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(tests)) {
      const std::string name = fs::relative(entry.path(), tests).string();
      if (name.ends_with(".h") || name.ends_with(".cpp")) {
        read(name.ends_with("_test.cpp") ? name.substr(0, name.size() - std::string_view("_test.cpp").size()) : name,
             text_of(entry.path()));
      }
    }
    for (const auto& [macro, title] : m_uses) {
      const auto prefixes = m_prefixes.find(macro);
      for (const std::string& prefix : prefixes == m_prefixes.end() ? Words{""} : prefixes->second) {
        titles.push_back(prefix + title);
      }
    }
  }

 private:
  using Words = std::vector<std::string>;

  void read(const std::string& name, const std::string& text)
  {
    files.push_back(name);
    std::string defined;  // the macro whose definition goes on
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = std::min(text.find('\n', at), text.size());
      const std::string_view line = std::string_view(text).substr(at, end - at);
      constexpr std::string_view define = "#define ";
      if (line.starts_with(define)) {
        defined = line.substr(define.size(), line.find('(') - define.size());
        defined = defined.substr(0, defined.rfind("_NAMED"));
      }
      const std::size_t macro_end = std::min(line.find('('), line.size());
      if (!defined.empty()) {
        constexpr std::string_view with_prefix = "  TEST_CASE(\"";
        if (line.starts_with(with_prefix)) {
          m_prefixes[defined].push_back(literal_in(line.substr(0, line.find(" title"))));
        }
        defined = line.ends_with('\\') ? defined : "";
      } else if (makes_cases(line.substr(0, macro_end))) {
        const std::string title = literal_in(std::string_view(text).substr(at));
        m_uses.emplace_back(line.substr(0, macro_end), title);
        if (name.starts_with("lua/")) {
          titles.push_back("on the record engine: " + title);  // ctest_list.cpp
        }
      }
    }
  }

  std::vector<std::pair<std::string, std::string>> m_uses;  // macro and title
  std::map<std::string, Words> m_prefixes;                  // of the titles that a macro makes of one
};

}  // namespace

TEST_CASE("patterns of test cases: each names one")
{
  const Sources sources;
  REQUIRE(sources.titles.size() > 1000);
  for (const std::string list : {"default_suite.txt", "mutations/list.txt", "lua/redis_alone.txt"}) {
    CAPTURE(list);
    const bool is_of_code = list.starts_with("mutations/");  // there "- " begins a line of code
    int patterns = 0;
    for (const std::string& line : lines_of(text_of(tests / list))) {
      const bool is_of_files = line.starts_with("? ");
      if (!is_of_files && !line.starts_with("! ") && (is_of_code || !line.starts_with("- "))) {
        continue;
      }
      std::istringstream words(line.substr(2));  // names of files have no blank
      for (std::string pattern; std::getline(words, pattern, is_of_files ? ' ' : '\n'); ++patterns) {
        const auto fits = [&](const std::string& name) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
        CHECK_MESSAGE(std::ranges::any_of(is_of_files ? sources.files : sources.titles, fits), pattern);
      }
    }
    CHECK(patterns > 0);
  }
}
