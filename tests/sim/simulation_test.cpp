// SPDX-License-Identifier: Apache-2.0
// Many schedules, one for each seed. RLOCK_TEST_SIM_STEPS says for how many steps; RLOCK_TEST_SEED is the first seed.
#include "sim/simulation.h"
#include "sim/shrink.h"
#include "support/seed.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace rlock::sim {
namespace {

constexpr std::uint64_t steps_by_default = 40'000;
constexpr std::uint64_t longest_search = 300'000;  // steps until a broken script must be found

std::uint64_t wanted_steps()
{
  const char* const wanted = std::getenv("RLOCK_TEST_SIM_STEPS");
  return wanted != nullptr ? std::stoull(wanted) : steps_by_default;
}

struct Found {
  Schedule schedule;
  std::string broken;
};

struct Tally {
  std::uint64_t schedules = 0;
  std::uint64_t steps = 0;
  std::uint64_t jobs = 0;
  std::uint64_t faults = 0;
  std::uint64_t conflicts = 0;
};

enum class Which { all, silent_waiters };  // silent_waiters: schedules in which only waiters are stopped or killed

// Runs one schedule after the other until a rule is broken, or for so many steps.
std::optional<Found> search(std::uint64_t seed, std::uint64_t steps, Tally& tally,
                            const std::vector<Replacement>& changed = {}, StoreKind store = StoreKind::redis,
                            RecordMistake mistake = RecordMistake::none, Which which = Which::all)
{
  const auto directory = test::make_temp_dir("sim");
  for (; tally.steps < steps; ++seed) {
    const Schedule schedule = schedule_of(seed, store);
    if (which == Which::silent_waiters && !schedule.stops_only_waiters) {
      continue;
    }
    const SimulationResult result = simulate(schedule, directory, changed, mistake);
    ++tally.schedules;
    tally.steps += result.steps;
    tally.jobs += result.jobs;
    tally.faults += result.faults;
    tally.conflicts += static_cast<std::uint64_t>(result.conflicts);
    if (result.broken) {
      return Found{.schedule = schedule, .broken = *result.broken};
    }
  }
  return std::nullopt;
}

void tell_shortest(const Schedule& found)
{
  const auto directory = test::make_temp_dir("sim");
  const Schedule shortest =
      shrink(found, [&](const Schedule& schedule) { return simulate(schedule, directory).broken.has_value(); });
  std::cout << "the shortest schedule that breaks a rule, from " << show(shortest);
  for (const std::string& line : simulate(shortest, directory).story) {
    std::cout << line << '\n';
  }
}

struct BrokenScripts {
  std::uint64_t from;  // the seed to begin with, which saves time
  std::string what;
  std::vector<Replacement> changes;
};

// Each is a plausible mistake.
const std::vector<BrokenScripts> mistakes{
    {55, "a renewal does not look at the owner", {{"if not is_known then\n  loss =", "if false then\n  loss ="}}},
    {205,
     "a renewal makes a lock that is gone anew",
     {{"local loss, requester\n",
       "if redis.call('EXISTS', LOCK, SECOND) == 0 and REQUESTED_MODE == '' and not ONLY_CHECKS then\n"
       "  redis.call('HSET', LOCK, OWNER, 1)\n  redis.call('PEXPIRE', LOCK, TTL)\nend\nlocal loss, requester\n"}}},
    {8,
     "a release does not look at the owner",
     {{"local held = holds(OWNER)\nif not held then\n  if leave_queue()",
       "local held = 1\nif false then\n  if leave_queue()"},
      {"local left = holds(owner) - 1", "local left = (holds(owner) or 1) - 1"}}},
    {3, "a hand-over does not skip a dead waiter", {{"local alive = r_is_alive", "local alive = true"}}},
    {1,
     "a hand-over is told and not made",
     {{"local owner, info, ttl, requested, arrival, is_claim = waiter, begun,",
       "local LOCK, owner, info, ttl, requested, arrival, is_claim = 'elsewhere', waiter, begun,"}}},
    {1, "a hand-over says that it lasts longer than it does", {{"now) .. ' ' .. ms", "now) .. ' ' .. 2000"}}},
    {8,
     "a release does not tell the queue",
     {{"  local admitted = hand_over()\n", "  local admitted = 0\n"}, {"if not others_wait then", "if false then"}}},
    {3,
     "a lock has no ttl",
     {{"redis.call('HSET', LOCK, owner, '1')\n  redis.call('PEXPIRE', LOCK, ttl)",
       "redis.call('HSET', LOCK, owner, '1')"}}},
    {36, "the fence is a counter", {{"local now = r_now_us\n  local fence", "local now = 1\n  local fence"}}},
    {48,
     "a newcomer does not queue",
     {{"if redis.call('EXISTS', QUEUE) == 1 then\n  local admitted", "if false then\n  local admitted"},
      {"and redis.call('EXISTS', QUEUE) == 0 and admits", "and admits"}}},
    {1,
     "readers and a writer hold together",
     {{"return requested == 'read' and redis.pcall('HGET', LOCK, 'mode') == 'read' and is_read_write_lock('read')",
       "return requested == 'read'"}}},
    {5,
     "there is one permit too many",
     {{"return free > 0", "return free >= 0"}, {"r_admits = free > 0", "r_admits = free >= 0"}}},
    {11,
     "a hand-over lasts for ever",
     {{"= waiter, begun, ms, requested, joined, true", "= waiter, begun, 100000, requested, joined, true"}}},
    {13,
     "--min-hold keeps nothing",
     {{"local min_hold = held == 1 and longest_min_hold() or 0", "local min_hold = 0"}}},
    {12,
     "a newer waiter with --latest does not replace the one before it",
     {{"if WAIT_MODE == 'latest' then\n      replace_latest", "if false then\n      replace_latest"}}},
    {1, "a waiter joins as if it had no priority", {{"(tonumber(PRIORITY) or 0) * PRIORITY_BAND", "0"}}},
    {19, "a full line takes a waiter", {{"local full = joins and full_line() or nil", "local full = nil"}}},
    {247,
     "a hand-over is watched by the next waiter alone",
     {{"if watching > 0 then", "if false then"},
      {"for i, watcher in ipairs(watchers) do", "for i, watcher in ipairs({}) do"}}},
    {52168,
     "a waiter that does not listen yet when it is told to watch does not learn that",
     {{"if score and score % 1 == 0 then", "if false then"}}},
    {1,
     "a release hands the lock to the last waiter",
     {{"redis.call('ZPOPMIN', QUEUE)", "redis.call('ZPOPMAX', QUEUE)"}}},
    {56,
     "after a hand-over that was not taken the next in line is asked",
     {{"local is_silent = can_admit_first() and was_not_taken()", "local is_silent = false"}}},
    {57, "a grant that finds no holder is not published", {{"if found_free then\n", "if false then\n"}}},
};

// `name`: of the test case.
Tally check_promises(StoreKind store, const std::string& name, Which which = Which::all)
{
  Tally tally;
  const auto found = search(test::seed(), wanted_steps(), tally, {}, store, RecordMistake::none, which);
  MESSAGE(tally.schedules << " schedules, " << tally.steps << " steps, " << tally.jobs << " jobs, " << tally.faults
                          << " faults, " << tally.conflicts << " conflicts");
  if (found) {
    tell_shortest(found->schedule);
    FAIL("seed " << found->schedule.seed << ": " << found->broken << "; repeat: RLOCK_TEST_SEED="
                 << found->schedule.seed << " RLOCK_TEST_SIM_STEPS=1 rlock_sim -tc='" << name << "'");
  }
  return tally;
}

struct MadeMistake {
  std::uint64_t from;  // the seed to begin with, which saves time
  std::string what;
  RecordMistake mistake;
};

void check_found(const std::vector<MadeMistake>& made, StoreKind store)
{
  for (const MadeMistake& each : made) {
    Tally tally;
    const auto found = search(each.from, longest_search, tally, {}, store, each.mistake);
    CAPTURE(each.what);
    REQUIRE(found);
    CHECK_FALSE(simulate(found->schedule, test::make_temp_dir("sim")).broken);  // without the mistake
    MESSAGE(each.what << ": seed " << found->schedule.seed << ", after " << tally.steps << " steps: " << found->broken);
  }
}

}  // namespace

