// SPDX-License-Identifier: Apache-2.0
// README.md and core/ARCHITECTURE.md agree with the program and with the tree.
#include "base/defaults.h"
#include "base/exit_code.h"
#include "cli/help/help.h"
#include "cli/help/manual.h"
#include "cli/verbs/dispatch.h"
#include "lock/event_log.h"
#include "lock/schema.h"
#include "support/integration.h"
#include "support/paths.h"

#include <cctype>
#include <iterator>
#include <regex>
#include <set>

namespace fs = std::filesystem;
using namespace rlock::test;

namespace {

const fs::path source = RLOCK_SOURCE_DIR;

// The first capture of each match.
std::vector<std::string> all_matches(const std::string& text, const char* pattern)
{
  const std::regex searched(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator each(text.begin(), text.end(), searched), end; each != end; ++each) {
    found.push_back((*each)[1]);
  }
  return found;
}

// The numbers in the lines that match.
std::set<std::string> codes_in(const std::string& text, const char* row_pattern)
{
  std::set<std::string> codes;
  for (const std::string& row : all_matches(text, row_pattern)) {
    for (const std::string& code : all_matches(row, "([0-9]+)")) {
      codes.insert(code);
    }
  }
  return codes;
}

std::vector<fs::path> source_files(const fs::path& folder)
{
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() != ".md") {
      files.push_back(entry.path());
    }
  }
  return files;
}

// As wc -w counts them.
int count_words(const std::string& text)
{
  std::istringstream words(text);
  return static_cast<int>(std::distance(std::istream_iterator<std::string>(words), {}));
}

// The identifiers and keywords of a text.
std::set<std::string> words_of(const std::string& text)
{
  std::set<std::string> words;
  std::string word;
  for (const char character : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_') {
      word += character;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
  return words;
}

}  // namespace

TEST_CASE("readme: its first commands of a shell are those of a newcomer with a fresh clone")
{
  const auto blocks = all_matches(text_of(source / "README.md"), "\n```sh\n([^`]*)```");
  REQUIRE(blocks.size() >= 2);
  CHECK(blocks[0] == "sh packaging/quickstart.sh\n");
  CHECK(blocks[1] == "sh tests/run.sh\n");
}

TEST_CASE("readme: two minutes are enough to read it")
{
  const std::string readme = text_of(source / "README.md");
  CHECK(count_words(readme) <= 1000);
  int cells = 0;
  for (const std::string& row : all_matches(readme, "\n\\|([^\n]*)\\|(?=\n)")) {
    for (const std::string& cell : all_matches(row + "|", "([^|]*)\\|")) {
      ++cells;
      CHECK_MESSAGE(count_words(cell) <= 12, cell);
    }
  }
  CHECK(cells >= 80);
  const auto bullets = all_matches(readme, "\n\\* ([^\n]*)");
  CHECK(bullets.size() >= 8);
  for (const std::string& bullet : bullets) {
    CHECK_MESSAGE(count_words(bullet) <= 25, bullet);
  }
  for (const std::string& block : all_matches(readme, "\n```[a-z]*\n([^`]*)```")) {
    for (const std::string& comment : all_matches(block, "(?:^|\\s)#([^\n]*)")) {
      CHECK_MESSAGE(count_words(comment) <= 15, comment);
    }
  }
}

TEST_CASE("readme: its sections are those of a newcomer's questions, in their order")
{
  std::string headings;
  for (const std::string& heading : all_matches(text_of(source / "README.md"), "\n## ([^\n]*)")) {
    headings += heading + "\n";
  }
  CHECK(headings ==
        "Try it\nInstall\nWhich verb?\nFive uses\nServers\nOperate\nWhat it promises, and what not\nBeside others\n"
        "More\n");
}

TEST_CASE("documents: the first sentence of README and the description of the package name every store")
{
  const std::string readme = text_of(source / "README.md");
  const std::string sentence = readme.substr(0, readme.find(". "));
  for (const char* store : {"Redis", "PostgreSQL", "MySQL", "MariaDB", "MongoDB", "etcd", "ZooKeeper", "S3"}) {
    CHECK(has(sentence, store));
    CHECK(has(text_of(source / "CMakeLists.txt").substr(0, 500), store));
  }
}

