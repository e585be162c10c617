// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include "base/duration.h"

#include <CLI/CLI.hpp>

#include <charconv>

namespace rlock::cli {
namespace {

// CLI11 would take "[a,b]" for a list and refuse what is given twice; for us all is text.
CLI::Option* plain(CLI::Option* option, const char* value_name)
{
  return option->type_name(value_name)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
}

}  // namespace

CLI::Option* add_text(CLI::App& app, const char* names, Text& target, const char* value_name,
                      const char* help)
{
  const auto assign = [&target](const CLI::results_t& typed) {
    target = typed.back();
    return true;
  };
  return plain(app.add_option(names, CLI::callback_t(assign), help), value_name);
}

CLI::Option* add_texts(CLI::App& app, const char* names, std::vector<std::string>& target,
                       const char* value_name, const char* help)
{
  const auto assign = [&target](const CLI::results_t& typed) {
    target = typed;
    return true;
  };
  return plain(app.add_option(names, CLI::callback_t(assign), help), value_name);
}

CLI::Option* add_flag(CLI::App& app, const char* names, bool& target, const char* help)
{
  const auto assign = [&target](std::int64_t) { target = true; };
  return app.add_flag_function(names, assign, help);
}

Error usage(std::string text) { return {Fault::usage, std::move(text)}; }

Result<Millis> meant_duration(std::string_view typed, const DurationRule& rule)
{
  const std::string option(rule.option);
  const std::string quoted = option + ": '" + printable(typed) + "' is ";
  const std::string advice = "try " + option + " " + std::string(rule.good);

  const std::optional<Millis> duration = parse_duration(typed);
  if (!duration) {
    return usage(quoted + "not a duration (" + advice + ")");
  }
  if (*duration < rule.least) {
    return usage(quoted + "too short, at least " + show(rule.least) + " (" + advice + ")");
  }
  if (*duration > rule.most) {
    return usage(quoted + "too long, at most " + show(rule.most) + " (" + advice + ")");
  }
  return *duration;
}

Result<int> meant_number(std::string_view typed, const NumberRule& rule)
{
  int number = 0;
  const char* const end = typed.data() + typed.size();
  const auto [stopped, error] = std::from_chars(typed.data(), end, number);
  if (error != std::errc{} || stopped != end || number < rule.least || number > rule.most) {
    const std::string option(rule.option);
    return usage(option + ": '" + printable(typed) + "' is not a number from " +
                 std::to_string(rule.least) + " to " + std::to_string(rule.most) + " (try " +
                 option + " " + std::string(rule.good) + ")");
  }
  return number;
}

}  // namespace rlock::cli
