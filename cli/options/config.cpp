// SPDX-License-Identifier: Apache-2.0
#include "cli/options/config.h"

#include "base/fd.h"
#include "base/text.h"
#include "cli/options/parse_words.h"
#include "stores/open.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOML_ENABLE_FORMATTERS 0
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace rlock::cli {
namespace {

constexpr std::size_t largest_file = 1 << 20;

Error wrong(const std::string& where, const std::string& what) { return {ErrorCode::config, where + ": " + what}; }

Error unreadable(const std::string& path, int error)
{
  return {is_shortage(error) ? ErrorCode::os : ErrorCode::config, path + ": " + std::generic_category().message(error)};
}

// nullopt: there is no such file.
Result<std::optional<ConfigFile>> read_file(const std::string& path)
{
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) {
    return std::optional<ConfigFile>{};
  }
  ConfigFile file{.path = printable(path), .text = {}};
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return unreadable(file.path, errno);
  }
  file.is_public = (info.st_mode & S_IROTH) != 0;
  std::array<char, 4096> part{};
  for (ssize_t got = 1; got > 0;) {
    got = ::read(fd.get(), part.data(), part.size());
    if (got < 0) {
      return unreadable(file.path, errno);
    }
    file.text.append(part.data(), static_cast<std::size_t>(got));
    if (file.text.size() > largest_file) {
      return wrong(file.path, "too large for a config file");
    }
  }
  return std::optional(std::move(file));
}

std::string user_path(const Environment& environment)
{
  const std::string_view config = environment.value("XDG_CONFIG_HOME");
  if (config.starts_with('/')) {
    return std::string(config) + "/rlock.toml";
  }
  const std::string_view home = environment.value("HOME");
  return home.empty() ? "" : std::string(home) + "/.config/rlock.toml";
}

}  // namespace

Result<std::optional<ConfigFile>> find_config(const Environment& environment, const std::string& system_wide)
{
  const std::string named(environment.value("RLOCK_CONFIG"));
  if (!named.empty()) {
    auto file = read_file(named);
    return file && !*file ? wrong("RLOCK_CONFIG", "there is no file " + printable(named)) : std::move(file);
  }
  // A file that this user may not read is skipped, because sudo and cron may leave HOME to another user's directory.
  const std::string own = user_path(environment);
  if (!own.empty() && ::access(own.c_str(), R_OK) == 0) {
    return read_file(own);
  }
  return read_file(system_wide);
}

namespace {

Error wrong(const toml::source_region& where, const std::string& what)
{
  return {ErrorCode::config, std::to_string(where.begin.line) + ": " + what};
}

// With as few digits as give the number back.
std::string text_of(double number)
{
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

// nullopt: a table, an array or a date.
std::optional<std::string> text_of(const toml::node& node)
{
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  if (const auto* number = node.as_integer()) {
    return std::to_string(number->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return text_of(number->get());
  }
  if (const auto* boolean = node.as_boolean()) {
    return boolean->get() ? "true" : "false";
  }
  return std::nullopt;
}

Error no_value(const toml::key& key, const toml::node& node)
{
  return wrong(node.source(),
               "the value of " + shown_name(key.str()) + " is invalid: an option takes text, a number, true or false");
}

Result<TomlValue> toml_value_of(const toml::key& key, const toml::node& node)
{
  const toml::array* const array = node.as_array();
  if (array == nullptr) {
    const auto text = text_of(node);
    const auto kind = node.is_boolean() ? TomlValue::Kind::boolean : TomlValue::Kind::text;
    return text ? Result(TomlValue{kind, {*text}}) : no_value(key, node);
  }
  TomlValue all{TomlValue::Kind::array, {}};
  for (const toml::node& element : *array) {
    const auto text = text_of(element);
    if (!text) {
      return no_value(key, element);
    }
    all.texts.push_back(*text);
  }
  return all;
}

// Above all tables.
Result<TomlEntry> entry_of(const toml::key& key, const toml::node& node)
{
  ASSIGN_OR_RETURN(auto value, toml_value_of(key, node));
  const std::size_t line = node.source().begin.line;
  return TomlEntry{
      .table = {}, .key = std::string(key.str()), .value = std::move(value), .line = line, .table_line = line};
}

Result<std::vector<TomlEntry>> entries_of(const toml::table& file)
{
  std::vector<TomlEntry> entries;
  for (const auto& [name, node] : file) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) {
      ASSIGN_OR_RETURN(auto entry, entry_of(name, node));
      entries.push_back(std::move(entry));
      continue;
    }
    const std::size_t table_line = table->source().begin.line;
    for (const auto& [key, value] : *table) {
      ASSIGN_OR_RETURN(auto entry, entry_of(key, value));
      entry.table = name.str();
      entry.table_line = table_line != 0 ? table_line : entry.line;
      entries.push_back(std::move(entry));
    }
  }
  std::ranges::stable_sort(entries, {}, &TomlEntry::line);
  return entries;
}

}  // namespace

