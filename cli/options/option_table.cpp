// SPDX-License-Identifier: Apache-2.0
#include "cli/options/option_table.h"

#include "base/duration.h"

#include <algorithm>

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

}  // namespace rlock::cli
