// SPDX-License-Identifier: Apache-2.0
#include "cli/options/option_table.h"

#include "base/duration.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <numeric>

namespace rlock::cli {
namespace {

constexpr std::size_t usual_count = 48;      // options of a verb: room for them is made once
constexpr std::size_t longest_quoted = 200;  // bytes of a word that an error quotes

// Calls `use` for each part of "-w,--wait" until it returns true.
template <typename Use>
bool any_part(std::string_view text, char separator, Use use)
{
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    if (use(part)) {
      return true;
    }
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return false;
}

std::vector<std::string_view> names_of(std::string_view names, bool is_long)
{
  std::vector<std::string_view> found;
  any_part(names, ',', [&](std::string_view name) {
    if (name.starts_with("--") == is_long) {
      found.push_back(name);
    }
    return false;
  });
  return found;
}

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
  return any_part(names, ',', [name](std::string_view each) { return each == name; });
}

bool have_common_name(std::string_view names, std::string_view other_names)
{
  return any_part(names, ',', [&](std::string_view name) { return Option{.names = other_names}.has_name(name); });
}

std::string Option::name() const
{
  const auto all_long = long_names();
  return std::string(all_long.empty() ? short_names().front() : all_long.front());
}

std::vector<std::string_view> Option::short_names() const { return names_of(names, false); }

std::vector<std::string_view> Option::long_names() const { return names_of(names, true); }

void OptionTable::add(const Entry& entry)
{
  m_entries.reserve(usual_count);
  m_entries.push_back(entry);
}

const Option* OptionTable::find(std::string_view name) const
{
  const auto found = std::ranges::find_if(m_entries, [&](const Entry& entry) { return entry.option->has_name(name); });
  return found == m_entries.end() ? nullptr : found->option;
}

std::vector<std::string_view> OptionTable::groups() const
{
  std::vector<std::string_view> groups;
  for (const Entry& entry : m_entries) {
    if (std::ranges::find(groups, entry.group) == groups.end()) {
      groups.push_back(entry.group);
    }
  }
  return groups;
}

std::vector<const Option*> OptionTable::in(std::string_view group) const
{
  std::vector<const Option*> options;
  for (const Entry& entry : m_entries) {
    if (entry.group == group) {
      options.push_back(entry.option);
    }
  }
  return options;
}

std::vector<std::string> OptionTable::long_names() const
{
  std::vector<std::string> names;
  for (const Entry& entry : m_entries) {
    for (const std::string_view name : entry.option->long_names()) {
      names.emplace_back(name);
    }
  }
  return names;
}

Result<Done> OptionTable::apply(std::span<const Given> options) const
{
  Result<Done> all = Done{};
  for (auto given = options.begin(); given != options.end(); ++given) {
    const auto is_same = [&](const Given& other) { return other.option == given->option; };
    const auto entry = std::ranges::find(m_entries, given->option, &Entry::option);
    if (entry == m_entries.end() || (!given->option->repeats && std::any_of(given + 1, options.end(), is_same))) {
      continue;
    }
    const Result<Done> done = entry->apply(*entry, *given);
    all = all ? done : all;
  }
  return all;
}

Result<Done> OptionTable::apply_by_name(std::span<const Given> options) const
{
  std::vector<Given> known;
  for (const Given& given : options) {
    if (const Option* const option = find(given.option->name())) {
      known.push_back({.option = option, .value = given.value});
    }
  }
  return apply(known);
}

Result<Done> read_value(const Given&, bool& target)
{
  target = true;
  return Done{};
}

Result<Done> read_value(const Given& given, std::string& target)
{
  target = given.value;
  return Done{};
}

Result<Done> read_value(const Given& given, std::vector<std::string>& target)
{
  target.push_back(given.value);
  return Done{};
}

Result<Done> read_value(const Given& given, Millis& target)
{
  return assign(duration_in(std::get<Durations>(given.option->range), given.value, given.option->name()), target);
}

Result<Done> read_value(const Given& given, int& target)
{
  const auto& range = std::get<Numbers>(given.option->range);
  const char* const end = given.value.data() + given.value.size();
  const auto [stopped, error] = std::from_chars(given.value.data(), end, target);
  if (error != std::errc{} || stopped != end || target < range.least || target > range.most) {
    const std::string option = given.option->name();
    return usage(option + ": '" + shown_word(given.value) + "' is not a number from " + std::to_string(range.least) +
                 " to " + std::to_string(range.most) + " (try " + option + " " + std::string(range.good) + ")");
  }
  return Done{};
}

Result<Done> read_value(const Given& given, unsigned& target)
{
  int number = 0;
  Result<Done> done = read_value(given, number);
  target = static_cast<unsigned>(number);
  return done;
}

Result<std::size_t> index_of(std::string_view word, std::string_view words, std::string_view option)
{
  std::string listed;
  std::size_t index = 0;
  const bool found = any_part(words, '|', [&](std::string_view each) {
    if (each == word) {
      return true;
    }
    ++index;
    listed += (listed.empty() ? "" : ", ") + std::string(each);
    return false;
  });
  return found ? Result(index)
               : Result<std::size_t>(usage(std::string(option) + ": '" + shown_word(word) + "' is none of " + listed));
}

std::string shown_word(std::string_view word) { return shortened(printable(without_secrets(word)), longest_quoted); }

Error usage(std::string text) { return {ErrorCode::usage, std::move(text)}; }

Result<Millis> duration_in(const Durations& range, std::string_view text, const std::string& option)
{
  const auto wrong = [&](const std::string& what) {
    return usage(option + ": '" + shown_word(text) + "' is " + what + " (try " + option + " " +
                 std::string(range.good) + ")");
  };
  const auto read = read_duration(text);
  const auto* const duration = std::get_if<Millis>(&read);
  if (duration == nullptr && std::get<DurationFlaw>(read) == DurationFlaw::malformed) {
    return wrong("not a duration");
  }
  if (duration == nullptr || *duration > range.most) {
    return wrong("too long, at most " + show(range.most));
  }
  return *duration < range.least ? wrong("too short, at least " + show(range.least)) : Result(*duration);
}

bool is_no_time(std::string_view value) { return parse_duration(value) == Millis{0}; }

std::string did_you_mean(std::string_view typed, std::span<const std::string> known, std::string_view otherwise)
{
  const std::string_view near = nearest(typed, known);
  const std::string_view best = near.empty() ? completed(typed, known) : near;
  return best.empty() ? std::string(otherwise) : " (did you mean '" + std::string(best) + "'?)";
}

}  // namespace rlock::cli