TEST_CASE("documents: the exit codes stand in rlock(1), all of them, and nowhere else as a table")
{
  const std::string table = cli::mdoc_of_exits();
  for (const ExitCodeRow& row : exit_codes) {
    const std::string item = "\n.It \\&" + std::to_string(static_cast<int>(row.code)) + "\n" + std::string(row.meaning);
    CHECK_MESSAGE(has(table, item), item);
  }
  std::size_t tables = 0;
  for (const fs::path& page : source_files(source / "man")) {
    tables += count(text_of(page), "@topic exits@");
  }
  CHECK(tables == 1);
  CHECK(has(text_of(source / "man/rlock.1.in"), "@topic exits@"));
}

TEST_CASE("documents: README says the exit codes that a script compares, and where all of them are")
{
  const auto lines = all_matches(text_of(source / "README.md"), "\n(Exit codes: [^\n]*)");
  REQUIRE(lines.size() == 1);
  CHECK(has(lines[0], "the job's own"));
  CHECK(has(lines[0], "`man rlock`"));
  const std::set<std::string> named = codes_in("\n" + lines[0], "\n([^\n]*)");
  std::set<std::string> known;
  for (const ExitCode code : {ExitCode::busy, ExitCode::lost, ExitCode::time_over}) {
    known.insert(std::to_string(static_cast<int>(code)));
  }
  CHECK(named == known);
}

TEST_CASE("documents: a run that ends with 69 or 77 may leave its lock, and rlock(1) says so")
{
  CHECK(has(text_of(source / "man/rlock.1.in"), "the lock may remain until its ttl is over"));
  CHECK(has(text_of(source / "man/rlock-run.1.in"), ".Sx EXIT STATUS\nof\n.Xr rlock 1"));
}

TEST_CASE("documents: a manual page begins with examples, and rlock(7) with its limits")
{
  int pages = 0;
  for (const fs::path& page : source_files(source / "man")) {
    const std::string text = text_of(page);
    const std::size_t begin = text.find("\n.Sh DESCRIPTION\n");
    if (page.extension() != ".in") {
      continue;
    }
    ++pages;
    CAPTURE(page.string());
    REQUIRE(begin != std::string::npos);
    const std::string beginning = text.substr(begin, text.find("\n.Pp\n", begin) - begin);
    if (page.filename() == "rlock.7.in") {
      CHECK(has(beginning, "\ndoes not protect from\n"));
    } else {
      CHECK(std::regex_search(beginning, std::regex("\n(\\.Bd -literal|\\.Dl |@examples )")));
    }
  }
  CHECK(pages >= 20);
}

TEST_CASE("documents: the recipes by task name each recipe")
{
  const std::string page = text_of(source / "man/rlock-recipes.7.in");
  for (const fs::path& recipe : source_files(source / "packaging" / "recipes")) {
    CHECK_MESSAGE(has(page, recipe.filename().string()), recipe);
  }
}

TEST_CASE("packaging: nothing has a placeholder for an account or an address")
{
  for (const char* folder : {"packaging", ".github"}) {
    for (const fs::path& file : source_files(source / folder)) {
      for (const char* placeholder : {"OWNER/", "example.org"}) {
        CHECK_MESSAGE(!has(text_of(file), placeholder), file);
      }
    }
  }
}

TEST_CASE("packaging: each package names the version of the project")
{
  const std::string version(cli::version());
  CHECK(has(text_of(source / "CMakeLists.txt"), "project(rlock VERSION " + version + " "));
  CHECK(has(text_of(source / "flake.nix"), "version = \"" + version + "\";"));
  CHECK(text_of(source / "packaging/debian/changelog").starts_with("rlock (" + version + "-"));
}

TEST_CASE("documents: no page tells of Redis alone what is so with every kind of server")
{
  const std::string page = text_of(source / "man/rlock.1.in");
  for (const char* text : {"kept on Redis", "a Redis server, runs"}) {
    CHECK_FALSE(has(page, text));
  }
  CHECK(has(text_of(source / "man/rlock-acl.1.in"), "must exist"));
  CHECK(has(text_of(source / "man/rlock-mongodb.7.in"), "authSource"));
  CHECK_FALSE(has(text_of(source / "man/rlock-mysql.7.in"), "= Ns Ar FILE , Ql"));
}

