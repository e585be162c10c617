// SPDX-License-Identifier: Apache-2.0
#include "cli/options/options.h"

#include "cli/options/split_argv.h"
#include "cli/verbs/table.h"

#include <doctest/doctest.h>
#include <CLI/CLI.hpp>

#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::cli;

namespace {

using Args = std::vector<std::string>;

std::vector<std::string> names_in(const CLI::App& app)
{
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    names.push_back(option->get_name(false, true));
  }
  return names;
}

// The remaining options of a verb when only those are built that may occur in `args`.
std::vector<std::string> names_for(const Verb& verb, const Args& args)
{
  CLI::App app;
  app.set_help_flag();
  Options options(app, args);
  const VerbAction act = verb.add_options(options);
  return names_in(app);
}

}  // namespace

TEST_CASE("options: what is typed is there, in each of its forms, and nothing else need be")
{
  for (const Verb* verb : all_verbs()) {
    CLI::App app;
    app.set_help_flag();
    Options all(app);
    const VerbAction act = verb->add_options(all);
    CHECK(names_for(*verb, {"operand", "-", "--"}).empty());
    for (const CLI::Option* option : app.get_options()) {
      const std::string names = option->get_name(false, true);
      CAPTURE(verb->name);
      CAPTURE(names);
      for (const std::string& name : option->get_lnames()) {
        CHECK(names_for(*verb, {"--" + name}) == Args{names});
        CHECK(names_for(*verb, {"x", "--" + name + "=1"}) == Args{names});
      }
      for (const std::string& letter : option->get_snames()) {
        const auto among_others = names_for(*verb, {"-%" + letter + "%"});
        CHECK(among_others == Args{names});
      }
    }
  }
}

TEST_CASE("options: an option that was not made is not known, and the whole verb has to be asked")
{
  const Args args{"--wiat", "1s"};
  CLI::App app;
  app.set_help_flag();
  Text wait;
  Options options(app, args);
  options.text("-w,--wait", wait, "DUR", "");
  CHECK(app.get_options().empty());
  CHECK_FALSE(split_argv(app, args, Operands::command));
}
