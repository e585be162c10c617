// SPDX-License-Identifier: Apache-2.0
// The text exposition format, line by line.
#include "cli/output/prometheus.h"
#include "support/test.h"
#include "support/text_file.h"

#include <regex>
#include <set>

using namespace rlock::test;

using namespace rlock::cli;

namespace {

constexpr std::int64_t now = 1'795'288'200'000;

LockState held(const std::string& key)
{
  LockState state{.name = *LockName::parse(key),
                  .kind = Plain{},
                  .ttl = Millis{29'500},
                  .fence = 1'795'288'200'284'284,
                  .holders = {},
                  .waiting = {}};
  state.holders.push_back({Owner::of("o"), 1, HolderInfo{.since_ms = now - 12'345}});
  state.waiting.push_back({Owner::of("w"), {}});
  state.count = 1;
  return state;
}

LockState free_lock(const std::string& key)
{
  return {.name = *LockName::parse(key), .kind = Plain{}, .ttl = {}, .fence = 0, .holders = {}, .waiting = {}};
}

// As promtool's check metrics: each family once, HELP and TYPE before its samples, which stand together; no sample twice. And no
// family without a sample.
void lint(const std::string& text, std::size_t expected_families)
{
  static const std::regex help("# HELP ([a-z_]+) [^\\\\]+\\.");
  static const std::regex type("# TYPE ([a-z_]+) gauge");
  static const std::regex sample(
      R"re(([a-z_]+)\{key="((?:[^"\\\n]|\\\\|\\"|\\n)*)"\} (-?[0-9]+(?:\.[0-9]+)?|\+Inf))re");
  REQUIRE(text.ends_with('\n'));
  std::set<std::string> families, sampled, samples;
  std::string helped, typed;
  for (const std::string& line : lines_of(text)) {
    CAPTURE(line);
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      helped = match[1];
      CHECK(families.insert(helped).second);
    } else if (std::regex_match(line, match, type)) {
      typed = match[1];
      CHECK(typed == helped);
    } else {
      REQUIRE(std::regex_match(line, match, sample));
      CHECK(match[1] == typed);
      sampled.insert(typed);
      CHECK(samples.insert(match[1].str() + match[2].str()).second);
    }
  }
  CHECK(families == sampled);
  CHECK(families.size() == expected_families);
}

}  // namespace

TEST_CASE("prometheus: a held lock, and a free one")
{
  const std::vector<LockState> states{held("stock"), free_lock("billing")};
  const std::string text = prometheus_text(states, now);
  lint(text, 7);
  for (const char* line :
       {"rlock_held{key=\"stock\"} 1\n", "rlock_held{key=\"billing\"} 0\n", "rlock_ttl_seconds{key=\"stock\"} 29.500\n",
        "rlock_ttl_seconds{key=\"billing\"} 0.000\n", "rlock_fence{key=\"stock\"} 1795288200284284\n",
        "rlock_holders{key=\"stock\"} 1\n", "rlock_waiting{key=\"stock\"} 1\n", "rlock_waiting{key=\"billing\"} 0\n",
        "rlock_age_seconds{key=\"stock\"} 12.345\n"}) {
    CHECK_MESSAGE(has(text, line), line << " in\n" << text);
  }
  CHECK_FALSE(has(text, "rlock_fence{key=\"billing\""));
  CHECK_FALSE(has(text, "rlock_age_seconds{key=\"billing\""));
  CHECK(has(text, "rlock_frozen{key=\"stock\"} 0\n"));
  LockState frozen = held("stock");
  frozen.holders.front().info->freeze = "moving the database";
  CHECK(has(prometheus_text(std::vector{frozen}, now), "rlock_frozen{key=\"stock\"} 1\n"));
}

TEST_CASE("prometheus: no name of a lock breaks out of its label")
{
  LockState eternal = held("a\"b\\c");
  eternal.ttl.reset();
  const std::vector<LockState> states{eternal, held("caf\xc3\xa9"), held("bad\xff\xc3"), held("a b=1")};
  const std::string text = prometheus_text(states, now);
  lint(text, 7);
  CHECK(has(text, "{key=\"a\\\"b\\\\c\"} +Inf\n"));
  CHECK(has(text, "{key=\"caf\xc3\xa9\"}"));
  CHECK(has(text, "{key=\"bad\xef\xbf\xbd\xef\xbf\xbd\"}"));
}

TEST_CASE("prometheus: no locks, and a holder whose clock is ahead")
{
  CHECK(prometheus_text({}, now).empty());
  const std::vector<LockState> states{held("k")};
  CHECK(has(prometheus_text(states, now - 60'000), "rlock_age_seconds{key=\"k\"} 0.000\n"));
}

TEST_CASE("prometheus: the last run, the last success, and what became of the runs that are known")
{
  LockState state = LockState{
      .name = *LockName::parse("k"), .kind = Plain{}, .ttl = Millis{0}, .fence = 0, .holders = {}, .waiting = {}};
  const auto run = [](std::int64_t start, Outcome outcome, std::optional<int> code, std::int64_t times = 1) {
    return PastRun{.owner = Owner::of("a"),
                   .start_ms = start,
                   .duration = Millis{1500},
                   .exit_code = code,
                   .outcome = outcome,
                   .fence = outcome == Outcome::skipped ? 0U : 7U,
                   .times = times};
  };
  state.runs = {run(9000, Outcome::skipped, {}, 5), run(7000, Outcome::failed, 3), run(4000, Outcome::succeeded, 0),
                run(1000, Outcome::succeeded, 0), run(500, Outcome::cancelled, 143)};
  state.runs[1].waited = Millis{250};
  const std::string text = prometheus_text({&state, 1}, now);
  lint(text, 20);
  for (const std::string sample :
       {"recent_acquired{key=\"k\"} 4", "recent_waited_seconds{key=\"k\"} 0.250",
        "last_run_start_timestamp_seconds{key=\"k\"} 7.000", "last_run_duration_seconds{key=\"k\"} 1.500",
        "last_run_exit_code{key=\"k\"} 3", "last_success_timestamp_seconds{key=\"k\"} 5.500",
        "recent_held_seconds{key=\"k\"} 6.000", "recent_succeeded{key=\"k\"} 2", "recent_failed{key=\"k\"} 1",
        "recent_cancelled{key=\"k\"} 1", "recent_lost{key=\"k\"} 0", "recent_skipped{key=\"k\"} 5"}) {
    CHECK_MESSAGE(has(text, "\nrlock_" + sample + "\n"), sample);
  }
  CHECK_FALSE(has(text, "_total"));
}