TEST_CASE("documents: the manual writes no value of an option as an option")
{
  for (const fs::directory_entry& page : fs::directory_iterator(source / "man")) {
    CAPTURE(page.path().filename().string());
    const auto values =
        all_matches(text_of(page.path()), "\\.Fl -[a-z-]+ ([a-z]+)");  // Fl writes a dash before each word
    CHECK(values == std::vector<std::string>{});
  }
}

TEST_CASE("documents: the manual names the number of events that a lock keeps")
{
  for (const char* page : {"man/rlock-events.1.in", "man/rlock-status.1.in"}) {
    CAPTURE(page);
    CHECK(text_of(source / page).find("the last " + std::to_string(event_count) + " events") != std::string::npos);
  }
}

TEST_CASE("documents: rlock(1) names the events of the lines on standard error, and no others")
{
  std::set<std::string> written;
  for (const char* folder : {"core", "cli"}) {
    for (const fs::path& file : source_files(source / folder)) {
      for (const char* pattern : {"\\.event = \"([a-z_]+)\"", "\\bwith_code\\([^\"]*\"([a-z_]+)\""}) {
        for (const std::string& name : all_matches(text_of(file), pattern)) {
          written.insert(name);
        }
      }
    }
  }
  for (const Outcome loss : {Outcome::lost, Outcome::forced}) {
    written.emplace(name_of(loss));
  }
  const std::string page = text_of(source / "man/rlock.1.in");
  const std::size_t begin = page.find("\nEvents are\n");
  const std::size_t end = page.find("The message is for people", begin);
  REQUIRE(end != std::string::npos);
  std::set<std::string> named;
  for (const std::string& line : all_matches(page.substr(begin, end - begin), "\n\\.Cm ([a-z_ ,]+)")) {
    named.merge(words_of(line));
  }
  for (const std::string& name : written) {
    CHECK_MESSAGE(named.contains(name), name);
  }
  for (const std::string& name : named) {
    CHECK_MESSAGE(written.contains(name), name);
  }
}

TEST_CASE("documents: rlock-events(1) and the JSON name each event of a lock")
{
  const std::string page = text_of(source / "man/rlock-events.1.in");
  const std::string json = cli::help_of_json();
  using What = LockEvent::What;
  for (int what = 0; what <= static_cast<int>(What::thawed); ++what) {
    const std::string name(name_of(static_cast<What>(what)));
    CHECK_MESSAGE(std::regex_search(page, std::regex("\n\\.It Cm ([a-z_]+ , )*" + name + "[ \n]")), name);
    CHECK_MESSAGE(has(json, name), name);
  }
}

TEST_CASE("readme: each command names a verb and options that exist")
{
  int calls = 0;
  for (const std::string& call : all_matches(text_of(source / "README.md"), "\\b(r(?:lock |flock )[a-z-][^\n`|]*)")) {
    const bool is_flock = call.starts_with("rflock");
    const std::string verb = is_flock ? "flock" : all_matches(call, "^rlock ([a-z-]+)").at(0);
    const auto found = cli::find_verb(verb);
    if (!found) {
      continue;  // a sentence
    }
    ++calls;
    const std::string help = cli::help_of(**found);
    const std::string options = call.substr(0, call.find(" -- "));
    for (const std::string& option : all_matches(options, " (--?[a-zA-Z][a-z-]*)(?=[ );:]|$)")) {
      CHECK_MESSAGE(std::regex_search(help, std::regex("[ ,]" + option + "[ ,;\n]")), option << " in " << call);
    }
  }
  CHECK(calls >= 10);
}

TEST_CASE("architecture: each path that it names exists")
{
  const std::string page = text_of(source / "core" / "ARCHITECTURE.md");
  int paths = 0;
  for (const std::string& named : all_matches(page, "`((?:\\.\\./)?[a-z_]+/[a-z_/]+(?:\\.[a-z]+)?)`")) {
    ++paths;
    CHECK_MESSAGE((fs::exists(source / "core" / named) || fs::exists(source / named)), named);
  }
  CHECK(paths >= 20);
}

