// SPDX-License-Identifier: Apache-2.0
#include "cli/help.h"

#include "cli/suggest.h"
#include "cli/verbs.h"

#include <doctest/doctest.h>

#include <sstream>

namespace rlock::cli {
namespace {

bool contains(const std::string& text, std::string_view part)
{
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("help: the overview names every verb and shows its first example")
{
  const std::string text = overview();
  for (const Verb* verb : all_verbs()) {
    CHECK(contains(text, "\n  " + std::string(verb->name) + " "));
    CHECK(contains(text, verb->summary));
    CHECK(contains(text, verb->examples.front()));
  }
}

TEST_CASE("help: every verb has all its parts and fits a terminal")
{
  for (const Verb* verb : all_verbs()) {
    const std::string text = help_of(*verb);
    CAPTURE(text);
    CHECK(text.starts_with("rlock " + std::string(verb->name) + ": "));
    CHECK(contains(text, "\nUsage: rlock " + std::string(verb->name) + " "));
    CHECK(contains(text, "  -h, --help                show this and exit\n"));
    CHECK(contains(text, "\nExamples:\n  rlock " + std::string(verb->name)));
    CHECK(contains(text, "\nExit codes:\n"));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      CHECK_MESSAGE(line.size() <= 88, line);
    }
  }
}

TEST_CASE("help: the options of run are those of the contract")
{
  const std::string text = help_of(run_verb);
  for (const char* option : {
           "\n  -k, --key KEY ",
           "\n  --prefix TEXT ",
           "\n  -n, --no-wait, --nonblock, --nb\n",
           "\n  -w, --wait, --timeout DUR\n",
           "\n  -E, --conflict-exit-code N\n",
           "\n  --lease auto|DUR ",
           "\n  --ttl DUR ",
           "\n  --min-hold DUR ",
           "\n  --max-runtime DUR ",
           "\n  --signal SIG ",
           "\n  --kill-after DUR ",
           "\n  --leftovers stop|wait|leave\n",
           "\n  --on-lost stop|warn ",
           "\n  --label TEXT ",
           "\n  -q, --quiet ",
           "\n  -v, --verbose ",
           "\n  -S, --server URL ",
           "\n  --server-timeout DUR ",
           "\n  --password-file FILE ",
       }) {
    CHECK_MESSAGE(contains(text, option), option << " in\n" << text);
  }
}

TEST_CASE("help: flock has what a key can have of flock's options, and nothing else")
{
  const std::string text = help_of(flock_verb);
  for (const char* part : {
           "\nUsage: rlock flock [OPTION...] KEY (CMD [ARG...] | -c STRING)\n",
           "\n  -s, --shared ",
           "\n  -x, -e, --exclusive ",
           "\n  -u, --unlock ",
           "\n  -n, --nb, --nonblock, --nonblocking\n",
           "\n  -w, --wait, --timeout SECS\n",
           "\n  -E, --conflict-exit-code N\n",
           "\n  -o, --close ",
           "\n  --verbose ",
           "\n  -V, --version ",
       }) {
    CHECK_MESSAGE(contains(text, part), part << " in\n" << text);
  }
  CHECK_FALSE(contains(text, "fcntl"));
  CHECK_FALSE(contains(text, "no-fork"));
}

TEST_CASE("help: wait has run's patience, and says that it takes nothing")
{
  const std::string text = help_of(wait_verb);
  for (const char* part : {
           "rlock wait: wait until a lock is free, without taking it\n",
           "\n  -k, --key KEY ",
           "\n  -n, --no-wait, --nonblock, --nb\n",
           "\n  -w, --wait, --timeout DUR\n",
           "\n  -q, --quiet ",
           "\n  -S, --server URL ",
           "\n  0             it was free a moment ago",
           "\n  75            busy, and the time is over\n",
       }) {
    CHECK_MESSAGE(contains(text, part), part << " in\n" << text);
  }
  CHECK(*find_verb("wait") == &wait_verb);
}

TEST_CASE("verbs: a slip of the hand is met with a suggestion, anything else with the list")
{
  CHECK(*find_verb("run") == &run_verb);
  CHECK(find_verb("stauts").error().text == "unknown verb 'stauts' (did you mean 'status'?)");
  CHECK(find_verb("seize").error().text == "unknown verb 'seize' (rlock help lists them)");
  CHECK(find_verb("").error().text == "unknown verb '' (rlock help lists them)");
  CHECK(find_verb(std::string(100'000, 'r')).error().fault == Fault::usage);
}

}  // namespace rlock::cli
