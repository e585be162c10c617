// SPDX-License-Identifier: Apache-2.0
#include "cli/options/split_argv.h"

#include "base/text.h"
#include "cli/help/suggest.h"
#include "cli/options/options.h"

#include <algorithm>
#include <iterator>

namespace rlock::cli {
namespace {

class ArgvSplitter {
 public:
  ArgvSplitter(const OptionTable& known, std::span<const std::string> args, Operands operands)
      : m_known(known),
        m_rest(args),
        m_operand_ends_options(operands == Operands::command || operands == Operands::getopt),
        m_may_be_shortened(operands == Operands::getopt)
  {
  }

  Result<SplitArgv> split()
  {
    while (!m_rest.empty()) {
      const std::string& word = m_rest.front();
      const bool is_option = word.size() > 1 && word.front() == '-';
      if (word == "--" || (!is_option && m_operand_ends_options)) {
        m_rest = m_rest.subspan(word == "--" ? 1 : 0);
        break;
      }
      m_rest = m_rest.subspan(1);
      if (!is_option) {
        m_split.operands.push_back(word);
        continue;
      }
      const Result<Done> taken = word[1] == '-' ? take_long(word) : take_short(word);
      if (!taken) {
        return taken.error();
      }
    }
    std::copy(m_rest.begin(), m_rest.end(), std::back_inserter(m_split.operands));
    return std::move(m_split);
  }

 private:
  Result<Done> take_long(const std::string& word)
  {
    const std::size_t equals = word.find('=');
    const std::string name = expanded(word.substr(0, equals));
    const Option* option = m_known.find(name);
    if (option == nullptr) {
      return unknown(name);
    }
    if (equals == std::string::npos) {
      return option->takes_value() ? take_next(name, *option) : take(name);
    }
    if (!option->takes_value()) {
      return usage(name + " takes no value");
    }
    return take(name, word.substr(equals + 1));
  }

  // The only option that begins with `prefix`; `prefix` itself when there is none or more than one.
  [[nodiscard]] std::string expanded(const std::string& prefix) const
  {
    if (!m_may_be_shortened || m_known.find(prefix) != nullptr) {
      return prefix;
    }
    const Option* match = nullptr;
    std::string found = prefix;
    for (const Option& option : m_known.all()) {
      for (const std::string_view name : option.long_names()) {
        if (!name.starts_with(prefix)) {
          continue;
        }
        if (match != nullptr && match != &option) {
          return prefix;
        }
        match = &option;
        found = name;
      }
    }
    return found;
  }

  // -nq is -n -q, and -nw10 is -n -w 10.
  Result<Done> take_short(const std::string& word)
  {
    for (std::size_t at = 1; at < word.size(); ++at) {
      const std::string name{'-', word[at]};
      const Option* option = m_known.find(name);
      if (option == nullptr) {
        return unknown(at == 1 ? word : name);
      }
      if (option->takes_value()) {
        return at + 1 < word.size() ? take(name, word.substr(at + 1)) : take_next(name, *option);
      }
      m_split.options.push_back(name);
    }
    return Done{};
  }

  Result<Done> take(const std::string& name)
  {
    m_split.options.push_back(name);
    return Done{};
  }

  Result<Done> take(const std::string& name, std::string value)
  {
    m_split.options.push_back(name);
    m_split.options.push_back(std::move(value));
    return Done{};
  }

  Result<Done> take_next(const std::string& name, const Option& option)
  {
    if (m_rest.empty()) {
      return usage(name + " needs a value: " + name + " " + std::string(option.value_name));
    }
    const std::string& value = m_rest.front();
    m_rest = m_rest.subspan(1);
    return take(name, value);
  }

  Error unknown(const std::string& name) const
  {
    const std::string otherwise = " (rlock help " + std::string(m_known.verb()) + " lists them)";
    return usage("unknown option '" + shown_word(name) + "'" + did_you_mean(name, m_known.long_names(), otherwise));
  }

  const OptionTable& m_known;
  std::span<const std::string> m_rest;
  const bool m_operand_ends_options;
  const bool m_may_be_shortened;
  SplitArgv m_split;
};

// One occurrence of an option.
struct Fill {
  const std::string& value;
  void operator()(Text* target) const { *target = value; }
  void operator()(std::vector<std::string>* target) const { target->push_back(value); }
  void operator()(bool* target) const { *target = true; }
  void operator()(const std::function<void()>& seen) const { seen(); }
};

}  // namespace

Result<SplitArgv> split_argv(const OptionTable& known, std::span<const std::string> args, Operands operands)
{
  return ArgvSplitter(known, args, operands).split();
}

void fill_targets(const OptionTable& known, const SplitArgv& split)
{
  for (auto word = split.options.begin(); word != split.options.end(); ++word) {
    const Option& option = *known.find(*word);
    std::visit(Fill{option.takes_value() ? *++word : std::string()}, option.target);
  }
}

}  // namespace rlock::cli
