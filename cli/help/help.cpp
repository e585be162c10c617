// SPDX-License-Identifier: Apache-2.0
#include "cli/help/help.h"

#include "cli/help/manual.h"
#include "cli/help/page.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "help/store_pages.h"

#include <algorithm>
#include <array>
#include <charconv>

#ifndef RLOCK_VERSION
#define RLOCK_VERSION "dev"
#endif

namespace rlock::cli {
namespace {

constexpr std::array topics{
    Topic{"servers", "the server URLs and their options", help_of_servers, mdoc_of_servers},
    Topic{"exits", "the exit codes", help_of_exits, mdoc_of_exits},
    Topic{"json", "the JSON objects that rlock prints", help_of_json, mdoc_of_json},
};

constexpr std::array manual_pages{
    ManualPage{"rlock", 7, "what a lock promises, and what it does not", "promises,limits"},
    ManualPage{"rlock-recipes", 7, "recipes by task", "recipes,cron,systemd,kubernetes"},
    ManualPage{"rlock-interop", 7, "locks shared with Redisson and others", "interop,redisson,shedlock"},
    ManualPage{"rlock-servers", 7, "what holds for all servers", "urls,passwords,tls"},
    ManualPage{"rlock.toml", 5, "the config file", "toml,configuration"},
    ManualPage{"rlock-json", 5, "the JSON objects that rlock prints", "objects"},
};

bool means(const ManualPage& page, std::string_view word)
{
  return word == page.name || have_common_name(page.words, word);
}

// rlock(1) is the page of the program, which man shows without a section.
std::string man_command(const ManualPage& page)
{
  return "man " + (page.name == "rlock" ? std::to_string(page.section) + " " : "") + std::string(page.name);
}

constexpr std::size_t line_width = 80;

std::string number_text(ExitCode code) { return std::to_string(static_cast<int>(code)); }

std::string joined_names(const Option& option)
{
  std::string all;
  for (const auto& names : {option.short_names(), option.long_names()}) {
    for (const std::string_view name : names) {
      all += (all.empty() ? "" : ", ") + std::string(name);
    }
  }
  return option.takes_value() ? all + " " + std::string(option.value) : all;
}

// Wraps `text` in the columns from `column` to the end of the line. `used`: the column at which the first line begins.
std::string wrapped(std::string_view text, std::size_t column, std::size_t used, std::string_view between = " ")
{
  const std::string margin(column, ' ');
  std::string out;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(between));
    text.remove_prefix(std::min(text.size(), word.size() + between.size()));
    const std::size_t end =
        word.size() + (text.empty() ? 0 : between.size() - 1);  // a line ends with the comma of ", "
    if (used > column && used + 1 + end > line_width) {
      out += "\n" + margin;
      used = column;
    } else if (used > column) {
      out += ' ';
      ++used;
    }
    out += word;
    out += text.empty() ? "" : between.substr(0, between.size() - 1);
    used += end;
  }
  return out + "\n";
}

// "  term      text", the text wrapped in its column; a long term gets a line of its own.
std::string entry(std::string_view term, std::string_view text, std::size_t column)
{
  std::string out = "  " + std::string(term);
  const bool fits = out.size() + 2 <= column;
  out += fits ? std::string(column - out.size(), ' ') : "\n" + std::string(column, ' ');
  return out + wrapped(text, column, column);
}

// The options of a group by name: "  -S, --server URL; --server-timeout DUR; …".
std::string names_text(const OptionTable& table, std::string_view group)
{
  std::string names = joined(table.in(group), "; ", [](const Option* const option) { return joined_names(*option); });
  return "  " + wrapped(names, 2, 2, "; ");
}

std::string described_text(const OptionTable& table, std::string_view group)
{
  constexpr std::size_t column = 28;
  std::string text;
  for (const Option* const option : table.in(group)) {
    text += entry(joined_names(*option), option->help.str(), column);
  }
  return text;
}

