// SPDX-License-Identifier: Apache-2.0
// The variables of rlock: those that an outer rlock set, and those that `acquire --export` prints. Input: a line with a key,
// a line with a token, a line with RLOCK_SERVER; and the value of RLOCK_HELD.
#include "cli/options/server.h"
#include "cli/verbs/acquire.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"
#include "run/environment.h"

namespace rlock::test {
namespace {

// The value of the quoted word that begins a text, as a POSIX shell reads it; the word is removed.
std::string take_word(std::string_view& text)
{
  std::string value;
  while (text.starts_with('\'') || text.starts_with("\\'")) {
    const bool is_quoted = text.front() == '\'';
    const std::size_t end = is_quoted ? text.find('\'', 1) : 2;
    promise(end != std::string_view::npos, "export: a shell can read it", text);
    value += text.substr(1, end - 1);
    text.remove_prefix(is_quoted ? end + 1 : 2);
  }
  return value;
}

bool take(std::string_view& text, std::string_view start)
{
  const bool has_start = text.starts_with(start);
  text.remove_prefix(has_start ? start.size() : 0);
  return has_start;
}

// The value of an assignment, of which the text and the end of the command are removed.
std::string take_value(std::string_view& text)
{
  std::string value;
  if (take(text, "\"$(printf '%s\\n'")) {
    while (take(text, " ")) {
      value += (value.empty() ? "" : "\n") + take_word(text);
    }
    promise(take(text, ")\""), "export: the lines of a value end", text);
  } else {
    value = take_word(text);
  }
  promise(take(text, ";\n"), "export: eval without quotes reads it as well", text);
  return value;
}

std::vector<std::string> evaluated(std::string_view lines)
{
  std::vector<std::string> variables;
  while (!lines.empty()) {
    promise(lines.starts_with("export RLOCK_"), "export: every line exports a variable", lines);
    lines.remove_prefix(7);
    const auto equals = lines.find('=');
    std::string assignment(lines.substr(0, equals + 1));
    lines.remove_prefix(equals + 1);
    assignment += take_value(lines);
    variables.push_back(std::move(assignment));
  }
  return variables;
}

void promise_held_locks(std::string_view held)
{
  std::string joined;
  for (const HeldLockLine& line : parse_held_locks(held)) {
    joined += std::string(line.whole) + "\n";
    promise(line.key.empty() || std::string(line.token) + " " + std::string(line.key) == line.whole,
            "a line is a token and a key");
  }
  promise(joined == held || joined == std::string(held) + "\n", "RLOCK_HELD is its lines");
}

}  // namespace

void fuzz_environment(std::string_view bytes)
{
  Input input(bytes.substr(0, bytes.find('\0')));
  const auto name = LockName::parse(input.line());
  const Hold hold = Hold::of_token(input.line());
  const std::string server(input.line());
  const std::string held(input.rest());
  promise_held_locks(held);
  const cli::Environment environment({"RLOCK_SERVER=" + server, "RLOCK_HELD=" + held});
  if (const auto endpoints = cli::resolve_endpoints({}, environment); !endpoints) {
    promise_error(endpoints.error());
  }
  if (!name) {
    return;
  }
  const std::string lines =
      cli::export_lines({.held = {{*name, hold, Millis{30'000}}}, .server = {"redis://db1"}}, 7, environment);
  const auto variables = evaluated(lines);
  promise(environment_value(variables, key_variable) == name->text(), "export: the key", lines);
  promise(environment_value(variables, token_variable) == hold.token(), "export: the token", lines);
  const bool is_token = hold.token().find_first_of(" \n") == std::string::npos && !hold.token().empty();
  const auto owners = ancestors_with(variables, *name);
  promise(!is_token || (!owners.empty() && owners.front() == hold.owner), "a nested run finds its ancestor", lines);
}

}  // namespace rlock::test
