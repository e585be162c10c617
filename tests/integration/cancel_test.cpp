// SPDX-License-Identifier: Apache-2.0
// run --cancel-in-progress: the holder's job is dead before the next one begins, whatever happened to the holder.
#include "support/activity_log.h"
#include "support/guardian_of.h"
#include "support/integration.h"

using namespace rlock::test;

namespace {

constexpr Exit cancelled = exited(121);
constexpr Exit is_busy = exited(75);

// A lock "k" and the runs under it.
struct CancelFixture {
  CancelFixture() { skip_on_quorum("several servers have no queue"); }

  [[nodiscard]] Process start(const Words& options, const Words& job) const
  {
    return start_run(server.url(), joined({"-k", "k"}, options), job);
  }
  [[nodiscard]] Process cancel(Words options, const Words& job) const
  {
    options.emplace_back("--cancel-in-progress");
    return start(options, job);
  }
  // Its job runs when this returns.
  [[nodiscard]] Process hold(const std::string& name, const Words& options = {}) const
  {
    Process holder = start(options, activity.stubborn_tree(name));
    wait_until([&] { return activity.tree_beats(name); }, "the job of " + name + " runs");
    return holder;
  }
  [[nodiscard]] std::size_t in_line() const
  {
    return static_cast<std::size_t>(as_int(server.command({"ZCARD", "rlock:queue:{k}"})));
  }
  void await_line(std::size_t count) const
  {
    wait_until([&] { return in_line() == count; }, "so many wait");
  }

  RedisServer server;
  ActivityLog activity;
};

void no_overlap_after(const std::function<void(Process&)>& strike)
{
  const CancelFixture lock;
  Process holder = lock.hold("victim", {"--ttl", "3s"});
  strike(holder);
  Process next = lock.cancel({}, lock.activity.short_job("next", 60));
  CHECK(next.wait(60s) == success);
  const auto jobs = lock.activity.jobs();
  REQUIRE(jobs.contains("next"));
  CHECK(overlap(jobs) == "");
  holder.signal(SIGCONT);
  holder.wait(60s);
}

}  // namespace

#define CANCEL_CASE(title) CASE_WITH(CancelFixture, lock, title)

TEST_SUITE_BEGIN("topology");

TEST_CASE("cancel: the job in progress is dead before the next one begins, ends with 121 and learns who asked")
{
  const std::vector<std::pair<Words, Words>> kinds{{{}, {}},
                                                   {{"-x"}, {"-x"}},
                                                   {{"-s"}, {"-x"}},
                                                   {{"-x"}, {"-s"}},
                                                   {{"--format", "string"}, {"--format", "string"}},
                                                   {{"-x"}, {}}};
  for (const auto& kind : kinds) {
    const Words& held_as = kind.first;  // clang 14 lets no lambda use a structured binding
    const Words& asked_as = kind.second;
    CAPTURE((held_as.empty() ? "plain" : held_as.back()));
    CAPTURE((asked_as.empty() ? "plain" : asked_as.back()));
    const CancelFixture lock;
    Words options = joined(held_as, {"--kill-after", "200ms"});
    Process holder = lock.hold("victim", options);
    options = asked_as;
    options.insert(options.end(), {"--label", "build 7"});
    Process next = lock.cancel(options, lock.activity.short_job("next", 60));
    CHECK(next.wait(60s) == success);
    CHECK(holder.wait(60s) == cancelled);
    CHECK(overlap(lock.activity.jobs()) == "");
    expect_has(holder.err(), {"force-unlocked by ", "[build 7]"});
    CHECK(has(next.err(), ": asking it to stop\n"));
  }
}

CANCEL_CASE("cancel: a job that ends within --kill-after is waited for")
{
  Process holder =
      lock.start({"--ttl", "3s", "--kill-after", "60s"},
                 {"sh", "-c", "trap 'sleep 4; echo tidy; exit 0' TERM; echo up; while :; do sleep 0.05; done"});
  wait_until([&] { return holder.out() == "up\n"; }, "the job runs");
  Process next = lock.cancel({}, {"true"});
  CHECK(next.wait(60s) == success);
  expect_end(holder, cancelled, {out_is("up\ntidy\n")}, 60s);
}

TEST_CASE("cancel: jobs do not overlap when the holder is stopped or killed, alone or with its guardian")
{
  no_overlap_after([](Process& holder) { holder.signal(SIGSTOP); });
  no_overlap_after([](Process& holder) { holder.signal(SIGKILL); });
  for (const int signal : {SIGSTOP, SIGKILL}) {
    no_overlap_after([&](Process& holder) {
      const pid_t guardian = guardian_of(holder.pid());
      holder.signal(signal);
      ::kill(guardian, signal);
    });
  }
}