std::string shown_name(std::string_view name)
{
  constexpr std::size_t longest = 64;
  const auto is_bare = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; };
  const bool is_name = !name.empty() && name.size() <= longest && std::ranges::all_of(name, is_bare);
  return is_name ? std::string(name) : "...";
}

// The library's own words quote what may be a secret.
Result<std::vector<TomlEntry>> parse_toml(std::string_view text)
{
  const toml::parse_result file = toml::parse(text);
  if (!file) {
    const bool is_repeated = file.error().description().find("redefine") != std::string_view::npos;
    return wrong(file.error().source(), is_repeated
                                            ? "a name is given twice"
                                            : "this is no valid TOML; text stands in quotes (try wait = \"10s\")");
  }
  return entries_of(file.table());
}

namespace {

// The config file cannot ask for help.
const Option* option_of(const OptionTable& known, const std::string& option)
{
  return option == "--help" ? nullptr : known.find(option);
}

// Without the dashes, as in the file.
void append_names(const OptionTable& known, std::vector<std::string>& names)
{
  for (const std::string& name : known.long_names()) {
    names.push_back(name.substr(2));
  }
}

bool is_option_of_any(Verbs verbs, const std::string& option, std::vector<std::string>& names)
{
  for (const Verb* verb : verbs) {
    OptionTable known(verb->name);
    const VerbAction action = add_verb_options(*verb, known);
    if (option_of(known, option) != nullptr) {
      return true;
    }
    append_names(known, names);
  }
  return false;
}

Error unknown(const std::string& where, const std::string& key, const std::vector<std::string>& names)
{
  return wrong(where, "unknown option '" + shown_name(key) + "'" +
                          did_you_mean(key, names, " (the long options of rlock help VERB, without --)"));
}

// The settings of one file for one verb.
class SettingsReader {
 public:
  SettingsReader(const ConfigFile& file, const OptionTable& known, Verbs verbs)
      : m_file(file), m_known(known), m_verbs(verbs)
  {
  }

  Result<std::vector<Setting>> read(const std::vector<TomlEntry>& entries)
  {
    for (const TomlEntry& entry : entries) {
      RETURN_IF_ERROR(take(entry));
    }
    RETURN_IF_ERROR(check_agreement());
    std::stable_sort(m_found.begin(), m_found.end(), [](const Found& a, const Found& b) { return a.rank < b.rank; });
    std::vector<Setting> settings;
    for (Found& found : m_found) {
      settings.push_back(std::move(found.setting));
    }
    return settings;
  }

 private:
  struct Found {
    int rank;  // the verb's own table comes first
    Setting setting;
  };

  Result<Done> take(const TomlEntry& entry)
  {
    const std::string where = m_file.path + ":" + std::to_string(entry.line);
    const std::string option = "--" + entry.key;
    if (entry.table == servers_table) {
      return take_server(entry, where);
    }
    if (!entry.table.empty() && std::ranges::find(m_verbs, entry.table, &Verb::name) == m_verbs.end()) {
      return wrong(m_file.path + ":" + std::to_string(entry.table_line),
                   "[" + shown_name(entry.table) + "] is no verb (try [run], [servers], or no table at all)");
    }
    if (!entry.table.empty() && entry.table != m_known.verb()) {
      return Done{};  // see check_tables()
    }
    const Option* found = option_of(m_known, option);
    if (found == nullptr) {
      return check_unknown(entry, where);
    }
    const Result<Done> fits = check(entry, *found, where);
    const bool is_off = entry.value.kind == TomlValue::Kind::boolean && entry.value.texts.front() == "false";
    if (fits && !is_off) {
      const bool is_flag = entry.value.kind == TomlValue::Kind::boolean;
      m_found.push_back(
          {.rank = entry.table.empty() ? 1 : 0,
           .setting = {
               .option = option, .values = is_flag ? std::vector<std::string>{} : entry.value.texts, .where = where}});
    }
    return fits;
  }

  // The file has no order of precedence among entries of one table, so none of two that contradict each other may be ignored.
  [[nodiscard]] Result<Done> check_agreement() const
  {
    const auto given = [this](const Found& found) {
      const auto& values = found.setting.values;
      return Given{.option = m_known.find(found.setting.option), .value = values.empty() ? "" : values.front()};
    };
    const auto key = [](const Found& found) { return found.setting.option.substr(2); };
    for (auto later = m_found.begin(); later != m_found.end(); ++later) {
      const Given one = given(*later);
      const auto earlier = std::find_if(m_found.begin(), later, [&](const Found& found) {
        const Given other = given(found);
        return one.option != nullptr && other.option != nullptr && found.rank == later->rank &&
               (one.option == other.option || are_exclusive(one, other));
      });
      if (earlier != later) {
        return wrong(later->setting.where,
                     key(*later) + " and " + key(*earlier) +
                         (one.option == given(*earlier).option ? " are one option" : " exclude each other") +
                         " (leave one of them out)");
      }
    }
    return Done{};
  }

