// SPDX-License-Identifier: Apache-2.0
#include "cli/options/config.h"

#include "base/fd.h"
#include "base/text.h"
#include "cli/dispatch.h"
#include "cli/help/suggest.h"
#include "cli/options/options.h"
#include "cli/options/split_argv.h"
#include "cli/options/toml.h"
#include "cli/verbs/table.h"
#include "store/open.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rlock::cli {
namespace {

constexpr std::size_t largest = 1 << 20;

// For these there are variables, which come before the file: see meant_server.
constexpr std::array<std::string_view, 6> yielding{"--server", "--password-file", "--cacert",
                                                   "--cert",   "--tls-key",       "--quorum"};

// Where one was chosen, the others do not count.
constexpr std::array<std::array<std::string_view, 4>, 5> rivals{{{"--no-wait", "--wait", "", ""},
                                                                 {"--shared", "--exclusive", "--permits", "--format"},
                                                                 {"--lease", "--ttl", "--pid", ""},
                                                                 {"--quiet", "--verbose", "", ""},
                                                                 {"--export", "--json", "", ""}}};

template <typename Range>
bool contains(const Range& range, std::string_view word)
{
  return std::find(std::begin(range), std::end(range), word) != std::end(range);
}

Error wrong(const std::string& where, const std::string& what) { return {ErrorCode::config, where + ": " + what}; }

// nullopt: there is none.
Result<std::optional<ConfigFile>> read(const std::string& path)
{
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) {
    return std::optional<ConfigFile>{};
  }
  ConfigFile file{.path = printable(path), .text = {}};
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) {
    return wrong(file.path, std::generic_category().message(errno));
  }
  file.is_public = (info.st_mode & S_IROTH) != 0;
  std::array<char, 4096> part{};
  for (ssize_t got = 1; got > 0;) {
    got = ::read(fd.get(), part.data(), part.size());
    if (got < 0) {
      return wrong(file.path, std::generic_category().message(errno));
    }
    file.text.append(part.data(), static_cast<std::size_t>(got));
    if (file.text.size() > largest) {
      return wrong(file.path, "too large for a config file");
    }
  }
  return std::optional(std::move(file));
}

std::string own_path(const Environment& environment)
{
  const std::string_view config = environment.value("XDG_CONFIG_HOME");
  if (config.starts_with('/')) {
    return std::string(config) + "/rlock.toml";
  }
  const std::string_view home = environment.value("HOME");
  return home.empty() ? "" : std::string(home) + "/.config/rlock.toml";
}

const CLI::Option* option_of(const CLI::App& app, const std::string& option)
{
  return option == "--help" ? nullptr : app.get_option_no_throw(option);
}

bool is_known_to_any(const std::string& option, std::vector<std::string>& names)
{
  for (const Verb* verb : all_verbs()) {
    CLI::App app;
    HelpWanted wants_help;
    const VerbAction action = add_verb_options(*verb, app, wants_help);
    if (option_of(app, option) != nullptr) {
      return true;
    }
    for (const CLI::Option* each : app.get_options()) {
      const auto& longs = each->get_lnames();
      names.insert(names.end(), longs.begin(), longs.end());
    }
  }
  return false;
}

Error unknown(const std::string& where, const std::string& key, const std::vector<std::string>& names)
{
  return wrong(where, "unknown option '" + printable(key) + "'" +
                          did_you_mean(key, names, " (the long options of rlock help VERB, without --)"));
}

bool is_about(const TomlEntry& entry, const CLI::App& app)
{
  return entry.table.empty() || entry.table == app.get_name();
}

// Settings of one file, as far as they concern one verb.
class Reader {
 public:
  Reader(const ConfigFile& file, const CLI::App& app) : m_file(file), m_app(app) {}