enum class Detail { names, descriptions };

// The options of the server are named in the help of each verb and described by rlock help servers only.
std::string options_text(const OptionTable& table, Detail detail)
{
  std::string text;
  for (const std::string_view group : table.groups()) {
    if (group.empty()) {
      continue;  // hidden options
    }
    const bool is_server = group == server_group;
    text += "\n" + std::string(group) + (is_server ? " (see rlock help servers):\n" : ":\n");
    text += is_server || detail == Detail::names ? names_text(table, group) : described_text(table, group);
  }
  return text;
}

std::string heading(const Verb& verb)
{
  const std::string name = "rlock " + std::string(verb.name);
  std::string text = name + ": " + std::string(verb.summary) + "\n\n";
  for (const std::string_view synopsis : synopses_of(verb)) {
    text += (synopsis == verb.synopsis ? "Usage: " : "       ") + name + " " + std::string(synopsis) + "\n";
  }
  return text;
}

std::string examples_text(const Verb& verb)
{
  std::string text = "\nExamples:\n";
  for (const std::string_view example : examples_of(verb)) {
    text += "  " + std::string(example) + "\n";
  }
  return text;
}

std::string keys_text(const Verb& verb)
{
  constexpr std::size_t column = 16;
  std::string text = verb.keys.size() == 0 ? "" : "\nKeys:\n";
  for (const KeyLine& line : verb.keys) {
    text += entry(line.key, line.meaning, column);
  }
  return text;
}

std::string names_of_stores()
{
  return joined(built_engines(), ", ", [](const Engine* const engine) { return std::string(engine->page); });
}

}  // namespace

std::span<const Topic> all_topics() { return topics; }

const Topic* find_topic(std::string_view name)
{
  const auto* const found = std::ranges::find(topics, name, &Topic::name);
  return found == topics.end() ? nullptr : found;
}

std::span<const ManualPage> all_manual_pages() { return manual_pages; }

const ManualPage* find_manual_page(std::string_view name)
{
  const auto* const found =
      std::ranges::find_if(manual_pages, [&](const ManualPage& page) { return means(page, name); });
  return found == manual_pages.end() ? nullptr : found;
}

std::string help_of_manual_page(const ManualPage& page)
{
  return "see " + man_command(page) + ": " + std::string(page.summary) + "\n";
}

std::string summary_of(const Engine& engine) { return "locks on " + std::string(engine.title); }

std::string_view version() { return RLOCK_VERSION; }

std::string overview(Verbs verbs)
{
  constexpr std::size_t column = 16;
  constexpr std::size_t topic_column = 25;
  std::string text =
      "rlock: run a command under a distributed lock\n\n"
      "Usage: rlock VERB [OPTION...]\n\n"
      "Verbs:\n";
  for (const Verb* verb : verbs) {
    text += entry(verb->name, verb->summary, column);
  }
  text += "\nExamples:\n";
  for (const Verb* verb : verbs) {
    text += "  " + std::string(*verb->examples.begin()) + "\n";
  }
  text += "\nrlock help VERB describes a verb. Other topics:\n";
  for (const Topic& topic : all_topics()) {
    text += entry("rlock help " + std::string(topic.name), topic.summary, topic_column);
  }
  text += entry("rlock help STORE", names_of_stores(), topic_column);
  text += "\nManual pages beside those of the verbs and stores:\n";
  for (const ManualPage& page : all_manual_pages()) {
    text += entry(man_command(page), page.summary, topic_column);
  }
  return text;
}

