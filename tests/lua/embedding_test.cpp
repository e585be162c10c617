// SPDX-License-Identifier: Apache-2.0
// The embedded scripts are the files of lua/ without their comments, with the constants of core/base/defaults.h and the words of
// core/lock/schema.h, the places in core/lock/calls.h, and with the bodies of functions in place of the calls that end in "-- inline".
#include "base/defaults.h"
#include "engine/script_interpreter.h"
#include "lua/scripts.h"
#include "support/integration.h"
#include "support/paths.h"

#include <iterator>
#include <regex>
#include <set>
#include <sstream>

using namespace rlock::test;

namespace {

const std::filesystem::path lua = std::filesystem::path(RLOCK_SOURCE_DIR) / "lua";

const std::string inline_mark = "  -- inline";

std::string text_of(const std::filesystem::path& path)
{
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> stems(const char* folder)
{
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(lua / folder)) {
    found.insert(entry.path().stem());
  }
  return found;
}

// "ReadRuns": "read_runs".
std::string snake(const std::string& name)
{
  std::string text = std::regex_replace(name, std::regex("([a-z])([A-Z])"), "$1_$2");
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// What stands in the scripts for "@renew.ttl@" and "@unpack.renew@": the place of a field in core/lock/calls.h, and a local for each.
void add_places(std::map<std::string, std::string>& words)
{
  static const std::regex part(R"(struct ([A-Z][A-Za-z]+) : (FieldCount|Worded)<.*|  ([\w:<>]+) ([a-z_]+)[;{ ].*)");
  static const std::regex tail_of_fields("Tail<([A-Z][A-Za-z]+)>");
  std::map<std::string, std::vector<std::string>> structs;
  std::vector<std::string>* fields = nullptr;
  std::istringstream calls(text_of(std::filesystem::path(RLOCK_SOURCE_DIR) / "core/lock/calls.h"));
  std::smatch match;
  for (std::string line; std::getline(calls, line);) {
    if (!std::regex_match(line, match, part)) {
      fields = line == "};" ? nullptr : fields;
    } else if (match[1].matched) {
      fields = &structs[match[1]];
      fields->resize(match[2] == "Worded" ? 1 : 0);  // the word
    } else if (fields != nullptr) {
      const std::string type = match[3];
      std::smatch tail;
      const bool has_fields = std::regex_match(type, tail, tail_of_fields);
      const std::vector<std::string> added = has_fields ? structs[tail[1]] : std::vector<std::string>{match[4]};
      fields->insert(fields->end(), added.begin(), added.end());
    }
  }
  for (const auto& [name, all] : structs) {
    const bool is_verb = stems("verbs").contains(snake(name));
    std::size_t place = is_verb ? structs["Every"].size() : 0;
    std::string locals;
    for (const std::string& field : all) {
      words["@" + snake(name) + "." + field + "@"] = std::to_string(++place);
      locals += (locals.empty() ? "" : ", ") + field;
    }
    std::ranges::transform(locals, locals.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    words["@unpack." + snake(name) + "@"] = locals + " = unpack(" + (name.ends_with("Keys") ? "KEYS" : "ARGV") +
                                            (is_verb ? ", " + std::to_string(structs["Every"].size() + 1) : "") + ")";
  }
}

// What stands in the scripts for "@kind.released@", "@field.lease@", "@default.event_count@" and all others.
const std::map<std::string, std::string>& schema_words()
{
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> words;
    const std::string schema = text_of(std::filesystem::path(RLOCK_SOURCE_DIR) / "core/lock/schema.h");
    const std::regex row("\\{\\w*([A-Z])([a-z]+)::(\\w+), \"(\\w+)\"\\}");
    for (std::sregex_iterator it(schema.begin(), schema.end(), row), end; it != end; ++it) {
      const std::string table = static_cast<char>((*it)[1].str()[0] - 'A' + 'a') + (*it)[2].str();
      const std::string begin = (*it)[4] == "history" ? "^" : "\\n";
      words["@" + table + "." + (*it)[3].str() + "@"] =
          table == "field" ? begin + (*it)[4].str() + "=" : (*it)[4].str();
    }
    add_places(words);
    add_places(words);
    words["@default.fence_memory@"] = std::to_string(rlock::fence_memory.count());
    words["@default.event_count@"] = std::to_string(rlock::event_count);
    words["@default.handover_confirmation@"] = std::to_string(rlock::handover_confirmation.count());
    return words;
  }();
  return all;
}

std::string with_words(std::string line)
{
  if (line.find('@') == std::string::npos) {
    return line;
  }
  for (const auto& [name, word] : schema_words()) {
    for (auto at = line.find(name); at != std::string::npos; at = line.find(name)) {
      line.replace(at, name.size(), word);
    }
  }
  return line;
}

std::string code_of(const std::filesystem::path& path)
{
  std::ifstream file(path, std::ios::binary);
  std::string code;
  for (std::string line; std::getline(file, line);) {
    if (const auto comment = line.find("  -- "); comment != std::string::npos && !line.ends_with(inline_mark)) {
      line.resize(line.find_last_not_of(' ', comment) + 1);
    }
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos && !line.substr(begin).starts_with("--")) {
      code += with_words(line) + "\n";
    }
  }
  return code;
}

// The line and how often it is there.
std::map<std::string, int> lines_of(const std::string& text)
{
  std::map<std::string, int> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    ++lines[line];
  }
  return lines;
}

