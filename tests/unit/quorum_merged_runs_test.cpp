// SPDX-License-Identifier: Apache-2.0
#include "stores/quorum/quorum_operator.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

using Runs = std::vector<PastRun>;

PastRun run(const std::string& owner, std::int64_t start_ms, std::uint64_t fence = 0)
{
  return {.owner = Owner::of(owner), .start_ms = start_ms, .fence = fence};
}

PastRun ended(PastRun run, std::optional<Outcome> outcome, std::optional<Millis> duration = {},
              std::optional<int> exit_code = {})
{
  run.outcome = outcome;
  run.duration = duration;
  run.exit_code = exit_code;
  return run;
}

// Of three servers.
Runs merged(const std::vector<Runs>& logs)
{
  std::vector<const Runs*> all;
  for (const Runs& log : logs) {
    all.push_back(&log);
  }
  return merged_runs(all, 2, 3 - logs.size());
}

// What two servers with these ends of one run say together, whichever is asked first.
std::string end_of_both(const PastRun& one, const PastRun& other)
{
  const auto told = [](const Runs& runs) {
    const PastRun& run = runs.at(0);
    return (run.outcome ? std::string(name_of(*run.outcome)) : "?") +
           (run.duration ? " for " + std::to_string(run.duration->count()) : "") +
           (run.exit_code ? " " + std::to_string(*run.exit_code) : "");
  };
  const std::string text = told(merged({{one}, {other}}));
  CHECK(told(merged({{other}, {one}})) == text);
  return text;
}

}  // namespace

TEST_CASE("merged runs: those that a majority may have logged, the last one first")
{
  const Runs all = merged({{run("a", 1), run("attempt", 5)}, {run("b", 9), run("a", 3)}, {run("b", 8)}});
  REQUIRE(all.size() == 2);
  CHECK(all[0].owner.text() == "b");
  CHECK(all[0].start_ms == 8);
  CHECK(all[1].start_ms == 1);
  CHECK(merged({{run("a", 1)}, {}}).size() == 1);  // the third server may know it
  CHECK(merged({{run("a", 1)}, {}, {}}).empty());
}

TEST_CASE("merged runs: the end is told by the server that knows most of it")
{
  const PastRun a = run("a", 1);
  const PastRun over = ended(a, Outcome::lost);
  const PastRun unconfirmed = a;
  CHECK(end_of_both(over, ended(a, Outcome::failed, Millis{4}, 3)) == "failed for 4 3");
  CHECK(end_of_both(ended(a, Outcome::lost, Millis{2}), ended(a, Outcome::forced, Millis{4})) == "forced for 4");
  CHECK(end_of_both(ended(a, Outcome::lost, Millis{2}), unconfirmed) == "lost for 2");
  CHECK(end_of_both(ended(a, std::nullopt, Millis{2}), over) == "? for 2");
  CHECK(end_of_both(over, unconfirmed) == "?");
  const PastRun expired_where_away = ended(a, Outcome::timed_out, Millis{4});
  CHECK(end_of_both(ended(a, std::nullopt, Millis{2}), expired_where_away) == "? for 2");
  CHECK(end_of_both(ended(a, Outcome::timed_out, Millis{3}, 124), expired_where_away) == "timed_out for 3 124");
}

TEST_CASE("merged runs: a run ends when the server says that knows most of its end, whichever granted it first")
{
  const Runs all = merged({{ended(run("a", 5), std::nullopt, Millis{10}, 0)}, {ended(run("a", 2), Outcome::lost)}});
  CHECK(all.at(0).start_ms == 2);
  CHECK(all.at(0).duration == Millis{13});
}

TEST_CASE("merged runs: the fencing number is the one that the job had")
{
  const auto fence = [](const std::vector<std::uint64_t>& logged) {
    std::vector<Runs> logs;
    for (const std::uint64_t number : logged) {
      logs.push_back({run("a", 1, number)});
    }
    return merged(logs).at(0).fence;
  };
  CHECK(fence({7, 7, 9}) == 7);  // the third server did not hear of the release, which named 7
  CHECK(fence({5, 7, 7}) == 7);
  CHECK(fence({9, 5, 7}) == 7);  // not released: the second grant made it a majority
  CHECK(fence({5, 7}) == 7);
}
