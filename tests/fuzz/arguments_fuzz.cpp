// SPDX-License-Identifier: Apache-2.0
// A command line, through the whole parser of its verb, without acting. Input: variables, one in a line, up to an empty line;
// then the verb and its words, one in a line.
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/parse_words.h"
#include "cli/options/passwords.h"
#include "cli/verbs/acquire.h"
#include "cli/verbs/dispatch.h"
#include "cli/verbs/flock.h"
#include "cli/verbs/force_unlock.h"
#include "cli/verbs/run.h"
#include "cli/verbs/token_lock.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"

#include <array>

namespace rlock::test {
namespace {

using namespace rlock::cli;

using Words = std::vector<std::string>;

template <typename T>
void promise_resolved(const Result<T>& result)
{
  if (!result) {
    promise_error(result.error());
    promise(result.error().code == ErrorCode::usage || result.error().code == ErrorCode::config,
            "what is wrong with options is usage or config", result.error().text);
  }
}

// Parses `args` with the options that `add` adds, and hands the operands on.
template <typename Add, typename Resolve>
void parse_and_resolve(const Verb& verb, const Words& args, const Add& add, const Resolve& resolve)
{
  OptionTable known(verb.name);
  add(known);
  const auto split = parse_words(known, args, verb.operands);
  promise_resolved(split);
  if (split) {
    promise_resolved(apply_options(known, split->options, verb.operands));
    resolve(split->operands);
  }
}

void resolve_as_run(const Words& args, const Environment& environment)
{
  RawRun raw;
  parse_and_resolve(
      run_verb, args, [&](OptionTable& options) { add_run_options(options, raw); },
      [&](const Words& operands) { promise_resolved(resolve_run(raw, operands, environment)); });
}
void resolve_as_acquire(const Words& args, const Environment& environment)
{
  RawAcquire raw;
  parse_and_resolve(
      acquire_verb, args, [&](OptionTable& options) { add_acquire_options(options, raw); },
      [&](const Words& operands) { promise_resolved(resolve_acquire(raw, operands, environment)); });
}
void resolve_as_flock(const Words& args, const Environment& environment)
{
  RawFlock raw;
  parse_and_resolve(
      flock_verb, args, [&](OptionTable& options) { add_flock_options(options, raw); },
      [&](const Words& operands) {
        if (!operands.empty()) {  // the verb refuses that before
          promise_resolved(resolve_flock(raw, operands, environment));
        }
      });
}
void resolve_as_force_unlock(const Words& args, const Environment&)
{
  RawForce raw;
  parse_and_resolve(
      force_unlock_verb, args, [&](OptionTable& options) { add_force_options(options, raw); },
      [&](const Words& operands) { promise_resolved(resolve_key(raw.keys, operands)); });
}
void resolve_as_check(const Words& args, const Environment& environment)
{
  RawTokenLock raw;
  parse_and_resolve(
      check_verb, args, [&](OptionTable& options) { add_token_lock_options(options, raw); },
      [&](const Words& operands) { promise_resolved(resolve_token_locks(raw, operands, environment)); });
}
void resolve_as_status(const Words& args, const Environment& environment)
{
  RawKeys keys;
  RawServer server;
  RawOutputFormat format;
  parse_and_resolve(
      status_verb, args,
      [&](OptionTable& options) {
        add_key_options(options, keys);
        add_server_options(options, server);
        add_output_format_options(options, format);
      },
      [&](const Words& operands) {
        promise_resolved(resolve_keys(keys, operands));
        promise_resolved(resolve_server(server, environment));
      });
}

void promise_wiped(Words words)
{
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  const Words before = words;
  wipe_passwords(argv);
  for (std::size_t i = 0; i < words.size(); ++i) {
    promise(words[i].size() == before[i].size(), "wiping a password moves no byte");
  }
}

}  // namespace

void fuzz_arguments(std::string_view bytes)
{
  // A word of argv and a variable end at a NUL byte.
  Input input(bytes.substr(0, bytes.find('\0')));
  Words variables;
  for (std::string_view line = input.line(); !line.empty(); line = input.line()) {
    variables.emplace_back(line);
  }
  const Environment environment(variables);
  const std::string_view name = input.line();
  Words args;
  while (!input.empty()) {
    args.emplace_back(input.line());
  }
  promise_wiped(args);
  const auto verb = find_verb(name);
  promise_resolved(verb);
  if (verb) {
  }
  constexpr std::array resolvers{resolve_as_run,          resolve_as_acquire, resolve_as_flock,
                                 resolve_as_force_unlock, resolve_as_check,   resolve_as_status};
  constexpr std::array<std::string_view, 6> names{"run", "acquire", "flock", "force-unlock", "check", "status"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) {
      resolvers[i](args, environment);
    }
  }
}

}  // namespace rlock::test