std::string constant(const std::string& name, std::int64_t value)
{
  return "local " + name + " = " + std::to_string(value) + "\n";
}

// What a script may consist of besides its verb.
std::string library(const std::string& kind)
{
  return constant("DEFAULT_HISTORY", rlock::default_history.count()) +
         constant("HANDOVER_CONFIRMATION", rlock::handover_confirmation.count()) +
         constant("LOOK_AGAIN_AFTER", rlock::look_again_after.count()) +
         constant("FENCE_MEMORY", rlock::fence_memory.count()) + constant("RENEWALS_PER_TTL", rlock::renewals_per_ttl) +
         constant("EVENT_COUNT", rlock::event_count) + constant("SUBSCRIBE_GRACE", rlock::subscribe_grace.count()) +
         constant("SILENCE_MEMORY", rlock::silence_memory.count()) + code_of(lua / "lib/names.lua") +
         code_of(lua / "lib/exclusive.lua") + code_of(lua / "kinds" / (kind + ".lua")) +
         code_of(lua / "lib/event_log.lua") + code_of(lua / "lib/records.lua") + code_of(lua / "lib/waiters.lua") +
         code_of(lua / "lib/queue.lua");
}

// Whether the build may have made this line of a call with the mark "inline", or of a return in the body that stands for it.
bool is_made(const std::string& line, const std::string& library)
{
  static const std::regex frame(
      "local r_[a-z_, ]+|do|end|repeat|until true| *break|.*(= |return )r_[a-z_]+(, r_[a-z_]+)?");
  static const std::regex value(" *r_[a-z_]+(?:, r_[a-z_]+)? = (.*)");
  static const std::regex arguments("local [a-z_, ]+ = (.*)");
  std::smatch match;
  return std::regex_match(line, frame) ||
         (std::regex_match(line, match, value) &&
          library.find("return " + match[1].str() + "\n") != std::string::npos) ||
         (std::regex_match(line, match, arguments) &&
          library.find("(" + match[1].str() + ")" + inline_mark) != std::string::npos);
}

// Lines of the verb and of the library alone.
void check_lines(const std::string& source, const std::string& kind, const std::string& verb)
{
  const std::string all = library(kind) + code_of(lua / "verbs" / (verb + ".lua"));
  const std::map<std::string, int> may = lines_of(all);
  for (const auto& each : lines_of(source)) {
    CHECK_MESSAGE((may.contains(each.first) || is_made(each.first, all)), each.first);
    CHECK_MESSAGE(!each.first.ends_with(inline_mark), each.first);
  }
}

