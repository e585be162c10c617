// SPDX-License-Identifier: Apache-2.0
#include "cli/options/config.h"

#include <doctest/doctest.h>

using namespace rlock;
using namespace rlock::cli;

namespace {

// "wait=10s; run.server=[a,b]; quiet=true!", or the error.
std::string shown(std::string_view text)
{
  const auto entries = parse_toml(text);
  if (!entries) {
    return entries.error().text;
  }
  std::string all;
  for (const TomlEntry& entry : *entries) {
    std::string value;
    for (const std::string& each : entry.value.texts) {
      value += (value.empty() ? "" : ",") + each;
    }
    const bool is_array = entry.value.kind == TomlValue::Kind::array;
    const bool is_boolean = entry.value.kind == TomlValue::Kind::boolean;
    all += (all.empty() ? "" : "; ") + (entry.table.empty() ? "" : entry.table + ".") + entry.key + "=" +
           (is_array ? "[" + value + "]" : value) + (is_boolean ? "!" : "");
  }
  return all;
}

struct Row {
  const char* text;
  const char* expect;
};

}  // namespace

TEST_CASE("toml: what options need of it")
{
  const Row rows[] = {
      {"", ""},
      {"\n# nothing\n\r\n", ""},
      {"wait = \"10s\"", "wait=10s"},
      {"wait='10s' # so long\r\nlabel = \"a#b\"\n", "wait=10s; label=a#b"},
      {"permits = 5\nwait = 1.5\n", "permits=5; wait=1.5"},
      {"wait = 0.1\nlabel = 1234567890123456.0\nreason = 0.30000000000000004",
       "wait=0.1; label=1234567890123456; reason=0.30000000000000004"},
      {"quiet = true\nverbose=false", "quiet=true!; verbose=false!"},
      {"server = [\"a\", 'b' ]", "server=[a,b]"},
      {"server = [ # three\n \"a\",\n\n 'b',\n]\nwait=1", "server=[a,b]; wait=1"},
      {"server = []", "server=[]"},
      {"[run]\nwait = 1\n[ once ]\nwait = 2", "run.wait=1; once.wait=2"},
      {"\"no-wait\" = true", "no-wait=true!"},
      {R"(label = "tab \t quote \" backslash \\ \u00e9\U0001F512")", "label=tab \t quote \" backslash \\ é🔒"},
      {R"(label = 'back\slash')", R"(label=back\slash)"},
      {"run.wait = 1", "run.wait=1"},
      {"run = { wait = 1, quiet = true }", "run.quiet=true!; run.wait=1"},
      {"label = \"\"\"two\nlines\"\"\"", "label=two\nlines"},
      {"wait = 1_000", "wait=1000"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(shown(row.text) == row.expect);
  }
}

TEST_CASE("toml: everything else is refused, and where it stands is told")
{
  const Row rows[] = {
      {"wait", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"\n\nwait =", "3: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"wait = 10s", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"wait = \"10s", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"wait = \"10s\n\"", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"wait = 1 2", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"wait = 1 wait = 2", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"wait = 1\nwait = 2", "2: a name is given twice"},
      {"[run]\nwait = 1\n[once]\n[run]\nwait = 2", "4: a name is given twice"},
      {"= 1", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"[[run]]", "1: the value of run is invalid: an option takes text, a number, true or false"},
      {"[run.job]", "1: the value of job is invalid: an option takes text, a number, true or false"},
      {"[run", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"day = 2026-01-01", "1: the value of day is invalid: an option takes text, a number, true or false"},
      {"server = [\"a\" \"b\"]", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {"server = [[1]]", "1: the value of server is invalid: an option takes text, a number, true or false"},
      {"server = [\"a\",\n", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {R"(label = "\q")", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {R"(label = "\ud800")", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
      {R"(label = "\u12)", "1: this is no valid TOML; text stands in quotes (try wait = \"10s\")"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(shown(row.text) == row.expect);
  }
  CHECK(parse_toml("wait").error().code == ErrorCode::config);
}

TEST_CASE("toml: no error quotes what may be a password")
{
  for (const char* text :
       {"server = redis://u:hush@h", "server = redis://u:hu,hush@h", "server = [redis://u:hush@h]",
        "server = [\"redis://a\", redis://u:hush@h]", "server = \"redis://u:hush@h", "\"redis://u:hush@h\"",
        "\"redis://u:hush@h\" = 1\n\"redis://u:hush@h\" = 1", "server \"redis://u:hush@h\"",
        "server = redis://u:x hush@h", "[\"redis://u:hush@h\"", "server = 'redis://a', 'redis://u:hush@h'"}) {
    CAPTURE(text);
    const auto entries = parse_toml(text);
    REQUIRE_FALSE(entries);
    CHECK_MESSAGE(entries.error().text.find("hush") == std::string::npos, entries.error().text);
  }
}

TEST_CASE("toml: no beginning of a file is too short to be told from it")
{
  const std::string_view text = "[run]\nserver = [\"a\\u00e9\", 'b'] # c\nquiet = true\nwait = -1.5\n";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    CAPTURE(text.substr(0, length));
    const auto entries = parse_toml(text.substr(0, length));
    CHECK((entries || !entries.error().text.empty()));
  }
}
