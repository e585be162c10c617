// SPDX-License-Identifier: Apache-2.0
// rflock reads its words, ends and speaks as flock(1): each case runs on flock first, where flock offers it.
#include "support/flock_fixture.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;
const Words say_no{"echo", "no"};

}  // namespace

FLOCK_CASE("flock: 5: a number with nothing behind it is no key")
{
  Process holder = flock.hold({"-s"});
  Process script = flock.script("exec 9>>\"$LOCK\"; \"$PROGRAM\" -xn -E 123 9");
  CHECK(script.wait().code == (flock.is_rflock() ? 64 : 123));
  CHECK_FALSE(fs::exists(flock.dir() / "9"));
  flock.end(holder);
}

SERVER_CASE("flock: 5: no key comes of a number")
{
  expect_end(rflock_fixture(server).run_words({"-n", "9"}), 64, {err_has("rlock acquire")});
  CHECK(as_int(server.command({"DBSIZE"})) == 0);
}

FLOCK_CASE("flock: 10: --verbose tells how long it took and what is run, rflock on stderr")
{
  const Finished end = flock.run({"--verbose"}, {"true"});
  const std::string& said = flock.is_rflock() ? end.err : end.out;
  CAPTURE(said);
  CHECK(count(said, "\n") == (flock.is_rflock() ? 3 : 2));
  CHECK((said.find("rflock: server ") == 0) == flock.is_rflock());
  CHECK(has(said, flock.is_rflock() ? "acquired k after " : "getting lock took "));
  CHECK(has(said, flock.is_rflock() ? "running true" : "executing true"));
  CHECK((flock.is_rflock() ? end.out : end.err) == "");
  const Finished quiet = flock.run({}, {"true"});
  CHECK(quiet.out + quiet.err == "");
}

SERVER_CASE("flock: 12: what a key cannot have is refused with a word on what can be had")
{
  const FlockFixture flock = rflock_fixture(server);
  for (const Words& options : {Words{"-F"}, Words{"--no-fork"}, Words{"--fcntl"}, Words{"--start", "3"},
                               Words{"--start=3"}, Words{"--length", "7"}, Words{"--fd", "3"}}) {
    CAPTURE(options.front());
    const Finished end = flock.run(options, say_no);
    expect_end(end, 64, {out_is("")});
    const std::string option =
        options.front() == "-F" ? "--no-fork" : options.front().substr(0, options.front().find('='));
    CHECK(end.err.starts_with("rflock: " + option + ": "));
    CHECK(end.err.ends_with(")\n"));
  }
  CHECK(as_int(server.command({"DBSIZE"})) == 0);
}

FLOCK_CASE("flock: 13: the command's own status, and killed by a signal, 128 more than its number")
{
  for (const int code : {0, 1, 7, 42, 255}) {
    CHECK(flock.run({}, {"sh", "-c", "exit " + std::to_string(code)}).code == code);
  }
  for (const int signal : {SIGTERM, SIGKILL, SIGINT, SIGHUP}) {
    expect_end(flock.run({}, {"sh", "-c", "kill -" + std::to_string(signal) + " $$"}), 128 + signal, {err_is("")});
  }
}

FLOCK_CASE("flock: 14: -E takes what an exit code can be, zero too")
{
  Process holder = flock.hold({});
  for (const int code : {0, 75, 255}) {
    CHECK(flock.run({"-n", "-E", std::to_string(code)}, say_no).code == code);
  }
  for (const char* bad : {"256", "600", "-1", "x", ""}) {
    CAPTURE(bad);
    CHECK(flock.run({"-n", "-E", bad}, say_no).code == 64);
  }
  flock.end(holder);
}

FLOCK_CASE("flock: 15: what makes no sense is 64")
{
  for (const Words& words :
       {Words{}, Words{"-n"}, Words{"key"}, Words{"--no-such-option", "key", "true"}, Words{"-z", "key", "true"},
        Words{"-w", "abc", "key", "true"}, Words{"-c", "true", "key"}, Words{"-w"}}) {
    CAPTURE(words.size());
    const Finished end = flock.run_words(words);
    CHECK(end.code == 64);
    CHECK(end.err != "");
  }
  CHECK_FALSE(fs::exists(flock.dir() / "key"));
}

FLOCK_CASE("flock: 16: -c takes one word, and $SHELL reads it")
{
  const fs::path shell = flock.dir() / "shell";
  std::ofstream(shell) << "#!/bin/sh\necho \"$#: $1 $2\"\n";
  fs::permissions(shell, fs::perms::owner_all);
  ProcessOptions with_shell;
  with_shell.env["SHELL"] = shell;
  for (const char* option : {"-c", "--command"}) {
    CHECK(flock.run({}, {option, "a && b"}, with_shell).out == "2: -c a && b\n");
    CHECK(flock.run({}, {option, "echo a; exit 3"}).code == 3);
    CHECK(flock.run({}, {option}).code == 64);
    CHECK(flock.run({}, {option, "true", "b"}).code == 64);
  }
}

FLOCK_CASE("flock: 17: what comes after the key is the command's")
{
  CHECK(flock.run({}, {"-n", "true"}).code == 69);
  CHECK(flock.run({}, {"--", "true"}).code == 69);
  CHECK(flock.run({"--"}, {"true"}).code == 0);
  CHECK(flock.run({}, {"echo", "-n", "--verbose", "--", "-c", "x"}).out == "--verbose -- -c x");
}

FLOCK_CASE("flock: 18: a command that is not there, or cannot be executed, is 69")
{
  std::ofstream(flock.dir() / "plain") << "echo no\n";
  for (const std::string& command : {std::string("no-such-command-at-all"), std::string("./plain"), std::string("/")}) {
    expect_end(flock.run({}, {command}), 69, {err_has(command)});
  }
  CHECK(flock.is_free());
}

FLOCK_CASE("flock: 23: refused, it says so if asked to")
{
  Process holder = flock.hold({});
  const Finished refused = flock.run({"-n", "--verbose"}, say_no);
  CHECK(has(refused.err, flock.is_rflock() ? "k is busy, held by " : "failed to get lock"));
  const Finished late = flock.run({"-w", "0.1", "--verbose"}, say_no);
  CHECK(has(late.err, flock.is_rflock() ? "k is busy after 100ms, held by " : "timeout while waiting to get lock"));
  CHECK(flock.run({"-w", "0.1"}, say_no).err == "");
  flock.end(holder);
}

FLOCK_CASE("flock: a long option may be shortened as long as one only can be meant")
{
  CHECK(flock.run({"--exc", "--nonb", "--conf", "9"}, {"true"}).code == 0);
  CHECK(flock.run({"--ver"}, {"true"}).code == 64);  // --verbose, --version
}