TEST_CASE("sim: no schedule of faults breaks a promise")
{
  check_promises(StoreKind::redis, "sim: no schedule*promise");
}

TEST_CASE("sim: no silent waiters keep a free lock from the others")
{
  check_promises(StoreKind::redis, "sim: no silent*", Which::silent_waiters);
}

TEST_CASE("sim: no silent waiters keep a free lock from the others on records")
{
  check_promises(StoreKind::records, "sim: no silent*on records", Which::silent_waiters);
}

TEST_CASE("sim: no schedule of faults breaks a promise on records")
{
  CHECK(check_promises(StoreKind::records, "sim: no schedule*on records").conflicts > 0);
}

TEST_CASE("sim: no schedule of faults breaks a promise on records with sessions")
{
  CHECK(check_promises(StoreKind::sessions, "sim: no schedule*with sessions").conflicts > 0);
}

TEST_CASE("sim: the rules notice mistakes of a store of records and of its engine")
{
  check_found({{1, "the time of a read is later than its state", RecordMistake::time_after_state},
               {1, "a commit replaces any version", RecordMistake::no_comparison},
               {1, "a version comes back", RecordMistake::version_comes_back},
               {1, "a decision is made on a remembered state", RecordMistake::remembered_decision},
               {1, "a commit delivers no message", RecordMistake::loses_messages}},
              StoreKind::records);
}

TEST_CASE("sim: the rules notice mistakes of a store with sessions and of its engine")
{
  check_found({{2, "an answer to a keep-alive counts as a renewal", RecordMistake::keep_alive_is_proof},
               {514, "a renewal is proven by another leader", RecordMistake::any_leader_proves},
               {271, "a stale read counts as a proof", RecordMistake::stale_read_proves},
               {41, "presences are asked for before the record", RecordMistake::presences_before_record},
               {63, "a grant does not need the presence of its owner", RecordMistake::presence_after_grant}},
              StoreKind::sessions);
}

TEST_CASE("sim: the rules notice broken scripts")
{
  for (const BrokenScripts& mistake : mistakes) {
    Tally tally;
    const auto found = search(mistake.from, longest_search, tally, mistake.changes);
    CAPTURE(mistake.what);
    REQUIRE(found);
    CHECK_FALSE(simulate(found->schedule, test::make_temp_dir("sim")).broken);  // with the scripts as they are
    MESSAGE(mistake.what << ": seed " << found->schedule.seed << ", after " << tally.steps
                         << " steps: " << found->broken);
  }
}

}  // namespace rlock::sim
