// SPDX-License-Identifier: Apache-2.0
#include "cli/options/parse_words.h"

#include "cli/options/option_table.h"
#include "cli/options/passwords.h"
#include "unit/typed_options.h"

#include <doctest/doctest.h>

#include <array>

using namespace rlock;
using namespace rlock::cli;
using namespace rlock::test;

namespace {

using Args = std::vector<std::string>;

// A verb with one option of each sort.
struct RawOptions {
  OptionText wait;
  Args keys;
  bool quiet = false;
  bool loud = false;
};
constexpr OptionRow<RawOptions> option_rows[] = {
    {{.names = "-w,--wait",
      .value = "DUR",
      .excludes = {"--loud"},
      .is_neutral = [](std::string_view value) { return value == "0"; }},
     set<&RawOptions::wait>},
    {{.names = "-k,--key", .value = "KEY", .repeats = true}, set<&RawOptions::keys>},
    {{.names = "-q,--quiet", .excludes = {"--loud", " (try -q alone)"}}, set<&RawOptions::quiet>},
    {{.names = "-l,--loud", .needs = {"--key,--wait", ": it tells of them"}}, set<&RawOptions::loud>},
};

// "wait=1 keys=a,b quiet | operand operand", or the error.
std::string shown(const Args& args, Operands operands)
{
  RawOptions raw;
  OptionTable known("run");
  known.add(option_rows, raw);

  const auto words = operands_of(known, args, operands);
  if (!words) {
    return words.error().text;
  }
  std::string text = raw.wait ? "wait=" + *raw.wait + " " : "";
  for (const std::string& key : raw.keys) {
    text += "key=" + key + " ";
  }
  text += raw.quiet ? "quiet |" : "|";
  for (const std::string& operand : *words) {
    text += " <" + operand + ">";
  }
  return text;
}

}  // namespace

TEST_CASE("words: as with getopt, a long option may be shortened as long as one only is meant")
{
  const auto getopt = [](const Args& args) { return shown(args, Operands::getopt); };
  CHECK(getopt({"--wa", "1", "--qui", "x", "--wait"}) == "wait=1 quiet | <x> <--wait>");
  CHECK(getopt({"--wa=1", "--", "x"}) == "wait=1 | <x>");
  CHECK(getopt({"--w"}) == "--wait needs a value: --wait DUR");
  CHECK(getopt({"--qui=1", "k", "job"}) == "--quiet takes no value");
  CHECK(getopt({"--x"}).starts_with("unknown option '--x'"));
  CHECK(getopt({"--"}) == "|");
  CHECK(shown({"--wa", "1"}, Operands::command).starts_with("unknown option '--wa'"));
}

TEST_CASE("words: options end at -- or at the first operand, and the job's words are its own")
{
  struct Row {
    const char* why;
    Args args;
    const char* expect;
  };
  const Row rows[] = {
      {"nothing", {}, "|"},
      {"the first operand ends them", {"-k", "k", "echo", "-q", "-n"}, "key=k | <echo> <-q> <-n>"},
      {"-- ends them and goes", {"-q", "--", "echo"}, "quiet | <echo>"},
      {"a second -- is the job's", {"--", "--", "x"}, "| <--> <x>"},
      {"so is one after the operand", {"env", "--", "x"}, "| <env> <--> <x>"},
      {"empty words stay", {"-q", "echo", "", "x"}, "quiet | <echo> <> <x>"},
      {"an empty word is an operand", {"", "-q"}, "| <> <-q>"},
      {"a lone dash is an operand", {"-", "-q"}, "| <-> <-q>"},
      {"brackets are no list", {"-k", "[a,b]", "x"}, "key=[a,b] | <x>"},
      {"-- as a value", {"-k", "--", "x"}, "key=-- | <x>"},
      {"a value that looks like an option", {"-w", "-1"}, "wait=-1 |"},
      {"glued", {"-w-1"}, "wait=-1 |"},
      {"with =", {"--wait=-1"}, "wait=-1 |"},
      {"= in the value", {"--key=a=b"}, "key=a=b |"},
      {"an empty value takes no other word", {"--key=", "x"}, "key= | <x>"},
      {"bundled", {"-qw10", "x"}, "wait=10 quiet | <x>"},
      {"the last one counts", {"-w1", "-w", "2"}, "wait=2 |"},
      {"all of them count", {"-k", "a", "-k", "b"}, "key=a key=b |"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(shown(row.args, Operands::command) == row.expect);
  }
}

TEST_CASE("words: where no job follows, options may stand after operands")
{
  CHECK(shown({"stock", "-q", "billing"}, Operands::anywhere) == "quiet | <stock> <billing>");
  CHECK(shown({"stock", "--", "-q"}, Operands::anywhere) == "| <stock> <-q>");
}

TEST_CASE("words: one line says what is wrong")
{
  struct Row {
    Args args;
    const char* expect;
  };
  const Row rows[] = {
      {{"--wiat", "1"}, "unknown option '--wiat' (did you mean '--wait'?)"},
      {{"--shared"}, "unknown option '--shared' (rlock help run lists them)"},
      {{"-z"}, "unknown option '-z' (rlock help run lists them)"},
      {{"-qz"}, "unknown option '-z' (rlock help run lists them)"},
      {{"--\x1b[2J"}, "unknown option '--\\x1b[2J' (rlock help run lists them)"},
      {{"-w"}, "-w needs a value: -w DUR"},
      {{"--wait"}, "--wait needs a value: --wait DUR"},
      {{"--quiet=no"}, "--quiet takes no value"},
  };
  for (const Row& row : rows) {
    CHECK(shown(row.args, Operands::command) == row.expect);
  }
}

TEST_CASE("words: options that exclude each other, or need another, whatever their order")
{
  const auto command = [](const Args& args) { return shown(args, Operands::command); };
  CHECK(command({"-q", "-l", "-k", "k"}) == "--quiet and --loud exclude each other (try -q alone)");
  CHECK(command({"-l", "-q", "-k", "k"}) == "--loud and --quiet exclude each other (try -q alone)");
  CHECK(command({"-w", "1", "--loud"}) == "--wait and --loud exclude each other (leave one of them out)");
  CHECK(command({"-w", "0", "--loud"}) == "wait=0 |");
  CHECK(command({"-l"}) == "--loud needs --key or --wait: it tells of them");
  CHECK(shown({"-q", "-l"}, Operands::getopt) == "quiet |");
}

TEST_CASE("wipe: user and password of a URL, wherever it stands, and nothing else")
{
  struct Row {
    std::string word;
    const char* expect;
  };
  Row rows[] = {
      {"redis://u:secret@h:1/0", "redis://********@h:1/0"},
      {"-Sredis://:s@h", "-Sredis://**@h"},
      {"--server=redis://:p@ss/w@h", "--server=redis://*******@h"},
      {"redis+sentinel://u:p@h/m?sentinel_password=p@q", "redis+sentinel://***@h/m?sentinel_password=***"},
      {"redis+sentinel://h/m?sentinel_password=p", "redis+sentinel://h/m?sentinel_password=*"},
      {"postgresql:///app?host=/run&password=p@q&x=y", "postgresql:///app?host=/run&password=*******"},
      {"redis://h:1/0", "redis://h:1/0"},
      {"me@host", "me@host"},
      {"", ""},
  };
  for (Row& row : rows) {
    const std::array words{row.word.data()};
    wipe_passwords(words);
    CHECK(row.word == row.expect);
  }
}
