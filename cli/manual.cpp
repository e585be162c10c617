// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include "cli/dispatch.h"
#include "cli/verbs.h"

#include <CLI/CLI.hpp>

namespace rlock::cli {
namespace {

// Text in which roff finds nothing to do.
std::string plain(std::string_view text)
{
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (out.empty() && (c == '.' || c == '\'')) {
      out += std::string("\\&") + c;
    } else if (c == ' ' && out.ends_with('.')) {
      out += '\n';  // each sentence begins a line
    } else {
      out += c;
    }
  }
  return out;
}

// An argument of a macro: what is short and might be the name of one says that it is not.
std::string word(std::string_view text) { return "\\&" + plain(text); }

// ".It Fl k , Fl -key Ar KEY"
std::string item(const CLI::Option& option)
{
  std::string line = ".It";
  const char* comma = "";
  for (const std::string& name : option.get_snames()) {
    line += std::string(comma) + " Fl " + name;
    comma = " ,";
  }
  for (const std::string& name : option.get_lnames()) {
    line += std::string(comma) + " Fl -" + name;
    comma = " ,";
  }
  const bool takes_value = option.get_items_expected_max() > 0;
  return line + (takes_value ? " Ar " + word(option.get_type_name()) : "") + "\n";
}

std::string options(const CLI::App& app)
{
  std::string text;
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) {
      continue;  // help does not show it either
    }
    text += (group == "Options" ? std::string(".Pp\nOptions:\n") : ".Pp\n" + plain(group) + ":\n") + ".Bl -tag -width Ds\n";
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group) {
        text += item(*option) + plain(option->get_description()) + "\n";
      }
    }
    text += ".El\n";
  }
  return text;
}

}  // namespace

std::string mdoc_of(const Verb& verb)
{
  CLI::App app;
  bool wants_help = false;
  describe(verb, app, wants_help);
  const std::string name = "rlock " + std::string(verb.name);

  std::string text = ".Ss " + name + "\n.Bd -ragged -offset indent -compact\n.Nm " + name + " " + plain(verb.synopsis) + "\n.Ed\n.Pp\n";
  text += "To " + plain(verb.summary) + ".\n";
  text += options(app) + ".Pp\nExit codes:\n.Bl -tag -width Ds -compact\n";
  for (const ExitLine& exit : verb.exits) {
    text += ".It " + word(exit.code) + "\n" + plain(exit.meaning) + "\n";
  }
  text += ".El\n.Pp\nExamples:\n.Bd -literal -offset indent -compact\n";
  for (const std::string_view example : verb.examples) {
    text += plain(example) + "\n";
  }
  return text + ".Ed\n";
}

std::string mdoc_of_verbs()
{
  std::string text = ".Bl -tag -width force-unlock -compact\n";
  for (const Verb* verb : all_verbs()) {
    text += ".It Cm " + std::string(verb->name) + "\n" + plain(verb->summary) + "\n";
  }
  return text + ".El\n";
}

}  // namespace rlock::cli
