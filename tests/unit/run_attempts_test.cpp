// SPDX-License-Identifier: Apache-2.0
#include "run/attempts.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

// A run of rlock once that failed: from 1000 to 2000 ms.
PastRun failed(int attempt, Millis kept_for = Millis{0})
{
  return {.owner = Owner::of("a"),
          .start_ms = 1000,
          .duration = Millis{1000},
          .exit_code = 3,
          .outcome = Outcome::failed,
          .info = HolderInfo{.host = "web2"},
          .attempt = attempt,
          .kept_for = kept_for};
}

PastRun with_outcome(Outcome outcome)
{
  PastRun run = failed(1);
  run.outcome = outcome;
  return run;
}

// "attempt 2", "shares 3"
std::string shown(const Turn& turn)
{
  const auto* shared = std::get_if<ShareFailure>(&turn);
  return shared != nullptr ? "shares " + std::to_string(*shared->run.exit_code)
                           : "attempt " + std::to_string(std::get<RunAttempt>(turn).number);
}

std::string turn(const std::vector<PastRun>& runs, std::int64_t came_ms, int attempts = 1, int own = 0)
{
  return shown(turn_of(runs, {.at_ms = came_ms, .period = {}}, attempts, own));
}

}  // namespace

TEST_CASE("attempts: a caller that waited shares the last failure, and one that came later does not")
{
  CHECK(turn({}, 1500) == "attempt 1");
  CHECK(turn({failed(1)}, 1500) == "shares 3");
  CHECK(turn({failed(1)}, 2001) == "attempt 1");
  CHECK(turn({failed(1)}, 1500, 2) == "attempt 2");
  CHECK(turn({failed(2)}, 1500, 2) == "shares 3");
  CHECK(turn({failed(1, Millis{500})}, 2400, 2) == "attempt 2");
  CHECK(turn({failed(1, Millis{500})}, 2600, 2) == "attempt 1");
  CHECK(turn({}, 1500, 3, 1) == "attempt 2");
  CHECK(turn({failed(1)}, 900, 3, 2) == "attempt 3");
}

TEST_CASE("attempts: a caller that came while --min-hold kept the lock shares the last failure")
{
  CHECK(turn({failed(1, Millis{60'000})}, 8000) == "shares 3");
  CHECK(turn({failed(2, Millis{60'000})}, 8000, 2) == "shares 3");
  CHECK(turn({failed(2, Millis{60'000})}, 62'001, 2) == "attempt 1");
}

TEST_CASE("attempts: only a failure of rlock once is shared")
{
  for (const Outcome outcome : {Outcome::succeeded, Outcome::cancelled, Outcome::lost, Outcome::forced}) {
    CAPTURE(name_of(outcome));
    CHECK(turn({with_outcome(outcome)}, 1500) == "attempt 1");
  }
  CHECK(turn({with_outcome(Outcome::timed_out)}, 1500) == "shares 3");
  CHECK(turn({failed(0)}, 1500) == "attempt 1");
  PastRun refused = failed(1);  // the guardian could not be started, or was killed
  refused.exit_code = 71;
  CHECK(turn({refused}, 1500) == "attempt 1");
  const PastRun skipped{.owner = Owner::of("s"), .start_ms = 3000, .duration = Millis{0}, .outcome = Outcome::skipped};
  CHECK(turn({skipped, failed(1)}, 1500) == "shares 3");
}

TEST_CASE("attempts: a failure of the period before is not shared")
{
  const Period hour{.begin_ms = 1200, .next_ms = 4800, .length = Millis{3600}};
  CHECK(shown(turn_of(std::vector{failed(1)}, {.at_ms = 1500, .period = hour}, 1, 0)) == "attempt 1");
  CHECK(shown(turn_of(std::vector{failed(1)}, {.at_ms = 1100, .period = hour}, 1, 0)) == "shares 3");
}

TEST_CASE("attempts: the pause doubles, and the last attempt has none")
{
  RunRequest request;
  request.attempts = 4;
  request.retry_delay = Millis{10};
  const auto pause = [&](int attempt, const RunResult& result) {
    const auto delay = next_attempt_in(request, attempt, result);
    return delay ? delay->count() : -1;
  };
  const RunResult failure{.exit_code = 3, .outcome = {}};
  CHECK(pause(1, failure) == 10);
  CHECK(pause(2, failure) == 20);
  CHECK(pause(3, failure) == 40);
  CHECK(pause(4, failure) == -1);
  CHECK(pause(1, {.exit_code = 0, .outcome = {}}) == -1);
  CHECK(pause(1, {.exit_code = 143, .outcome = Outcome::cancelled}) == -1);
  CHECK(pause(1, {.exit_code = 124, .outcome = Outcome::timed_out}) == 10);
  CHECK(pause(1, {.exit_code = 121, .outcome = Outcome::lost}) == -1);
}

TEST_CASE("attempts: the line of a shared failure names the host")
{
  CHECK(shared_text("nightly", failed(1)) == "nightly failed on web2 (exit code 3): this call shares that result");
  CHECK(shared_text("nightly", failed(2)) ==
        "nightly failed on web2 (exit code 3, attempt 2): this call shares that result");
}
