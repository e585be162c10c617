// SPDX-License-Identifier: Apache-2.0
// A config file, from its text to settings of a verb. Input: a digit, whether every user may read the file; a line with the verb;
// and the file.
#include "cli/options/config.h"
#include "cli/options/option_table.h"
#include "cli/options/split_argv.h"
#include "cli/options/toml.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/table.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace rlock::test {
namespace {

using namespace rlock::cli;

std::string in_quotes(std::string_view text)
{
  std::string out = "\"";
  for (const char c : text) {
    std::array<char, 8> escaped{c};
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(c));
    }
    out += c == '\0' ? "\\u0000" : escaped.data();
  }
  return out + "\"";
}

std::string printed(const TomlValue& value)
{
  if (value.kind == TomlValue::Kind::boolean) {
    return value.texts.front();
  }
  std::string all;
  for (const std::string& text : value.texts) {
    all += (all.empty() ? "" : ", ") + in_quotes(text);
  }
  return value.kind == TomlValue::Kind::array ? "[" + all + "]" : all;
}

std::string printed(const std::vector<TomlEntry>& entries)
{
  std::string all;
  std::string table;
  for (const TomlEntry& entry : entries) {
    if (entry.table != table) {
      table = entry.table;
      all += "[" + in_quotes(table) + "]\n";
    }
    all += in_quotes(entry.key) + " = " + printed(entry.value) + "\n";
  }
  return all;
}

bool same(const TomlEntry& one, const TomlEntry& other)
{
  return one.table == other.table && one.key == other.key && one.value.kind == other.value.kind &&
         one.value.texts == other.value.texts;
}

// The quotes around a URL are missing.
void promise_error_without_password(std::string_view rest)
{
  const std::string secret = "S3cretValue";
  if (rest.find(secret) != std::string_view::npos) {
    return;
  }
  for (const char* front : {"server = ", "server = [", "server ", "", "[", "\"", "[\"", "\"\" = 1\n'"}) {
    const auto entries = parse_toml(front + ("redis://u:" + secret + "@" + std::string(rest)));
    promise(entries || entries.error().text.find(secret) == std::string::npos, "no error quotes a password",
            entries ? "" : entries.error().text);
  }
}

void promise_toml(std::string_view text)
{
  const auto entries = parse_toml(text);
  if (!entries) {
    promise_error(entries.error());
    return;
  }
  const std::string again = printed(*entries);
  const auto parsed = parse_toml(again);
  promise(parsed && std::equal(entries->begin(), entries->end(), parsed->begin(), parsed->end(), same),
          "parse, print, parse is the same", again);
}

}  // namespace

void fuzz_config(std::string_view bytes)
{
  Input input(bytes);
  const bool is_public = input.flag();
  const auto verb = find_verb(input.line());
  promise_toml(input.rest());
  promise_error_without_password(input.rest());
  if (!verb) {
    return;
  }
  OptionTable known((*verb)->name);
  HelpWanted wants_help;
  const VerbAction action = add_verb_options(**verb, known, wants_help);
  const auto settings =
      read_settings({.path = "/etc/rlock.toml", .text = std::string(input.rest()), .is_public = is_public}, known);
  if (!settings) {
    promise_error(settings.error());
    promise(settings.error().text.starts_with("/etc/rlock.toml:"), "an error names the place", settings.error().text);
    return;
  }
  fill_targets(known, argv_of(*settings, known, {}));
}

}  // namespace rlock::test
