// SPDX-License-Identifier: Apache-2.0
// Several locks as one: all of them or none, in whatever order other callers ask.
#include "support/crowd.h"
#include "support/integration.h"
#include "support/script.h"
#include "support/several_keys_fixture.h"

#include <regex>

using namespace rlock::test;

namespace {

// Runs rlock on these two `times` times, in a shell; each job marks its keys and checks that they were unmarked.
std::string run_pairs(const SeveralKeysFixture& fixture, const std::string& one, const std::string& other, int times)
{
  const std::string has = fixture.path("has-");
  const std::string meal = "mkdir " + has + one + " " + has + other + " || touch " + fixture.path("quarrel") +
                           "; sleep 0.002; rmdir " + has + one + " " + has + other;
  return "for i in $(seq " + std::to_string(times) + "); do " + rlock_program().string() + " run -S '" +
         fixture.server.url() + "' -k " + one + " -k " + other + " -- sh -c '" + meal + "' || exit; done";
}

}  // namespace

TEST_SUITE_BEGIN("topology-quick");

KEYS_CASE("several keys: they need a few open files, however many they are")
{
  std::string keys;
  for (int i = 0; i < 60; ++i) {
    keys += " -k k" + std::to_string(i);
  }
  Process run({"sh", "-c",
               "ulimit -n 32; exec " + rlock_program().string() + " run -S '" + fixture.server.url() + "'" + keys +
                   " --ttl 6s -- sleep 5"});
  CHECK_MESSAGE(run.wait(60s) == success, run.err());  // it may have said that a server answered late
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("topology");

KEYS_CASE("several keys: five philosophers eat their fill, and never two neighbours at once")
{
  std::vector<Process> philosophers;
  for (int i = 0; i < 5; ++i) {
    const std::string right = "f" + std::to_string(i);
    const std::string left = "f" + std::to_string((i + 1) % 5);
    philosophers.emplace_back(Words{"sh", "-c", run_pairs(fixture, right, left, crowd_of(100))});
  }
  for (Process& philosopher : philosophers) {
    CHECK(philosopher.wait(60s) == success);
    for (const std::string& line : lines_of(philosopher.err())) {
      CHECK_MESSAGE(line.starts_with("rlock: waiting for "), line);  // where the machine takes long
    }
  }
  CHECK_FALSE(std::filesystem::exists(fixture.dir / "quarrel"));
  for (int i = 0; i < 5; ++i) {
    CHECK(fixture.is_free("f" + std::to_string(i)));
    CHECK(fixture.in_line("f" + std::to_string(i)) == 0);
  }
}

KEYS_CASE("several keys: the job is told of all, the first in order by name, and the same twice is one" *
          doctest::test_suite("topology-quick"))
{
  Process job = fixture.run(
      {"-k", "c", "-k", "a", "-k", "b", "-k", "a"},
      {"sh", "-c", "env > " + fixture.path("env") + "; until [ -e " + fixture.path("go") + " ]; do sleep 0.02; done"});
  fixture.wait_for("c");
  const std::string token = fixture.owner("a");
  CHECK(fixture.owner("b") == token);
  CHECK(fixture.owner("c") == token);
  CHECK(as_text(fixture.server.command({"HGET", "a", token})) == "1");
  wait_until([&] { return has(fixture.file("env"), "RLOCK_FENCE"); }, "the job wrote it");
  const std::string env = "\n" + fixture.file("env");
  expect_has(env, {"\nRLOCK_KEY=a\n", "\nRLOCK_TOKEN=" + token + "\n",
                   "\nRLOCK_FENCE=" + as_text(fixture.server.command({"GET", "redisson_lock_token:{a}"})) + "\n",
                   "\nRLOCK_HELD=" + token + " a\n" + token + " b\n" + token + " c\n"});
  std::ofstream(fixture.dir / "go");
  expect_end(job, success, {err_is("")});
  for (const char* key : {"a", "b", "c"}) {
    CHECK(fixture.is_free(key));
  }
}

KEYS_CASE("several keys: a busy one leaves the others free" * doctest::test_suite("topology-quick"))
{
  fixture.hold_as_foreign("b");
  for (const Words& options :
       {Words{"-n", "-k", "a", "-k", "b"}, Words{"-w", "300ms", "-k", "c", "-k", "b", "-k", "a"}}) {
    Process busy = fixture.run(options, {"touch", fixture.path("ran")});
    expect_end(busy, exited(75), {err_has("b is busy")});
    CHECK(fixture.is_free("a"));
    CHECK(fixture.is_free("c"));
    CHECK(fixture.in_line("b") == 0);
  }
  CHECK(fixture.file("ran") == "");
  CHECK_FALSE(std::filesystem::exists(fixture.dir / "ran"));
}

KEYS_CASE("several keys: what is no lock leaves the others free")
{
  fixture.server.command({"SET", "b", "x"});
  Process job = fixture.run({"-k", "a", "-k", "b"}, {"true"});
  CHECK(job.wait() == exited(78));
  CHECK(fixture.is_free("a"));
}

TEST_CASE("several keys: the lower one is kept for as long as the higher one is waited for")
{
  skip_on_quorum("a quorum has no queue");
  const SeveralKeysFixture fixture;
  fixture.hold_as_foreign("b");
  Process job = fixture.run({"-k", "a", "-k", "b", "--ttl", "3s"}, {"touch", fixture.path("ran")});
  fixture.wait_for("a");
  const std::string owner = fixture.owner("a");
  for (int i = 0; i < 350; ++i) {
    CHECK(fixture.pttl("a") > 0);
    CHECK(fixture.owner("a") == owner);
    std::this_thread::sleep_for(20ms);
  }
  CHECK(fixture.in_line("b") == 1);
  fixture.release_as_foreign("b");
  CHECK(job.wait() == success);
  CHECK(std::filesystem::exists(fixture.dir / "ran"));
  CHECK(fixture.is_free("a"));
  CHECK(fixture.is_free("b"));
}

KEYS_CASE("several keys: all are renewed while the job runs")
{
  Process job = fixture.run({"-k", "a", "-k", "b", "-k", "c", "--ttl", "3s"}, {"sleep", "7"});
  fixture.wait_for("c");
  while (job.running()) {
    for (const char* key : {"a", "b", "c"}) {
      const std::int64_t left = fixture.pttl(key);
      CHECK((left > 100 || !job.running() || fixture.is_free("c")));  // c is released first
    }
    std::this_thread::sleep_for(20ms);
  }
  expect_end(job, success, {err_is("")});
}

KEYS_CASE("several keys: a fixed lease counts from when all are taken")
{
  fixture.hold_as_foreign("b");
  Process job = fixture.run({"-k", "a", "-k", "b", "--lease", "3s"}, {"sleep", "0.3"});
  fixture.wait_for_line("b");
  std::this_thread::sleep_for(3500ms);  // longer than the lease of a
  fixture.release_as_foreign("b");
  CHECK(job.wait() == success);

  const auto from = std::chrono::steady_clock::now();
  Process late = fixture.run({"-k", "a", "-k", "b", "--lease", "2s"}, {"sleep", "60"});
  CHECK(late.wait() == exited(124));
  CHECK(std::chrono::steady_clock::now() - from < 20s);
  CHECK(has(late.err(), "its lease of a, b was over"));
}

KEYS_CASE("several keys: --min-hold keeps all of them")
{
  CHECK(fixture.run({"-k", "a", "-k", "b", "--min-hold", "1s"}, {"true"}).wait() == success);
  for (const char* key : {"a", "b"}) {
    CHECK(fixture.pttl(key) > 0);
    CHECK(fixture.pttl(key) <= 1000);
  }
  CHECK(fixture.run({"-k", "b", "-k", "a"}, {"true"}).wait(5s) == success);
}

KEYS_CASE("several keys: some of them held by an ancestor")
{
  const std::string job =
      "env > " + fixture.path("held") + "; until [ -e " + fixture.path("go") + " ]; do sleep 0.02; done";
  Process outer = fixture.run({"-k", "b"}, rlock_argv({"run", "-S", fixture.server.url(), "-k", "a", "-k", "b", "-k",
                                                       "c", "--", "sh", "-c", job}));
  wait_until([&] { return has(fixture.file("held"), " c\n"); }, "all are taken");
  const std::string ancestor = fixture.owner("b");
  const std::string new_owner = fixture.owner("a");
  CHECK(new_owner != ancestor);
  CHECK(fixture.owner("c") == new_owner);
  CHECK(as_text(fixture.server.command({"HGET", "b", ancestor})) == "2");
  const std::regex held("RLOCK_HELD=" + ancestor + " b\n" + new_owner + " a\n" + ancestor + "/[^ \n]+ b\n" + new_owner +
                        " c\n");
  CHECK(std::regex_search(fixture.file("held"), held));
  std::ofstream(fixture.dir / "go");
  CHECK(outer.wait() == success);
  for (const char* key : {"a", "b", "c"}) {
    CHECK(fixture.is_free(key));
  }
}

TEST_SUITE_END();
