// SPDX-License-Identifier: Apache-2.0
#include "run/verdict.h"
#include "support/test.h"

#include <csignal>

using namespace rlock::test;

namespace {

constexpr int exited(int code) { return code << 8; }

std::string shown(const RunEnd& end)
{
  if (const auto* code = std::get_if<ExitWith>(&end)) {
    return std::to_string(code->code);
  }
  return "signal " + std::to_string(std::get<DieOf>(end).signal);
}

RunFacts after(std::optional<JobEnd> job, std::optional<LeaseEvent> event = {}, std::optional<NotHeld> release = {},
               bool automatic = true)
{
  return {.job = job, .locks = {{.lock = "stock", .event = event, .release = release}}, .automatic = automatic};
}

JobEnd job(int status, Stopped why = Stopped::none) { return {.wait_status = status, .why = why, .killed = false}; }

}  // namespace

TEST_CASE("outcome: a job that the guardian stopped, because it could not hear the runner, did not die by itself")
{
  const Verdict outcome =
      verdict_of({.job = JobEnd{.wait_status = SIGKILL, .why = Stopped::runner_gone, .killed = true},
                  .locks = {{.lock = "k", .event = {}, .release = {}, .valid_until = {}, .trouble = {}}},
                  .automatic = true,
                  .compatibility = Compatibility::own,
                  .still_runs = false});
  REQUIRE(std::holds_alternative<ExitWith>(outcome.end));
  CHECK(std::get<ExitWith>(outcome.end).code == static_cast<int>(ExitCode::os));
}

TEST_CASE("outcome: a process that may not be signalled is left")
{
  struct Row {
    const char* why;
    RunFacts after;
    const char* expect;
  };
  const Row rows[] = {
      {"a fixed lease is over", after(job(SIGKILL, Stopped::lease_end), {}, {}, false), "124"},
      {"--max-runtime", after(job(SIGKILL, Stopped::max_runtime)), "124"},
      {"left behind by a job that ended well", after(job(exited(0))), "124"},
      {"the guardian was killed", after(std::nullopt), "124"},
      {"the lock was lost", after(job(SIGKILL, Stopped::order), Lost{}), "121"},
  };
  for (Row row : rows) {
    CAPTURE(row.why);
    row.after.still_runs = true;
    CHECK(shown(verdict_of(row.after).end) == row.expect);
  }
}

