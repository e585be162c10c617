// SPDX-License-Identifier: Apache-2.0
#include "cli/options/option_table.h"

#include "cli/verbs/dispatch.h"
#include "support/test.h"

#include <set>

using namespace rlock::test;
using namespace rlock::cli;

TEST_CASE("options: each name is one letter or a word, and means one option of its verb")
{
  for (const Verb* verb : all_verbs()) {
    OptionTable table(verb->name);
    const VerbAction act = add_verb_options(*verb, table);
    std::set<std::string> seen;
    for (const OptionTable::Entry& entry : table.all()) {
      const Option& option = *entry.option;
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
  static constexpr OptionRow<OptionText> wait{
      {.names = "-w,--wait", .value = "DUR", .help = {"how long", Millis{1500}}}, read_value};
  static constexpr OptionRow<bool> quiet{{.names = "-q,--quiet,--silent", .help = {"print little", "or nothing"}},
                                         read_value};
  static constexpr OptionRow<bool> hidden{{.names = "-x", .help = "hidden"}, read_value};
  OptionTable table("run");
  OptionText time;
  bool flag = false;
  table.add(wait, time);
  table.add(quiet, flag, "Job");
  table.add(hidden, flag, "");
  CHECK(table.groups() == std::vector<std::string_view>{default_group, "Job", ""});
  CHECK(table.long_names() == std::vector<std::string>{"--wait", "--quiet", "--silent"});
  CHECK(table.find("--wait")->help.str() == "how long (1s500ms)");
  CHECK(table.find("--silent")->help.str() == "print little; or nothing");
  CHECK_FALSE(table.find("-q")->takes_value());
  CHECK(table.find("wait") == nullptr);
  CHECK(table.find("-w,--wait") == nullptr);
}

TEST_CASE("options: the verbs name only their own options where an option excludes or needs others")
{
  for (const Verb* verb : all_verbs()) {
    OptionTable table(verb->name);
    const VerbAction act = add_verb_options(*verb, table);
    for (const OptionTable::Entry& entry : table.all()) {
      CAPTURE(verb->name);
      CAPTURE(entry.option->names);
      for (const std::string_view name : Option{.names = entry.option->needs.names}.long_names()) {
        CHECK_MESSAGE(table.find(name) != nullptr, std::string(name));
      }
      for (const std::string_view name : Option{.names = entry.option->excludes.names}.long_names()) {
        CHECK_MESSAGE((table.find(name) != nullptr && table.find(name) != entry.option), std::string(name));
      }
    }
  }
}