  Result<std::vector<Setting>> read(const std::vector<TomlEntry>& entries)
  {
    for (const TomlEntry& entry : entries) {
      const Result<Done> taken = take(entry);
      if (!taken) {
        return taken.error();
      }
    }
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
    if (!entry.table.empty() && !find_verb(entry.table)) {
      return wrong(m_file.path + ":" + std::to_string(entry.table_line),
                   "[" + printable(entry.table) + "] is no verb (try [run], or no table at all)");
    }
    if (!is_about(entry, m_app)) {
      return Done{};
    }
    const CLI::Option* known = option_of(m_app, option);
    if (known == nullptr) {
      return elsewhere(entry, where);
    }
    const Result<Done> fits = check(entry, *known, where);
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

  // An option of other verbs, or of none.
  Result<Done> elsewhere(const TomlEntry& entry, const std::string& where) const
  {
    std::vector<std::string> names;
    if (!entry.table.empty()) {
      for (const CLI::Option* option : m_app.get_options()) {
        names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
      }
      return unknown(where, entry.key, names);
    }
    return is_known_to_any("--" + entry.key, names) ? Result<Done>(Done{}) : unknown(where, entry.key, names);
  }

  Result<Done> check(const TomlEntry& entry, const CLI::Option& option, const std::string& where) const
  {
    const bool is_flag = option.get_items_expected_max() == 0;
    const bool is_boolean = entry.value.kind == TomlValue::Kind::boolean;
    if (is_flag != is_boolean) {
      return wrong(where, entry.key + (is_flag ? " is true or false" : " takes a value, " + option.get_type_name()));
    }
    if (entry.value.texts.empty()) {
      return wrong(where, entry.key + ": the array is empty");
    }
    const bool may_be_several = entry.key == "server" || entry.key == "key";
    if (entry.value.kind == TomlValue::Kind::array && !may_be_several) {
      return wrong(where, entry.key + " takes one value, not several");
    }
    if (entry.key == "server" && m_file.is_public && has_password(entry.value.texts)) {
      return wrong(where,
                   "everybody may read this password (try chmod o-r " + m_file.path + ", or password-file = \"FILE\")");
    }
    return Done{};
  }

  static bool has_password(const std::vector<std::string>& urls)
  {
    return std::any_of(urls.begin(), urls.end(), [](const std::string& url) {
      const Result<Endpoint> endpoint = parse_server(url);
      return endpoint && !endpoint->password.empty();
    });
  }

  const ConfigFile& m_file;
  const CLI::App& m_app;
  std::vector<Found> m_found;
};

// The options that were chosen, by whatever name.
class Chosen {
 public:
  Chosen(const CLI::App& app, const SplitArgv& raw) : m_app(app)
  {
    for (const std::string& word : raw.options) {
      add(word);
    }
  }

  void add(const std::string& name)
  {
    if (const CLI::Option* option = m_app.get_option_no_throw(name)) {
      m_options.push_back(option);
    }
  }

  // It, or what contradicts it.
  [[nodiscard]] bool settles(const std::string& name) const
  {
    const CLI::Option* option = m_app.get_option_no_throw(name);
    if (has(option)) {
      return true;
    }
    return std::any_of(rivals.begin(), rivals.end(), [&](const auto& group) {
      const auto is_in_group = [&](std::string_view rival) { return same(option, rival); };
      return std::any_of(group.begin(), group.end(), is_in_group) &&
             std::any_of(group.begin(), group.end(), [&](std::string_view rival) { return has(find(rival)); });
    });
  }

 private:
  [[nodiscard]] const CLI::Option* find(std::string_view name) const
  {
    return name.empty() ? nullptr : m_app.get_option_no_throw(std::string(name));
  }
  [[nodiscard]] bool same(const CLI::Option* option, std::string_view name) const
  {
    return option != nullptr && option == find(name);
  }
  [[nodiscard]] bool has(const CLI::Option* option) const { return option != nullptr && contains(m_options, option); }
  static bool contains(const std::vector<const CLI::Option*>& options, const CLI::Option* option)
  {
    return std::find(options.begin(), options.end(), option) != options.end();
  }

  const CLI::App& m_app;
  std::vector<const CLI::Option*> m_options;
};

}  // namespace

Result<std::optional<ConfigFile>> find_config(const Environment& environment, const std::string& system_wide)
{
  const std::string named(environment.value("RLOCK_CONFIG"));
  if (!named.empty()) {
    auto file = read(named);
    return file && !*file ? wrong("RLOCK_CONFIG", "there is no file " + printable(named)) : std::move(file);
  }
  // A home that we may not look into is not ours: sudo and cron leave HOME as it was.
  const std::string own = own_path(environment);
  if (!own.empty() && ::access(own.c_str(), R_OK) == 0) {
    return read(own);
  }
  return read(system_wide);
}

Result<std::vector<Setting>> read_settings(const ConfigFile& file, const CLI::App& app)
{
  const auto entries = parse_toml(file.text);
  if (!entries) {
    return Error{ErrorCode::config, file.path + ":" + entries.error().text};
  }
  return Reader(file, app).read(*entries);
}

SplitArgv argv_of(const std::vector<Setting>& settings, const CLI::App& app, const SplitArgv& raw)
{
  SplitArgv words;
  const Chosen by_hand(app, raw);
  Chosen before = by_hand;  // with what the verb's own table has
  for (const Setting& setting : settings) {
    if (contains(yielding, setting.option) || before.settles(setting.option)) {
      continue;
    }
    for (const std::string& value : setting.values) {
      words.options.push_back(setting.option);
      words.options.push_back(value);
    }
    if (setting.values.empty()) {
      words.options.push_back(setting.option);
    }
    before.add(setting.option);
  }
  return words;
}

Error blame(Error error, const std::vector<Setting>& settings, const CLI::App& app, const SplitArgv& raw)
{
  if (error.code != ErrorCode::usage) {
    return error;
  }
  const SplitArgv used = argv_of(settings, app, raw);
  for (const Setting& setting : settings) {
    const bool is_named = error.text.starts_with(setting.option) &&
                          (error.text.size() == setting.option.size() ||
                           std::string_view(": ").find(error.text[setting.option.size()]) != std::string_view::npos);
    if (is_named && contains(used.options, setting.option)) {
      return {ErrorCode::config, setting.where + ": " + error.text};
    }
  }
  return error;
}

}  // namespace rlock::cli