TEST_CASE("outcome: losing counts most, then rlock's own action, then the job's own end")
{
  const NotHeld gone;
  struct Row {
    const char* why;
    RunFacts after;
    const char* expect;
    const char* says;
  };
  const Row rows[] = {
      {"all well", after(job(exited(0))), "0", ""},
      {"the job's code", after(job(exited(7))), "7", ""},
      {"the job's signal", after(job(SIGTERM)), "signal 15", ""},
      {"a core dump is the same death", after(job(SIGSEGV | 0x80)), "signal 11", ""},
      {"found gone at release", after(job(exited(0)), {}, gone), "121", "the lock stock was lost: expired or deleted"},
      {"proven gone", after(job(SIGTERM, Stopped::order), Lost{{.cause = LossCause::held, .detail = "x"}}, gone), "121",
       "now held by x"},
      {"gone, and the release knows why",
       after(job(SIGTERM, Stopped::order), Lost{}, NotHeld{.cause = LossCause::released_with_token}), "121",
       "the lock stock was lost: it was released with its token; the job was stopped"},
      {"gone for another reason, which stays",
       after(job(SIGTERM, Stopped::order), Lost{{.besides = ": the server's clock jumped"}},
             NotHeld{.cause = LossCause::released_with_token}),
       "121", "lost: expired or deleted: the server's clock jumped"},
      {"a job that ended by itself was not stopped",
       after(job(exited(0)), Lost{{.cause = LossCause::held, .detail = "x"}}, gone), "121", "held by x"},
      {"forced", after(job(SIGTERM, Stopped::order), ReleaseRequested{"alice@web1"}), "121",
       "force-unlocked by alice@web1"},
      {"forced, and never heard of it", after(job(exited(0)), {}, NotHeld{.forced = ForceRequest{"bob@db1"}}), "121",
       "bob@db1"},
      {"not renewed in time", after(job(SIGTERM, Stopped::lease_end), Unconfirmed{"connection refused"}), "121",
       "connection refused"},
      {"a job that ends well at the last moment of a lost lease", after(job(exited(0)), Unconfirmed{"silence"}), "121",
       "silence"},
      {"a fixed lease is over", after(job(SIGTERM, Stopped::lease_end), {}, {}, false), "124", "lease of stock"},
      {"--max-runtime", after(job(exited(0), Stopped::max_runtime)), "124", "--max-runtime"},
      {"the guardian was killed", after(std::nullopt), "71", "guardian"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    const Verdict end = verdict_of(row.after);
    CHECK(shown(end.end) == row.expect);
    CHECK((end.line.empty() ? std::string(row.says).empty() : has(end.line, row.says)));
    const bool was_stopped = row.after.job && row.after.job->why != Stopped::none && shown(end.end) == "121";
    CHECK(has(end.line, "; the job was stopped") == was_stopped);
  }
}

TEST_CASE("outcome: why it was not renewed is told even where the job was stopped before the watchdog said so")
{
  LockFacts outcome{.lock = "stock", .event = {}, .release = {}};
  outcome.trouble = "no renewal for 5s: silence";
  const Verdict end = verdict_of({.job = job(SIGKILL, Stopped::lease_end), .locks = {outcome}});
  CHECK(shown(end.end) == "121");
  CHECK(end.line == "the lock stock was lost: no renewal for 5s: silence; the job was stopped");
}

TEST_CASE("outcome: names the lost one of several locks, the surest first")
{
  const NotHeld gone;
  const LockFacts fine{.lock = "fine", .event = {}, .release = {}, .valid_until = Instant{Millis{1}}};
  const LockFacts proven{.lock = "proven", .event = Lost{}, .release = {}, .valid_until = Instant{Millis{9}}};
  const LockFacts found{.lock = "found", .event = {}, .release = gone, .valid_until = Instant{Millis{9}}};
  const LockFacts unsure{
      .lock = "unsure", .event = Unconfirmed{"silence"}, .release = {}, .valid_until = Instant{Millis{9}}};
  const LockFacts later{.lock = "later", .event = {}, .release = {}, .valid_until = Instant{Millis{2}}};

  struct Row {
    std::vector<LockFacts> locks;
    JobEnd job;
    bool automatic;
    const char* expect;
    const char* says;
  };
  const Row rows[] = {
      {{fine, later}, job(exited(3)), true, "3", ""},
      {{fine, unsure, found, proven}, job(exited(0)), true, "121", "lock proven was"},
      {{fine, unsure, found}, job(exited(0)), true, "121", "lock found was"},
      {{fine, unsure}, job(exited(0)), true, "121", "lock unsure was"},
      {{later, fine}, job(SIGTERM, Stopped::lease_end), true, "121", "lock fine was"},  // no time to find the reason
      {{later, fine}, job(SIGTERM, Stopped::lease_end), false, "124", "lease of later, fine was over"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.says);
    const Verdict end = verdict_of({.job = row.job, .locks = row.locks, .automatic = row.automatic});
    CHECK(shown(end.end) == row.expect);
    CHECK(has(end.line, row.says));
  }
}

TEST_CASE("outcome: a job that did not succeed after a signal from outside was cancelled")
{
  const auto cancelled = [](int status) {
    RunFacts outcome = after(job(status));
    outcome.was_cancelled = true;
    const Verdict run = verdict_of(outcome);
    return std::string(name_of(run.outcome)) + " " + shown(run.end);
  };
  CHECK(cancelled(SIGTERM) == "cancelled signal 15");
  CHECK(cancelled(exited(3)) == "cancelled 3");
  CHECK(cancelled(exited(0)) == "succeeded 0");
  CHECK(is_cancelled_by(SIGTERM));
  CHECK(is_cancelled_by(SIGINT));
  CHECK(is_cancelled_by(SIGHUP));
  CHECK_FALSE(is_cancelled_by(SIGUSR1));
}

TEST_CASE("outcome: --max-runtime is named with its length and the lock")
{
  RunFacts outcome = after(job(SIGTERM, Stopped::max_runtime));
  outcome.max_runtime = 90min;
  CHECK(verdict_of(outcome).line == "the job of stock was stopped: its --max-runtime of 1h30m was over");
}

TEST_CASE("outcome: only a caller that named no server is told so, and how to start a private one")
{
  Error away = unreachable("cannot reach redis://127.0.0.1:6379: connection refused", " (-S names another server)");
  away.nobody_there = true;
  CHECK(with_private_server(away, "RLOCK_SERVER").text == away.text);
  const std::string begins =
      "no server was named (-S, RLOCK_SERVER, rlock.toml, REDIS_URL), and rlock cannot reach redis://127.0.0.1:6379: ";
  CHECK(with_private_server(away, "default").text == begins + "connection refused; -S local: starts a private one");
  CHECK(with_private_server(unreachable("cannot reach redis://127.0.0.1:6379: no answer within 5s", ""), "default")
            .text == begins + "no answer within 5s");
  CHECK(with_private_server({ErrorCode::unreachable, "no answer"}, "default").text == "no answer");
}