  // A name for -S @NAME.
  Result<Done> take_server(const TomlEntry& entry, const std::string& where)
  {
    if (shown_name(entry.key) != entry.key) {
      return wrong(where, "the name of a server has letters, digits, - and _ (try prod = \"redis://host\")");
    }
    if (entry.value.kind == TomlValue::Kind::boolean || entry.value.texts.empty()) {
      return wrong(where, entry.key + " takes a URL, or several in brackets");
    }
    const Result<Done> is_secret = check_secret(entry, where);
    if (is_secret) {
      m_found.push_back(
          {.rank = 1, .setting = {.option = "@" + entry.key, .values = entry.value.texts, .where = where}});
    }
    return is_secret;
  }

  // For an option that this verb does not have: an error, unless it stands above all tables and another verb has it.
  Result<Done> check_unknown(const TomlEntry& entry, const std::string& where) const
  {
    std::vector<std::string> names;
    if (!entry.table.empty()) {
      append_names(m_known, names);
      return unknown(where, entry.key, names);
    }
    return is_option_of_any(m_verbs, "--" + entry.key, names) ? Result<Done>(Done{}) : unknown(where, entry.key, names);
  }

  Result<Done> check(const TomlEntry& entry, const Option& option, const std::string& where) const
  {
    const bool is_flag = !option.takes_value();
    const bool is_boolean = entry.value.kind == TomlValue::Kind::boolean;
    if (is_flag != is_boolean) {
      return wrong(where, entry.key + (is_flag ? " is true or false" : " takes a value, " + std::string(option.value)));
    }
    if (entry.value.texts.empty()) {
      return wrong(where, entry.key + ": the array is empty");
    }
    if (entry.value.kind == TomlValue::Kind::array && !option.repeats) {
      return wrong(where, entry.key + " takes one value, not several");
    }
    return entry.key == "server" ? check_secret(entry, where) : Result(Done{});
  }

  [[nodiscard]] Result<Done> check_secret(const TomlEntry& entry, const std::string& where) const
  {
    return m_file.is_public && std::ranges::any_of(entry.value.texts, may_have_password)
               ? wrong(where, "every user may read this password (try chmod o-r " + m_file.path +
                                  ", or password-file = \"FILE\")")
               : Result(Done{});
  }

  const ConfigFile& m_file;
  const OptionTable& m_known;
  const Verbs m_verbs;
  std::vector<Found> m_found;
};

// The tables of other verbs than `verb`, each with the options of its own verb.
Result<Done> check_tables(const ConfigFile& file, const std::vector<TomlEntry>& entries, std::string_view verb,
                          Verbs verbs)
{
  for (const Verb* other : verbs) {
    std::vector<TomlEntry> table;
    std::ranges::copy_if(entries, std::back_inserter(table),
                         [&](const TomlEntry& entry) { return entry.table == other->name && other->name != verb; });
    if (table.empty()) {
      continue;
    }
    OptionTable known(other->name);
    const VerbAction action = add_verb_options(*other, known);
    RETURN_IF_ERROR(SettingsReader(file, known, verbs).read(table));
  }
  return Done{};
}

}  // namespace

Result<std::vector<Setting>> read_settings(const ConfigFile& file, const OptionTable& known, Verbs verbs)
{
  const auto entries = parse_toml(file.text);
  if (!entries) {
    return Error{ErrorCode::config, file.path + ":" + entries.error().text};
  }
  const Result<Done> tables = check_tables(file, *entries, known.verb(), verbs);
  return tables ? SettingsReader(file, known, verbs).read(*entries) : tables.error();
}

Result<Done> check_settings(const ConfigFile& file, Verbs verbs)
{
  for (const Verb* verb : verbs) {
    OptionTable known(verb->name);
    const VerbAction action = add_verb_options(*verb, known);
    RETURN_IF_ERROR(read_settings(file, known, verbs));
  }
  return Done{};
}

std::vector<Given> settings_beside(std::span<const Given> words, const std::vector<Setting>& settings,
                                   const OptionTable& known)
{
  std::vector<Given> beside;
  for (const Setting& setting : settings) {
    const Option* const option = known.find(setting.option);
    if (option == nullptr) {
      continue;  // a server of [servers]
    }
    const std::vector<std::string> values = setting.values.empty() ? std::vector<std::string>{""} : setting.values;
    const auto settles = [&](const Given& other) {
      return other.option == option || are_exclusive(other, {.option = option, .value = values.front()});
    };
    if (option->has_variable || std::ranges::any_of(words, settles) || std::ranges::any_of(beside, settles)) {
      continue;
    }
    for (const std::string& value : values) {
      beside.push_back({.option = option, .value = value, .where = setting.where});
    }
  }
  return beside;
}

Error with_source(Error error, std::span<const Given> settings)
{
  const auto is_named = [&](const Given& given) {
    const std::string_view text = error.text;
    const std::string name = given.option->name();
    return text.starts_with(name) &&
           (text.size() == name.size() || text[name.size()] == ':' || text[name.size()] == ' ');
  };
  const auto named = std::ranges::find_if(settings, is_named);
  if (error.code != ErrorCode::usage || named == settings.end()) {
    return error;
  }
  return {ErrorCode::config, named->where + ": " + error.text};
}

}  // namespace rlock::cli
