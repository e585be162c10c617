// SPDX-License-Identifier: Apache-2.0
// The options of one verb as rows. A row is all there is to know of an option: its names, what help says, the kind of its value,
// which options it excludes and needs, and its effect. Parsing, help, the manual pages, the completions and the config file read
// the rows.
#pragma once

#include "base/clock.h"
#include "base/exit_code.h"
#include "base/result.h"
#include "base/text.h"

#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rlock::cli {

using OptionText = std::optional<std::string>;  // nullopt: the option was not given; "": it was given an empty value

// Assigns a value to `target`, or hands the error on.
template <typename T, typename Target>
Result<Done> assign(Result<T> value, Target& target)
{
  if (!value) {
    return value.error();
  }
  target = *std::move(value);
  return Done{};
}

// What help says of one option. The string is made only when help is shown, because parsing does not need it.
class HelpText {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr HelpText(const char* text) : m_text(text) {}
  constexpr HelpText(const char* text, Millis default_value) : m_text(text), m_more(default_value) {}
  constexpr HelpText(const char* text, ExitCode default_value) : m_text(text), m_more(default_value) {}
  constexpr HelpText(const char* text, const char* more) : m_text(text), m_more(more) {}
  template <std::convertible_to<std::string (*)()> Make>
  constexpr HelpText(Make make) : m_more(static_cast<std::string (*)()>(make))  // NOLINT(google-explicit-constructor)
  {
  }

  [[nodiscard]] std::string str() const;  // "text (default)", "text; more"

 private:
  const char* m_text = "";
  std::variant<std::monostate, Millis, ExitCode, const char*, std::string (*)()> m_more;
};

inline constexpr std::string_view default_group = "Options";

// Which durations and numbers an option takes. `good`: a value that an error suggests.
struct Durations {
  Millis least;
  Millis most;
  std::string_view good;
};
struct Numbers {
  int least;
  int most;
  std::string_view good;
};

// Other options of the verb, and what an error says after the names of both.
struct Others {
  std::string_view names;  // "--wait,--latest"
  std::string_view advice = {};
};

struct Option {
  std::string_view names;       // "-w,--wait"
  std::string_view value = {};  // what completion offers and help shows: "DUR", "stop|warn"; empty: a flag
  HelpText help = "";
  std::variant<std::monostate, Durations, Numbers> range = {};
  bool repeats = false;  // each occurrence counts; false: the last one, as with getopt
  // The command line may not have both this option and one of these. One that it has silences the config file's others. It is
  // enough that one of the two names the other.
  Others excludes = {};
  bool (*is_neutral)(std::string_view value) = nullptr;  // with such a value the option excludes nothing
  Others needs = {};                                     // at least one of these must be given, too
  bool has_variable = false;                             // see Environment::setting

  [[nodiscard]] bool takes_value() const { return !value.empty(); }
  [[nodiscard]] bool has_name(std::string_view name) const;         // "-w", "--wait"
  [[nodiscard]] std::string name() const;                           // by which messages call it: the first long one
  [[nodiscard]] std::vector<std::string_view> short_names() const;  // "-w"
  [[nodiscard]] std::vector<std::string_view> long_names() const;   // "--wait"
};

bool have_common_name(std::string_view names, std::string_view other_names);

// One occurrence of an option.
struct Given {
  const Option* option;
  std::string value;       // empty for a flag
  std::string where = {};  // the place in the config file, "/etc/rlock.toml:3"; empty: the command line
};

// An option, and what it does to a T. ErrorCode::usage: the value makes no sense.
template <typename T>
struct OptionRow {
  Option option;
  Result<Done> (*effect)(const Given& given, T& target);
};

// Effects. A flag sets true; a string takes any text; a vector gets one element more; a duration and a number must be in the
// range of the row.
Result<Done> read_value(const Given& given, bool& target);
Result<Done> read_value(const Given& given, std::string& target);
Result<Done> read_value(const Given& given, std::vector<std::string>& target);
Result<Done> read_value(const Given& given, Millis& target);
Result<Done> read_value(const Given& given, int& target);
Result<Done> read_value(const Given& given, unsigned& target);
template <typename T>
Result<Done> read_value(const Given& given, std::optional<T>& target)
{
  return read_value(given, target.emplace());
}

