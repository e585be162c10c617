// SPDX-License-Identifier: Apache-2.0
#include "cli/options/option_table.h"

#include "cli/verbs/dispatch.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::cli;

TEST_CASE("options: each name is one letter or a word, and means one option of its verb")
{
  for (const Verb* verb : all_verbs()) {
    OptionTable table(verb->name);
    HelpWanted wants_help;
    const VerbAction act = add_verb_options(*verb, table, wants_help);
    std::set<std::string> seen;
    for (const Option& option : table.all()) {
      CAPTURE(verb->name);
      CAPTURE(option.names);
      for (const std::string_view name : option.short_names()) {
        CHECK(name.size() == 2);
        CHECK(name.front() == '-');
      }
      for (const std::string_view name : option.long_names()) {
        CHECK(name.size() > 3);
      }
      for (const auto& names : {option.short_names(), option.long_names()}) {
        for (const std::string_view name : names) {
          CHECK(seen.emplace(name).second);
          CHECK(table.find(name) == &option);
        }
      }
    }
    CHECK(table.find("--") == nullptr);
    CHECK(table.find("") == nullptr);
  }
}

TEST_CASE("options: a table knows its groups and its long names in the order in which they were added")
{
  OptionTable table("run");
  Options options(table);
  Text wait;
  bool quiet = false;
  options.text("-w,--wait", wait, "DUR", {"how long", Millis{1500}});
  options.in("Job").flag("-q,--quiet,--silent", quiet, {"print little", "or nothing"});
  options.in("").flag("-x", quiet, "hidden");
  CHECK(table.groups() == std::vector<std::string_view>{default_group, "Job", ""});
  CHECK(table.long_names() == std::vector<std::string>{"--wait", "--quiet", "--silent"});
  CHECK(table.find("--wait")->help.str() == "how long (1s500ms)");
  CHECK(table.find("--silent")->help.str() == "print little; or nothing");
  CHECK_FALSE(table.find("-q")->takes_value());
  CHECK(table.find("wait") == nullptr);
  CHECK(table.find("-w,--wait") == nullptr);
}