TEST_CASE("architecture: each name of the code that it quotes occurs in the code")
{
  std::set<std::string> known;
  for (const char* folder : {"core", "cli", "lua"}) {
    for (const fs::path& file : source_files(source / folder)) {
      known.merge(words_of(text_of(file)));
    }
  }
  int names = 0;
  for (const std::string& quoted :
       all_matches(text_of(source / "core" / "ARCHITECTURE.md"), "`([A-Za-z_][A-Za-z0-9_:]*)`")) {
    if (!std::regex_search(quoted, std::regex("[A-Z_]"))) {
      continue;  // a verb, a module
    }
    for (const std::string& word : words_of(quoted)) {
      ++names;
      CHECK_MESSAGE(known.contains(word), word << " in " << quoted);
    }
  }
  CHECK(names >= 60);
}

namespace {

// The end of each path of the tree after a slash: "a/b/c.h" has "b/c.h" and "c.h".
std::set<std::string> names_of_files()
{
  std::set<std::string> names;
  for (const char* folder : {"cli", "completions", "core", "lua", "man", "packaging", "tests"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source / folder)) {
      fs::path end = entry.path().lexically_relative(source);
      while (!end.empty()) {
        names.insert(end.string());
        end = end.lexically_relative(*end.begin());
        end = end == "." ? fs::path() : end;
      }
    }
  }
  return names;
}

// What begins a comment in such a file; nullptr: it has none that names files.
const char* comment_mark(const fs::path& file)
{
  const std::string ending = file.extension().string();
  if (ending == ".cpp" || ending == ".h") {
    return "//";
  }
  if (ending == ".lua") {
    return "--";
  }
  return ending == ".cmake" || ending == ".py" || file.filename() == "CMakeLists.txt" ? "#" : nullptr;
}

std::string comments_in(const fs::path& file)
{
  const char* const mark = comment_mark(file);
  std::string comments;
  for (const std::string& line : lines_of(mark != nullptr ? text_of(file) : "")) {
    const std::size_t begin = line.find(mark);
    comments += begin == std::string::npos ? "" : line.substr(begin) + "\n";
  }
  return comments;
}

}  // namespace

TEST_CASE("documents: a comment names only files that are in the tree")
{
  const std::set<std::string> known = names_of_files();
  const std::set<std::string> made_by_others{"linux/pidfd.h"};
  int named = 0;
  for (const char* folder : {"core", "cli", "lua", "tests"}) {
    for (const fs::path& file : source_files(source / folder)) {
      // A name with a capital letter, or of one letter, stands for others.
      for (const std::string& name : all_matches(
               comments_in(file), "(?:^|[ (`])(?:\\.\\./)*([a-z][a-z0-9_/]+\\.(?:cpp|h|lua|md))(?=[^a-z*-]|$)")) {
        ++named;
        CHECK_MESSAGE((known.contains(name) || made_by_others.contains(name) || has(name, "scripts.cpp")),
                      file.string() << " names " << name);
      }
    }
  }
  CHECK(named >= 100);
}

TEST_CASE("documents: the page of the lines that no test reaches names only files that are in the tree")
{
  const std::set<std::string> known = names_of_files();
  const std::string page = text_of(source / "tests" / "coverage" / "not_reached.md");
  int named = 0;
  for (const std::string& row : all_matches(page, "\n\\| \\*\\*[^|]*\\| ([^|\n]*)\\|")) {
    std::string folder;
    for (const std::string& name :
         all_matches(std::regex_replace(row, std::regex(" \\([^)]*\\)"), ""), "`([a-z_/]+)`")) {
      folder = has(name, "/") ? name.substr(0, name.rfind('/') + 1) : folder;
      const std::string path = has(name, "/") ? name : folder + name;
      ++named;
      CHECK_MESSAGE((known.contains(path) || known.contains(path + ".cpp") || known.contains(path + ".h")), path);
    }
  }
  CHECK(named >= 40);
}