std::string help_of(const Verb& verb)
{
  constexpr std::size_t column = 16;
  OptionTable table(verb.name);
  add_verb_options(verb, table);

  const std::string options = options_text(table, Detail::descriptions);
  std::string text = heading(verb) + options;
  if (options.find("DUR") != std::string::npos) {
    text +=
        "\nDUR is one word: 10 (seconds), 1.5s, 200ms, 5m, 1h, 1d, 2w or 1m30s; also sec,\n"
        "seconds, min, minutes, hours, days and weeks, as in 10min.\n";
  }
  text += keys_text(verb) + examples_text(verb) + "\nExit codes:\n";
  for (const ShownExit& exit : exits_of(verb)) {
    text += entry(exit.code, exit.meaning, column);
  }
  return text;
}

std::string brief_help_of(const Verb& verb)
{
  OptionTable table(verb.name);
  add_verb_options(verb, table);
  return heading(verb) + options_text(table, Detail::names) + examples_text(verb) + "\nrlock help " +
         std::string(verb.name) + " describes the options.\n";
}

std::string help_of_servers()
{
  constexpr std::size_t column = 28;
  OptionTable table;
  RawServer raw;
  add_server_options(table, raw);
  std::string text = "rlock help servers: the server URLs and their options\n\nURLs:\n";
  for (const Engine* const engine : built_engines()) {
    for (const UrlForm& form : engine->url_forms) {
      text += entry(form.url, form.meaning, column);
    }
  }
  return text + "\nOptions of every verb that asks a server:\n" + described_text(table, server_group);
}

std::string help_of_store(const Engine& engine)
{
  constexpr std::size_t column = 28;
  const std::string name(engine.page);
  std::string text = "rlock help " + name + ": " + summary_of(engine) + "\n\nURLs:\n";
  for (const UrlForm& form : engine.url_forms) {
    text += entry(form.url, form.meaning, column);
  }
  const auto* const page = std::ranges::find(store_pages, engine.page, &StorePage::name);
  return text + (page == store_pages.end() ? "" : text_of_page(page->mdoc)) + "\nThis is the page rlock-" + name +
         "(7); rlock help servers describes the options.\n";
}

std::string help_of_exits()
{
  constexpr std::size_t column = 16;
  std::string text = "rlock help exits: the exit codes that are not the job's own\n\n";
  for (const ExitCodeRow& row : exit_codes) {
    text += entry(number_text(row.code), row.meaning, column);
  }
  return text;
}

std::string help_of_json()
{
  constexpr std::size_t column = 16;
  std::string text =
      "rlock help json: the JSON objects that rlock prints\n\n"
      "One object a line. A duration is a number of milliseconds. A time is UTC in\n"
      "ISO 8601. null means that rlock does not know the value.\n";
  for (const JsonObject& object : json_objects()) {
    const std::string verbs = joined(object.printed_by, ", ");
    text += "\n" + std::string(object.name) + ": " + std::string(object.summary) +
            (verbs.empty() ? "\n" : "; printed by " + verbs + "\n");
    for (const JsonField& field : object.fields) {
      text += entry(field.name, std::string(field.type) + "; " + std::string(field.meaning), column);
    }
  }
  return text;
}

std::vector<ShownExit> own_exits_of(const Verb& verb)
{
  std::vector<ShownExit> exits;
  for (const ExitLine& line : verb.own_exits) {
    const auto* const code = std::get_if<ExitCode>(&line.code);
    exits.push_back({code != nullptr ? number_text(*code) : std::string(std::get<1>(line.code)), line.meaning});
  }
  return exits;
}

std::vector<ShownExit> exits_of(const Verb& verb)
{
  std::vector<ShownExit> exits = own_exits_of(verb);
  for (const ExitCode code : verb.common_exits) {
    exits.push_back({number_text(code), meaning_of(code)});
  }
  const auto number = [](const ShownExit& exit) {
    int value = -1;  // "the job's own" comes first
    std::from_chars(exit.code.data(), exit.code.data() + exit.code.size(), value);
    return value;
  };
  std::stable_sort(exits.begin(), exits.end(),
                   [&](const ShownExit& one, const ShownExit& other) { return number(one) < number(other); });
  return exits;
}

}  // namespace rlock::cli