CANCEL_CASE("cancel: first come, first served, and each asks the holder in front of it")
{
  Process holder = lock.hold("holder", {"--kill-after", "200ms"});
  holder.signal(SIGSTOP);  // until all are in line
  Process plain = lock.start({}, {"sleep", "1000"});
  lock.await_line(1);
  Process second = lock.cancel({}, {"sleep", "1000"});
  lock.await_line(2);
  Process last = lock.cancel({}, lock.activity.short_job("last", 60));
  lock.await_line(3);
  holder.signal(SIGCONT);
  CHECK(last.wait(60s) == success);
  for (Process* each : {&holder, &plain, &second}) {
    CHECK(each->wait(60s) == cancelled);
  }
  CHECK(overlap(lock.activity.jobs()) == "");
}

CANCEL_CASE("cancel: with --latest the newest of many runs completes, and no two at once")
{
  std::vector<Process> runs;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "run" + std::to_string(i);
    const bool is_last = i == 7;
    runs.push_back(lock.cancel({"--latest", "--kill-after", "100ms", "--label", name},
                               is_last ? lock.activity.short_job(name, 60) : lock.activity.stubborn_tree(name)));
    wait_until(
        [&] {
          const auto lines = as_texts(lock.server.command({"LRANGE", "rlock:events:{k}", "0", "-1"}));
          const auto waiting = as_texts(lock.server.command({"HVALS", "rlock:waiters:{k}"}));
          const auto names_it = [&](const std::string& text) { return has(text, "label=" + name + "\n"); };
          return std::any_of(lines.begin(), lines.end(), names_it) ||
                 std::any_of(waiting.begin(), waiting.end(), names_it);
        },
        name + " has arrived");
  }
  CHECK(runs.back().wait(60s) == success);
  runs.pop_back();
  for (Process& run : runs) {
    const Exit exit = run.wait(60s);
    CHECK((exit == cancelled || exit == is_busy));
  }
  CHECK(overlap(lock.activity.jobs()) == "");
}

TEST_SUITE_END();

CANCEL_CASE("cancel: a lock that only --min-hold keeps is taken at once")
{
  REQUIRE(lock.start({"--min-hold", "10m"}, {"true"}).wait(30s) == success);
  CHECK(lock.cancel({}, {"true"}).wait(60s) == success);
}

CANCEL_CASE("cancel: a lease without a process is not renewed any more, and ends by itself")
{
  const Finished acquired = rlock_on(lock.server, {"acquire", "-k", "k", "--lease", "4s"});
  const std::string token = acquired.out.substr(0, acquired.out.find('\n'));
  Process next = lock.cancel({}, {"true"});
  wait_until(
      [&] {
        return has(next.err(),
                   "k: no process answers for it, as for a lease of rlock acquire; it is no longer renewed and ends "
                   "with its ttl, in ");
      },
      "the lease is revoked");
  CHECK(rlock_on(lock.server, {"renew", "-k", "k", "--token", token, "--lease", "1m"}).code == 1);
  CHECK(next.wait(60s) == success);
}

CANCEL_CASE("cancel: a foreign holder is taken away after the grace")
{
  lock.server.command({"HSET", "k", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1"});
  lock.server.command({"PEXPIRE", "k", "600000"});
  Process next = lock.cancel({}, {"true"});
  expect_end(next, success, {err_has("whose job may still be running")}, 60s);
}

CANCEL_CASE("cancel: what is not provably a lock is left alone")
{
  lock.server.command({"HSET", "k", "prod", "5"});
  lock.server.command({"PEXPIRE", "k", "600000"});
  Process next = lock.cancel({"-w", "3s"}, {"true"});
  expect_end(next, is_busy, {err_has("nothing proves that it is a lock")}, 60s);
  CHECK(as_text(lock.server.command({"HGET", "k", "prod"})) == "5");
}

CANCEL_CASE("cancel: a run that is killed after it asked leaves a free lock")
{
  Process holder = lock.hold("holder", {"--kill-after", "200ms"});
  Process next = lock.cancel({}, {"true"});
  wait_until([&] { return has(next.err(), "asking it to stop"); }, "it asks");
  next.signal(SIGKILL);
  next.wait(30s);
  wait_until(
      [&] {
        return has(holder.err(), "force-unlocked by ") ||
               as_int(lock.server.command({"EXISTS", "rlock:force:{k}"})) == 0;
      },
      "the holder has been asked, or was not");
  CHECK(lock.cancel({}, {"true"}).wait(60s) == success);
  CHECK(holder.wait(60s) == cancelled);
}

CANCEL_CASE("cancel: the lock of the outer run is entered, and not cancelled, also where the environment was scrubbed")
{
  const Words inner =
      rlock_argv({"run", "-S", lock.server.url(), "-k", "k", "--cancel-in-progress", "--", "echo", "inner"});
  Process outer = lock.start({}, inner);
  expect_end(outer, success, {out_is("inner\n")}, 60s);

  Process refused = lock.start({}, joined({"env", "-u", "RLOCK_HELD"}, inner));
  expect_end(refused, is_busy, {err_lacks("force-unlocked")}, 60s);
}
