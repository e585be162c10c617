// SPDX-License-Identifier: Apache-2.0
// The manual pages, the help and the completions agree.
#include "cli/help/help.h"
#include "cli/verbs/completion.h"
#include "cli/verbs/dispatch.h"
#include "process/launch.h"
#include "support/integration.h"
#include "support/paths.h"
#include "support/skip.h"

#include <regex>
#include <set>

using namespace rlock::test;
using namespace rlock::cli;

namespace {

std::vector<std::filesystem::path> pages(const std::string& directory, const std::string& pattern)
{
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (std::regex_match(entry.path().filename().string(), std::regex(pattern))) {
      found.push_back(entry.path());
    }
  }
  return found;
}

std::set<std::string> options_in(const std::string& text)
{
  static const std::regex name("(?:^|[ ,])(--?[a-zA-Z][a-z-]*)(?=[ ,;\n])");
  std::set<std::string> names;
  const std::string from = text.substr(text.find("\nOptions:"));
  const std::string options = from.substr(0, from.find("\nExamples:"));
  static const std::regex line("\n  (-[^\n]*)");  // an entry, not the text beside it
  for (std::sregex_iterator each(options.begin(), options.end(), line), end; each != end; ++each) {
    const std::string entry = (*each)[1].str().substr(0, (*each)[1].str().find("  "));
    const std::string padded = " " + entry + "\n";
    for (std::sregex_iterator one(padded.begin(), padded.end(), name); one != end; ++one) {
      names.insert((*one)[1]);
    }
  }
  return names;
}

// The page as a reader sees it: without overstrikes, with blanks collapsed.
std::string rendered(const std::filesystem::path& page)
{
  Process mandoc({"mandoc", "-Tascii", page.string()});
  REQUIRE(mandoc.wait().code == 0);
  return std::regex_replace(mandoc.out(), std::regex(".\b"), "");
}

void need_mandoc() { skip_if(!find_command("mandoc", "/usr/bin:/bin"), "mandoc is not installed"); }

}  // namespace

TEST_CASE("manual: every verb is on one page, and every page is clean")
{
  std::string all;
  for (const auto& page : pages(RLOCK_SOURCE_DIR "/man", ".*\\.in")) {
    all += text_of(page);
  }
  for (const Verb* verb : all_verbs()) {
    const std::string place = "@verb " + std::string(verb->name) + "@\n";
    const std::size_t first = all.find(place);
    CHECK_MESSAGE(first != std::string::npos, verb->name);
    CHECK_MESSAGE(all.find(place, first + 1) == std::string::npos, verb->name);
  }
  need_mandoc();
  const auto built = pages(RLOCK_MAN_DIR, ".*\\.[157]");
  CHECK(built.size() >= 6);
  for (const auto& page : built) {
    Process lint({"mandoc", "-Tlint", page.string()});
    lint.wait();
    std::istringstream findings(lint.out());
    // Source lines may have any length, pages that are not installed are not found, and the footer names rlock instead
    // of a system.
    static const std::regex harmless(
        "STYLE: (input text line longer than|referenced manual not found|operating system explicitly "
        "specified)|outdated mandoc.db");
    for (std::string finding; std::getline(findings, finding);) {
      CHECK_MESSAGE(std::regex_search(finding, harmless), finding);
    }
    const std::string text = rendered(page);
    CHECK_FALSE(has(text, "BSD"));
    CHECK_FALSE(has(text, "To is "));
  }
}

TEST_CASE("manual: help, pages and completions know the same options")
{
  need_mandoc();
  std::string manual;
  for (const auto& page : pages(RLOCK_MAN_DIR, ".*\\.1")) {
    manual += rendered(page);
  }
  for (const Verb* verb : all_verbs()) {
    CAPTURE(verb->name);
    const std::set<std::string> helped = options_in(help_of(*verb));
    CHECK(helped.contains("--help"));
    const std::string heading = "\n   rlock " + std::string(verb->name) + "\n";
    const std::size_t begin = manual.find(heading);
    REQUIRE(begin != std::string::npos);
    const std::string section = manual.substr(begin, manual.find("\n   rlock ", begin + 1) - begin);
    for (const std::string& option : helped) {
      CHECK_MESSAGE(std::regex_search(section, std::regex("[ ,]" + option + "[ ,;.\n]")), option);
    }
    const std::vector<std::string> typed{std::string(verb->name), "-"};
    std::set<std::string> completed;
    for (const Candidate& candidate : complete(typed, Environment({})).candidates) {
      completed.insert(candidate.word);
    }
    CHECK(completed == helped);
  }
}

TEST_CASE("manual: every variable and every kind of server that the code knows is on a page")
{
  std::string manual;
  for (const auto& page : pages(RLOCK_MAN_DIR, ".*\\.[157]")) {
    manual += text_of(page);
  }
  std::string code;
  for (const char* floor : {"/cli", "/core"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(RLOCK_SOURCE_DIR + std::string(floor))) {
      code += entry.path().extension() == ".cpp" || entry.path().extension() == ".h" ? text_of(entry.path()) : "";
    }
  }
  const std::regex variable("\"(RLOCK_[A-Z_]+|REDIS_URL|REDISCLI_AUTH|PGPASSWORD|MYSQL_PWD)\"");
  const std::regex scheme("\"([a-z+]+://|local:)");
  std::size_t known = 0;
  for (const std::regex& word : {variable, scheme}) {
    for (std::sregex_iterator each(code.begin(), code.end(), word), end; each != end; ++each, ++known) {
      CHECK_MESSAGE(has(manual, (*each)[1].str()), (*each)[1].str());
    }
  }
  CHECK(known > 20);
}
