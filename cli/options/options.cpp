// SPDX-License-Identifier: Apache-2.0
#include "cli/options/options.h"

#include "base/duration.h"
#include "base/secrets.h"

#include <algorithm>
#include <charconv>

namespace rlock::cli {
namespace {

constexpr std::size_t longest_quoted = 200;  // bytes of a word that an error quotes

std::string good_text(const DurationRule& rule)
{
  const auto* const time = std::get_if<Millis>(&rule.good);
  return time != nullptr ? show(*time) : std::string(std::get<std::string_view>(rule.good));
}

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
  const std::string advice = "try " + option + " " + good_text(rule);

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

}  // namespace rlock::cli
