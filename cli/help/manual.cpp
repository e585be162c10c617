// SPDX-License-Identifier: Apache-2.0
#include "cli/help/manual.h"

#include "cli/help/help.h"
#include "cli/options/server.h"
#include "cli/output/json.h"

#include <cctype>

namespace rlock::cli {
namespace {

// The text, escaped so that roff prints it as it is.
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

// The text as an argument of a macro, not as the name of another macro.
std::string word(std::string_view text) { return "\\&" + plain(text); }

// "Fl k , Fl -key Ar KEY"
std::string item(const Option& option)
{
  std::string line;
  const char* comma = "";
  for (const auto& names : {option.short_names(), option.long_names()}) {
    for (const std::string_view name : names) {
      line += std::string(comma) + "Fl " + std::string(name.substr(1));
      comma = " , ";
    }
  }
  return line + (option.takes_value() ? " Ar " + word(option.value) : "") + "\n";
}

std::string list(const OptionTable& table, std::string_view group)
{
  std::string text = ".Bl -tag -width Ds\n";
  for (const Option* const option : table.in(group)) {
    text += ".It " + item(*option) + plain(option->help.str()) + "\n";
  }
  return text + ".El\n";
}

// The options of a group by name.
std::string names(const OptionTable& table, std::string_view group)
{
  std::string text;
  for (const Option* const option : table.in(group)) {
    text += (text.empty() ? "." : " ;\n.") + item(*option);
    text.pop_back();
  }
  return text + " .\n";
}

std::string options(const OptionTable& table)
{
  std::string text;
  for (const std::string_view group : table.groups()) {
    if (group == server_group) {
      text += ".Pp\n" + std::string(group) + ", described in\n.Xr rlock-servers 7 :\n" + names(table, group);
    } else if (!group.empty()) {  // help hides the group ""
      text += ".Pp\n" + plain(group) + ":\n" + list(table, group);
    }
  }
  return text;
}

std::string sentence(std::string_view summary)
{
  std::string text(summary);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + ".\n";
}

// "--" would be a dash.
std::string literal(std::string_view example)
{
  std::string text = plain(example);
  for (auto at = text.find("--"); at != std::string::npos; at = text.find("--", at)) {
    text.replace(at, 2, "\\-\\-");
  }
  return text;
}

// A list of words with what each means. `parts` of an element: both.
template <typename Elements, typename Parts>
std::string described(std::string_view title, const Elements& elements, const Parts& parts)
{
  std::string text = ".Pp\n" + std::string(title) + "\n.Bl -tag -width Ds -compact\n";
  for (const auto& element : elements) {
    const auto [what, meaning] = parts(element);
    text += ".It " + word(what) + "\n" + plain(meaning) + "\n";
  }
  return text + ".El\n";
}

}  // namespace

std::string mdoc_of(const Verb& verb)
{
  OptionTable table(verb.name);
  add_verb_options(verb, table);
  const std::string name = "rlock " + std::string(verb.name);

  std::string text = ".Ss " + name + "\n.Bd -ragged -offset indent -compact\n";
  for (const std::string_view synopsis : synopses_of(verb)) {
    text += (synopsis == verb.synopsis ? ".Nm " : ".br\n.Nm ") + name + "\n" + literal(synopsis) + "\n";
  }
  text += ".Ed\n.Pp\n";
  text += plain(sentence(verb.summary));
  text += options(table);
  if (verb.keys.size() > 0) {
    text += described("Keys:", verb.keys, [](const KeyLine& line) { return std::pair(line.key, line.meaning); });
  }
  text += described("Exit codes:", own_exits_of(verb),
                    [](const ShownExit& exit) { return std::pair(exit.code, exit.meaning); });
  text += ".Pp\nOther codes have the meaning that stands in rlock(1).\n";
  text += ".Pp\nExamples:\n.Bd -literal -offset indent -compact\n";
  for (const std::string_view example : examples_of(verb)) {
    text += literal(example) + "\n";
  }
  return text + ".Ed\n";
}

std::string mdoc_of_servers()
{
  OptionTable table;
  RawServer raw;
  add_server_options(table, raw);
  std::vector<UrlForm> forms;
  for (const Engine* const engine : built_engines()) {
    forms.insert(forms.end(), engine->url_forms.begin(), engine->url_forms.end());
  }
  return described("The server:", forms, [](const UrlForm& form) { return std::pair(form.url, form.meaning); }) +
         ".Pp\nThe options of every verb that asks a server:\n" + list(table, server_group);
}

std::string mdoc_of_exits()
{
  std::string text = ".Bl -tag -width Ds -compact\n";
  for (const ExitCodeRow& row : exit_codes) {
    text += ".It " + word(std::to_string(static_cast<int>(row.code))) + "\n" + plain(row.meaning) + "\n";
  }
  return text + ".El\n";
}

std::string mdoc_of_json()
{
  std::string text;
  for (const JsonObject& object : json_objects()) {
    text += ".Ss " + std::string(object.name) + "\n" + plain(sentence(object.summary));
    for (std::size_t i = 0; i < object.printed_by.size(); ++i) {
      text += (i == 0 ? "Printed by\n" : "") + std::string(".Xr rlock-") + std::string(object.printed_by[i]) + " 1" +
              (i + 1 < object.printed_by.size() ? " ,\n" : " .\n");
    }
    text += ".Bl -tag -width Ds -compact\n";
    for (const JsonField& field : object.fields) {
      text += ".It Sy " + word(field.name) + " Pq " + word(field.type) + "\n" + plain(field.meaning) + "\n";
    }
    text += ".El\n";
  }
  return text;
}

std::string mdoc_of_verbs(Verbs verbs)
{
  std::string text = ".Bl -tag -width force-unlock -compact\n";
  for (const Verb* verb : verbs) {
    text += ".It Cm " + std::string(verb->name) + "\n" + plain(verb->summary) + "\n";
  }
  return text + ".El\n";
}

}  // namespace rlock::cli
