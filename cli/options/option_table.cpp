// SPDX-License-Identifier: Apache-2.0
#include "cli/options/option_table.h"

#include "base/duration.h"
#include "base/secrets.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace rlock::cli {
namespace {

constexpr std::size_t usual_count = 48;  // options of a verb: room for them is made once

// Calls `use` for each name of "-w,--wait" until it returns true.
template <typename Use>
bool any_name(std::string_view names, Use use)
{
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    if (use(name)) {
      return true;
    }
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
  return false;
}

enum class Form { short_form, long_form };

std::vector<std::string_view> names_of(std::string_view names, Form form)
{
  std::vector<std::string_view> found;
  any_name(names, [&](std::string_view name) {
    if (name.starts_with("--") == (form == Form::long_form)) {
      found.push_back(name);
    }
    return false;
  });
  return found;
}

}  // namespace

std::string HelpText::str() const
{
  struct More {
    const char* text;
    std::string operator()(std::monostate) const { return text; }
    std::string operator()(Millis value) const { return std::string(text) + " (" + show(value) + ")"; }
    std::string operator()(ExitCode code) const
    {
      return std::string(text) + " (" + std::to_string(static_cast<int>(code)) + ")";
    }
    std::string operator()(const char* more) const { return std::string(text) + "; " + more; }
    std::string operator()(std::string (*make)()) const { return make(); }
  };
  return std::visit(More{m_text}, m_more);
}

bool Option::has_name(std::string_view name) const
{
  return any_name(names, [name](std::string_view each) { return each == name; });
}

std::vector<std::string_view> Option::short_names() const { return names_of(names, Form::short_form); }

std::vector<std::string_view> Option::long_names() const { return names_of(names, Form::long_form); }

void OptionTable::add(Option option)
{
  m_options.reserve(usual_count);
  m_options.push_back(std::move(option));
}

const Option* OptionTable::find(std::string_view name) const
{
  const auto found = std::ranges::find_if(m_options, [name](const Option& option) { return option.has_name(name); });
  return found == m_options.end() ? nullptr : &*found;
}

std::vector<std::string_view> OptionTable::groups() const
{
  std::vector<std::string_view> groups;
  for (const Option& option : m_options) {
    if (std::ranges::find(groups, option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  return groups;
}

std::vector<std::string> OptionTable::long_names() const
{
  std::vector<std::string> names;
  for (const Option& option : m_options) {
    for (const std::string_view name : option.long_names()) {
      names.emplace_back(name);
    }
  }
  return names;
}

namespace {

constexpr std::size_t longest_quoted = 200;  // bytes of a word that an error quotes

}  // namespace

Options Options::in(std::string_view group) const
{
  Options same = *this;
  same.m_group = group;
  return same;
}

void Options::text(const char* names, Text& target, const char* value_name, const HelpText& help)
{
  m_table.add({.names = names, .value_name = value_name, .group = m_group, .help = help, .target = &target});
}

void Options::texts(const char* names, std::vector<std::string>& target, const char* value_name, const HelpText& help)
{
  m_table.add({.names = names, .value_name = value_name, .group = m_group, .help = help, .target = &target});
}

void Options::flag(const char* names, bool& target, const HelpText& help)
{
  m_table.add({.names = names, .value_name = {}, .group = m_group, .help = help, .target = &target});
}

void Options::each(const char* names, std::string_view value_name, const std::function<void()>& seen,
                   const HelpText& help)
{
  m_table.add({.names = names, .value_name = value_name, .group = m_group, .help = help, .target = seen});
}

std::string shown_word(std::string_view word) { return shortened(printable(without_secrets(word)), longest_quoted); }

Error usage(std::string text) { return {ErrorCode::usage, std::move(text)}; }

Result<Done> first_error(std::initializer_list<Result<Done>> results)
{
  const auto* const failed =
      std::find_if_not(results.begin(), results.end(), [](const auto& each) { return bool(each); });
  return failed == results.end() ? Result(Done{}) : *failed;
}

Result<Millis> resolve_duration(std::string_view raw, const DurationRule& rule)
{
  const std::string option(rule.option);
  const std::string quoted = option + ": '" + shown_word(raw) + "' is ";
  const std::string advice = "try " + option + " " + std::string(rule.good);

  const std::string too_long = quoted + "too long, at most " + show(rule.most) + " (" + advice + ")";
  const auto read = read_duration(raw);
  if (const auto* flaw = std::get_if<DurationFlaw>(&read)) {
    return usage(*flaw == DurationFlaw::too_long ? too_long : quoted + "not a duration (" + advice + ")");
  }
  const Millis duration = std::get<Millis>(read);
  if (duration < rule.least) {
    return usage(quoted + "too short, at least " + show(rule.least) + " (" + advice + ")");
  }
  if (duration > rule.most) {
    return usage(too_long);
  }
  return duration;
}

Result<int> resolve_number(std::string_view raw, const NumberRule& rule)
{
  int number = 0;
  const char* const end = raw.data() + raw.size();
  const auto [stopped, error] = std::from_chars(raw.data(), end, number);
  if (error != std::errc{} || stopped != end || number < rule.least || number > rule.most) {
    const std::string option(rule.option);
    return usage(option + ": '" + shown_word(raw) + "' is not a number from " + std::to_string(rule.least) + " to " +
                 std::to_string(rule.most) + " (try " + option + " " + std::string(rule.good) + ")");
  }
  return number;
}

namespace {

// The Levenshtein distance, one row at a time; two neighbours that are swapped count as one error.
std::size_t distance(std::string_view from, std::string_view to)
{
  std::vector<std::size_t> before(to.size() + 1);
  std::vector<std::size_t> last(to.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::vector<std::size_t> row{i + 1};
    for (std::size_t j = 0; j < to.size(); ++j) {
      row.push_back(std::min({last[j] + (from[i] == to[j] ? 0 : 1), row[j] + 1, last[j + 1] + 1}));
      if (i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j]) {
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
      }
    }
    before = std::exchange(last, std::move(row));
  }
  return last.back();
}

std::string_view letters(std::string_view word)
{
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

// The most similar word: up to a third of the letters may be wrong, but not the first letter of a short word.
std::string_view nearest(std::string_view typed, std::span<const std::string> known)
{
  constexpr std::size_t longest = 40;  // a longer word is no typing error, and the distance takes quadratic time
  const std::string_view slip = letters(typed);
  const std::size_t allowed = slip.size() > longest ? 0 : std::min<std::size_t>(slip.size() / 3, 3);
  std::string_view best;
  std::size_t least = allowed + 1;
  for (const std::string& word : known) {
    const bool is_likely = allowed > 1 || (allowed == 1 && letters(word).starts_with(slip.front()));
    const std::size_t far = is_likely ? distance(slip, letters(word)) : least;
    if (far < least) {
      least = far;
      best = word;
    }
  }
  return best;
}

// The only word that begins with `typed`.
std::string_view completed(std::string_view typed, std::span<const std::string> known)
{
  std::string_view found;
  for (const std::string& word : known) {
    if (letters(typed).size() >= 2 && word.starts_with(typed)) {
      if (!found.empty()) {
        return {};
      }
      found = word;
    }
  }
  return found;
}

}  // namespace

std::string did_you_mean(std::string_view typed, std::span<const std::string> known, std::string_view otherwise)
{
  const std::string_view near = nearest(typed, known);
  const std::string_view best = near.empty() ? completed(typed, known) : near;
  return best.empty() ? std::string(otherwise) : " (did you mean '" + std::string(best) + "'?)";
}

}  // namespace rlock::cli
