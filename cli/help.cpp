// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include "cli/dispatch.h"
#include "cli/verbs.h"

#include <CLI/CLI.hpp>

namespace rlock::cli {
namespace {

constexpr std::size_t line_width = 80;

std::string joined_names(const CLI::Option& option)
{
  std::string names;
  for (const std::string& name : option.get_snames()) {
    names += (names.empty() ? "-" : ", -") + name;
  }
  for (const std::string& name : option.get_lnames()) {
    names += (names.empty() ? "--" : ", --") + name;
  }
  const bool takes_value = option.get_items_expected_max() > 0;
  return takes_value ? names + " " + option.get_type_name() : names;
}

// "  term      text", the text wrapped in its column; a long term stands on a line of its own.
std::string entry(std::string_view term, std::string_view text, std::size_t column)
{
  const std::string margin(column, ' ');
  std::string out = "  " + std::string(term);
  const bool fits = out.size() + 2 <= column;
  out += fits ? std::string(column - out.size(), ' ') : "\n" + margin;

  std::size_t used = column;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (used > column && used + 1 + word.size() > line_width) {
      out += "\n" + margin;
      used = column;
    } else if (used > column) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out + "\n";
}

std::string options_text(const CLI::App& app)
{
  constexpr std::size_t column = 28;
  std::string text;
  for (const std::string& group : app.get_groups()) {
    if (group.empty()) {
      continue;  // known in order to be refused with a word
    }
    text += "\n" + group + ":\n";
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group) {
        text += entry(joined_names(*option), option->get_description(), column);
      }
    }
  }
  return text;
}

}  // namespace

std::string overview()
{
  constexpr std::size_t column = 16;
  std::string text =
      "rlock: run a command under a distributed lock, kept on Redis\n\n"
      "Usage: rlock VERB [OPTION...]\n\n"
      "Verbs:\n";
  for (const Verb* verb : all_verbs()) {
    text += entry(verb->name, verb->summary, column);
  }
  text += "\nExamples:\n";
  for (const Verb* verb : all_verbs()) {
    text += "  " + std::string(verb->examples.front()) + "\n";
  }
  return text;
}

std::string help_of(const Verb& verb)
{
  constexpr std::size_t column = 16;
  CLI::App app;
  bool wants_help = false;
  describe(verb, app, wants_help);

  const std::string name = "rlock " + std::string(verb.name);
  std::string text = name + ": " + std::string(verb.summary) + "\n\n";
  text += "Usage: " + name + " " + std::string(verb.synopsis) + "\n";
  const std::string options = options_text(app);
  text += options;
  if (options.find("DUR") != std::string::npos) {
    text += "\nDUR is 10 (seconds), 1.5s, 200ms, 5m, 1h, 1d or 1m30s.\n";
  }
  text += "\nExamples:\n";
  for (const std::string_view example : verb.examples) {
    text += "  " + std::string(example) + "\n";
  }
  text += "\nExit codes:\n";
  for (const ExitLine& exit : verb.exits) {
    text += entry(exit.code, exit.meaning, column);
  }
  return text;
}

}  // namespace rlock::cli
