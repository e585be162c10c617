// SPDX-License-Identifier: Apache-2.0
#include "cli/options/options.h"

#include "base/duration.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>

namespace rlock::cli {
namespace {

constexpr std::size_t longest_quoted = 200;  // bytes of a word that an error quotes

// By default CLI11 reads "[a,b]" as a list and refuses an option that is given twice. Here every value is text.
CLI::Option* plain(CLI::Option* option, const char* value_name)
{
  return option->type_name(value_name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
}

// Whether the argument may be the option: "--wait", "--wait=10s"; a short option may stand in a cluster: "-nw10".
bool is_in(std::string_view name, std::string_view arg)
{
  if (name.starts_with("--")) {
    return arg.starts_with(name) && (arg.size() == name.size() || arg[name.size()] == '=');
  }
  return arg.starts_with('-') && !arg.starts_with("--") && arg.find(name[1]) != std::string_view::npos;
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

Options Options::in(const char* group) const
{
  Options same = *this;
  same.m_group = group;
  return same;
}

bool Options::may_occur(std::string_view names) const
{
  if (!m_args) {
    return true;
  }
  for (bool more = true; more;) {
    const auto comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    if (std::any_of(m_args->begin(), m_args->end(), [name](const std::string& arg) { return is_in(name, arg); })) {
      return true;
    }
    more = comma != std::string_view::npos;
    names.remove_prefix(more ? comma + 1 : names.size());
  }
  return false;
}

void Options::show(CLI::Option* option) const
{
  if (m_group != nullptr) {
    option->group(m_group);
  }
}

void Options::text(const char* names, Text& target, const char* value_name, const HelpText& help)
{
  if (may_occur(names)) {
    const auto assign = [&target](const CLI::results_t& values) {
      target = values.back();
      return true;
    };
    show(plain(m_app->add_option(names, CLI::callback_t(assign), help.str()), value_name));
  }
}

void Options::texts(const char* names, std::vector<std::string>& target, const char* value_name, const HelpText& help)
{
  if (may_occur(names)) {
    const auto assign = [&target](const CLI::results_t& values) {
      target = values;
      return true;
    };
    show(plain(m_app->add_option(names, CLI::callback_t(assign), help.str()), value_name));
  }
}

void Options::flag(const char* names, bool& target, const HelpText& help)
{
  if (may_occur(names)) {
    const auto assign = [&target](std::int64_t) { target = true; };
    show(m_app->add_flag_function(names, assign, help.str()));
  }
}

void Options::each(const char* names, const char* value_name, const std::function<void()>& seen, const HelpText& help)
{
  if (!may_occur(names)) {
    return;
  }
  if (value_name == nullptr) {
    show(m_app
             ->add_flag_function(
                 names, [seen](std::int64_t) { seen(); }, help.str())
             ->trigger_on_parse());
    return;
  }
  const auto note = [seen](const CLI::results_t&) {
    seen();
    return true;
  };
  show(m_app->add_option(names, CLI::callback_t(note), help.str())->type_name(value_name)->allow_extra_args(false));
}

std::string shown_word(std::string_view word) { return shortened(printable(word), longest_quoted); }

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

}  // namespace rlock::cli
