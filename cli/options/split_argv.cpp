// SPDX-License-Identifier: Apache-2.0
//
// argv is split before CLI11 parses the options, because CLI11 looks for options after the first operand, takes the next word
// for the value of `--key=`, accepts `--quiet=no`, and words its errors differently.
#include "cli/options/split_argv.h"

#include "base/text.h"
#include "cli/help/suggest.h"
#include "cli/options/options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>

namespace rlock::cli {
namespace {

class ArgvSplitter {
 public:
  ArgvSplitter(const CLI::App& app, std::span<const std::string> args, Operands operands)
      : m_app(app),
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
    const CLI::Option* option = m_app.get_option_no_throw(name);
    if (option == nullptr) {
      return unknown(name);
    }
    if (equals == std::string::npos) {
      return takes_value(*option) ? take_next(name, *option) : take(name);
    }
    if (!takes_value(*option)) {
      return usage(name + " takes no value");
    }
    return take(name, word.substr(equals + 1));
  }

  // The only option that begins with `prefix`; `prefix` itself when there is none or more than one.
  [[nodiscard]] std::string expanded(const std::string& prefix) const
  {
    if (!m_may_be_shortened || m_app.get_option_no_throw(prefix) != nullptr) {
      return prefix;
    }
    const CLI::Option* match = nullptr;
    std::string found = prefix;
    for (const CLI::Option* option : m_app.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (!("--" + name).starts_with(prefix)) {
          continue;
        }
        if (match != nullptr && match != option) {
          return prefix;
        }
        match = option;
        found = "--" + name;
      }
    }
    return found;
  }

  // -nq is -n -q, and -nw10 is -n -w 10.
  Result<Done> take_short(const std::string& word)
  {
    for (std::size_t at = 1; at < word.size(); ++at) {
      const std::string name{'-', word[at]};
      const CLI::Option* option = m_app.get_option_no_throw(name);
      if (option == nullptr) {
        return unknown(at == 1 ? word : name);
      }
      if (takes_value(*option)) {
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

  Result<Done> take_next(const std::string& name, const CLI::Option& option)
  {
    if (m_rest.empty()) {
      return usage(name + " needs a value: " + name + " " + option.get_type_name());
    }
    const std::string& value = m_rest.front();
    m_rest = m_rest.subspan(1);
    return take(name, value);
  }

  Error unknown(const std::string& name) const
  {
    std::vector<std::string> known;
    for (const CLI::Option* option : m_app.get_options()) {
      for (const std::string& each : option->get_lnames()) {
        known.push_back("--" + each);
      }
    }
    const std::string otherwise = " (rlock help " + m_app.get_name() + " lists them)";
    return usage("unknown option '" + shown_word(name) + "'" + did_you_mean(name, known, otherwise));
  }

  static bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

  const CLI::App& m_app;
  std::span<const std::string> m_rest;
  const bool m_operand_ends_options;
  const bool m_may_be_shortened;
  SplitArgv m_split;
};

}  // namespace

Result<SplitArgv> split_argv(const CLI::App& app, std::span<const std::string> args, Operands operands)
{
  return ArgvSplitter(app, args, operands).split();
}

Result<Done> parse(CLI::App& app, const SplitArgv& split)
{
  // CLI11 reads the words from the end.
  std::vector<std::string> last_first(split.options.rbegin(), split.options.rend());
  try {
    app.parse(last_first);
  } catch (const CLI::ParseError& error) {
    return usage(printable(error.what()));
  }
  return Done{};
}

}  // namespace rlock::cli