// All lines of the verb: each in the script of a kind at least, because a script leaves out what its kind never does.
void check_verb(const std::string& verb)
{
  std::map<std::string, int> lines;
  for (const rlock::Script* script : rlock::scripts::all) {
    if (script->name.ends_with("_" + verb)) {
      lines.merge(lines_of(script->source()));
    }
  }
  static const std::regex of_trait(" *(if (not )?(MULTI_HOLDER|NEEDS_NO_KEY) then|else|end)");
  for (const auto& each : lines_of(code_of(lua / "verbs" / (verb + ".lua")))) {
    if (!each.first.ends_with(inline_mark) && !std::regex_match(each.first, of_trait)) {
      CHECK_MESSAGE(lines.contains(each.first), each.first);
    }
  }
}

// How often the word stands in the text.
int count_of(const std::string& text, const std::string& word)
{
  const auto is_part_of_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  int count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + word.size())) {
    count += is_part_of_word(at - 1) || is_part_of_word(at + word.size()) ? 0 : 1;
  }
  return count;
}

// Every function is created anew in each call, so one that is not called costs time for nothing.
void check_that_all_functions_are_called(const std::string& source)
{
  static const std::string definition = "local function ";
  for (auto at = source.find(definition); at != std::string::npos; at = source.find(definition, at + 1)) {
    const std::size_t begin = at + definition.size();
    const std::string name = source.substr(begin, source.find('(', begin) - begin);
    CHECK_MESSAGE(count_of(source, name) > 1, name << " is unused");
  }
}

}  // namespace

TEST_CASE("embedding: a script for every kind and verb, of the lines it needs, and its SHA1 is the server's")
{
  const RedisServer redis;
  std::set<std::string> embedded;
  for (const rlock::Script* script : rlock::scripts::all) {
    embedded.insert(std::string(script->name));
    CHECK(script->sha1 == as_text(redis.command({"SCRIPT", "LOAD", script->source()})));
  }
  for (const std::string& single : stems("single")) {
    CAPTURE(single);
    CHECK(embedded.erase(single) == 1);
    for (const rlock::Script* script : rlock::scripts::all) {
      CHECK((script->name != single || script->source() == code_of(lua / "single" / (single + ".lua"))));
    }
  }
  for (const std::string& verb : stems("verbs")) {
    check_verb(verb);
  }
  for (const std::string& kind : stems("kinds")) {
    for (const std::string& verb : stems("verbs")) {
      const std::string name = kind + "_" + verb;
      CAPTURE(name);
      CHECK(embedded.erase(name) == 1);
      for (const rlock::Script* script : rlock::scripts::all) {
        if (script->name == name) {
          check_lines(script->source(), kind, verb);
          check_that_all_functions_are_called(script->source());
        }
      }
    }
  }
  CHECK(embedded.empty());
}

TEST_CASE("embedding: each answer begins with a word of core/lock/calls.h")
{
  const std::string calls = rlock::test::text_of(std::filesystem::path(RLOCK_SOURCE_DIR) / "core/lock/calls.h");
  const std::regex answer("\\{'([a-z_]+)'[,}]");
  int found = 0;
  for (const rlock::Script* script : rlock::scripts::all) {
    const std::string source = script->source();
    for (std::sregex_iterator it(source.begin(), source.end(), answer), end; it != end; ++it, ++found) {
      CHECK_MESSAGE(calls.find("Worded<\"" + (*it)[1].str() + "\",") != std::string::npos, (*it)[1].str());
    }
  }
  CHECK(found > 100);
}

TEST_CASE("embedding: no script uses a function of math or of redis that rlock's own interpreter lacks")
{
  const std::regex text("'(\\\\.|[^'\\\\])*'");
  const std::regex function("(math|redis)\\.(\\w+)");
  rlock::record::KeySpace keys;
  rlock::record::ScriptInterpreter interpreter(keys);
  for (const rlock::Script* script : rlock::scripts::all) {
    CAPTURE(script->name);
    const std::string code = std::regex_replace(script->source(), text, "");
    for (std::sregex_iterator it(code.begin(), code.end(), function), end; it != end; ++it) {
      CHECK_MESSAGE(interpreter.run("return tostring(" + it->str() + " ~= nil)", {}, {}).text == "true", it->str());
    }
  }
}