// Sets a field by read_value().
template <auto field, typename T>
Result<Done> set(const Given& given, T& target)
{
  return read_value(given, target.*field);
}

// The index of `word` in `words`, "stop|warn". ErrorCode::usage names the option.
Result<std::size_t> index_of(std::string_view word, std::string_view words, std::string_view option);

// Of an option whose value is "stop|warn": `values` are what these words mean, in their order.
template <auto first, decltype(first)... others>
Result<decltype(first)> chosen(const Given& given)
{
  constexpr std::array values{first, others...};
  const Result<std::size_t> index = index_of(given.value, given.option->value, given.option->name());
  return index ? Result(values.at(*index)) : Result<decltype(first)>(index.error());
}
template <auto... values, typename T>
Result<Done> choose(const Given& given, T& target)
{
  return assign(chosen<values...>(given), target);
}
template <auto field, auto... values, typename T>
Result<Done> choose_field(const Given& given, T& target)
{
  return assign(chosen<values...>(given), target.*field);
}

// Not copied, because tables are large.
class OptionTable {
 public:
  struct Entry {
    const Option* option;
    std::string_view group;  // its heading in help; empty: help does not show the option
    const void* row;
    void* target;
    Result<Done> (*apply)(const Entry& entry, const Given& given);
  };

  explicit OptionTable(std::string_view verb = {}) : m_verb(verb) {}
  OptionTable(const OptionTable&) = delete;
  OptionTable& operator=(const OptionTable&) = delete;

  // `row` and `target` must outlive the table.
  template <typename T>
  void add(const OptionRow<T>& row, std::type_identity_t<T>& target, std::string_view group = default_group)
  {
    add({.option = &row.option, .group = group, .row = &row, .target = &target, .apply = apply<T>});
  }
  template <typename T, std::size_t N>
  void add(const OptionRow<T> (&rows)[N], std::type_identity_t<T>& target, std::string_view group = default_group)
  {
    for (const OptionRow<T>& row : rows) {
      add(row, target, group);
    }
  }

  [[nodiscard]] const Option* find(std::string_view name) const;  // by "--wait" or "-w"; nullptr: there is none
  [[nodiscard]] const std::vector<Entry>& all() const { return m_entries; }
  [[nodiscard]] std::vector<std::string_view> groups() const;  // in the order of their first options
  [[nodiscard]] std::vector<const Option*> in(std::string_view group) const;
  [[nodiscard]] std::vector<std::string> long_names() const;  // "--wait" of each option
  [[nodiscard]] std::string_view verb() const { return m_verb; }

  // The effects of those of the options that are in this table. After an error the others have their effects all the same. The
  // first error is returned.
  Result<Done> apply(std::span<const Given> options) const;
  // The same for the options of another table, by their names.
  Result<Done> apply_by_name(std::span<const Given> options) const;

 private:
  template <typename T>
  static Result<Done> apply(const Entry& entry, const Given& given)
  {
    return static_cast<const OptionRow<T>*>(entry.row)->effect(given, *static_cast<T*>(entry.target));
  }
  void add(const Entry& entry);

  std::string_view m_verb;
  std::vector<Entry> m_entries;
};

Error usage(std::string text);

// A word as errors quote it: escaped, without secrets, and shortened when it is long.
std::string shown_word(std::string_view word);

// `option` is for the error.
Result<Millis> duration_in(const Durations& range, std::string_view text, const std::string& option);

bool is_no_time(std::string_view value);  // "0" and "0s", for Option::is_neutral

// " (did you mean 'status'?)", or `otherwise` when no known word is similar to a word that the user mistyped.
std::string did_you_mean(std::string_view typed, std::span<const std::string> known, std::string_view otherwise);

}  // namespace rlock::cli
