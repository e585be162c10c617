// SPDX-License-Identifier: Apache-2.0
// The list of runs that is kept for longer than the event log: its bytes, what is copied, and what goes first.
#include "lock/kept_runs.h"
#include "lock/kept_runs_codec.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

constexpr std::int64_t day_one = 1'764'000'000'000;  // ms since 1970

PastRun run_number(int number, Outcome outcome = Outcome::succeeded)
{
  const std::int64_t start_ms = day_one + std::int64_t{number} * 300'000;
  std::string owner = "01234567-89ab-cdef-0123-456789abcdef:" + std::to_string(1000 + number);
  owner.replace(0, 4, std::to_string(1000 + number));
  return {.owner = Owner::of(owner),
          .start_ms = start_ms,
          .duration = 1234ms,
          .exit_code = outcome == Outcome::succeeded ? 0 : 3,
          .outcome = outcome,
          .fence = static_cast<std::uint64_t>(start_ms) * 1000 + 7,
          .info = HolderInfo{.host = "web1",
                             .pid = 1000 + number,
                             .user = "root",
                             .command = "./job.sh --all",
                             .label = "nightly",
                             .since_ms = start_ms,
                             .lease = 30s,
                             .automatic = true,
                             .history = 24h * 30},
          .waited = 5ms};
}

// The last one first.
std::vector<PastRun> runs_until(int count)
{
  std::vector<PastRun> runs;
  for (int i = count; i-- > 0;) {
    runs.push_back(run_number(i));
  }
  return runs;
}

bool is_same(const PastRun& one, const PastRun& other)
{
  const auto info = [](const PastRun& run) { return run.info ? encode(*run.info) : ""; };
  return one.owner == other.owner && one.start_ms == other.start_ms && one.duration == other.duration &&
         one.exit_code == other.exit_code && one.outcome == other.outcome && one.fence == other.fence &&
         info(one) == info(other) && one.times == other.times && one.waited == other.waited &&
         one.attempt == other.attempt && one.kept_for == other.kept_for && one.forced_by == other.forced_by &&
         one.busy_by == other.busy_by && one.replaced == other.replaced;
}

bool are_same(const std::vector<PastRun>& some, const std::vector<PastRun>& others)
{
  return std::ranges::equal(some, others, is_same);
}

std::size_t bytes_of(const std::vector<std::string>& chunks)
{
  std::size_t bytes = 0;
  for (const std::string& chunk : chunks) {
    bytes += chunk.size();
  }
  return bytes;
}

}  // namespace

TEST_CASE("kept runs: what is written is read again")
{
  std::vector<PastRun> runs = runs_until(300);
  runs[1].outcome = Outcome::forced;
  runs[1].forced_by = "ann as root@web1 (pid 71): moving the database";
  runs[2] = {.owner = Owner::of("somebody:1"), .start_ms = runs[2].start_ms};
  runs[3] = {.owner = Owner::of("a skipped one"),
             .start_ms = runs[3].start_ms,
             .duration = 0ms,
             .outcome = Outcome::skipped,
             .times = 17,
             .busy_by = "bob@web2 (pid 8)"};
  runs[5] = runs[3];
  runs[5].owner = Owner::of("a replaced one");
  runs[5].start_ms = runs[4].start_ms - 1;
  runs[5].replaced = true;
  runs[4].attempt = 1;
  runs[4].kept_for = 10s;
  const auto chunks = encode_runs(runs, day_one);
  CHECK(chunks.size() > 1);
  const LockHistory read = decode_runs(chunks);
  CHECK(are_same(read.runs, runs));
  CHECK(read.complete_since_ms == day_one);
  CHECK(are_same(decode_runs(encode_runs({})).runs, {}));
}

// rlock 0.1.0 knows the places of seven outcomes, and shows a run with another one as released.
TEST_CASE("kept runs: a run that was replaced is a skipped one to a reader that does not know of it")
{
  PastRun run = {.owner = Owner::of("one"), .start_ms = day_one, .outcome = Outcome::skipped};
  const std::string skipped = encode_runs({&run, 1}).front();
  run.replaced = true;
  const std::string replaced = encode_runs({&run, 1}).front();
  REQUIRE(replaced.size() == skipped.size());
  const auto outcome_of = [](const std::string& chunk) { return chunk.at(chunk.find("\x03one") - 2); };
  CHECK(outcome_of(replaced) == outcome_of(skipped));
}

TEST_CASE("kept runs: a month of runs every five minutes takes less than half a megabyte")
{
  const auto chunks = encode_runs(runs_until(8640));
  CHECK(bytes_of(chunks) < 512 * 1024);
  CHECK(std::ranges::all_of(chunks, [](const std::string& chunk) { return chunk.size() < longest_chunk + 512; }));
}

TEST_CASE("kept runs: damaged chunks give the runs before the damage")
{
  const std::string chunk = encode_runs(runs_until(20)).front();
  for (std::size_t size = 0; size < chunk.size(); ++size) {
    const LockHistory cut = decode_chunk(chunk.substr(0, size));
    CHECK(cut.runs.size() < 20);
    for (const PastRun& run : cut.runs) {
      CHECK(run.info->command == "./job.sh --all");
    }
  }
  for (const std::string& malformed :
       {std::string("no chunk"), std::string("\x02", 1), std::string(40, '\xff'), "\x01" + std::string(100, '\xff'),
        std::string("\x01\0\x08", 3), std::string("\x01\0\x00\x00\xff\xff\x7f", 7)}) {
    CHECK(decode_chunk(malformed).runs.size() <= 1);
  }
}

TEST_CASE("kept runs: the numbers of any chunk are plausible")
{
  std::string chunk = encode_runs(runs_until(3)).front();
  for (std::size_t at = 1; at < chunk.size(); ++at) {
    std::string changed = chunk;
    changed[at] = static_cast<char>(changed[at] ^ 0x7f);
    for (const PastRun& run : decode_chunk(changed).runs) {
      CHECK(run.start_ms >= 0);
      CHECK(run.times >= 1);
      CHECK(run.waited >= 0ms);
      CHECK(run.duration.value_or(0ms) >= 0ms);
    }
  }
}

TEST_CASE("kept runs: a run that two chunks have is read once")
{
  auto chunks = encode_runs(runs_until(5));
  const auto more = encode_runs(runs_until(8));
  chunks.insert(chunks.end(), more.begin(), more.end());
  CHECK(are_same(decode_runs(chunks).runs, runs_until(8)));
}

TEST_CASE("kept runs: what may still change is not copied, and nothing twice")
{
  std::vector<PastRun> logged = runs_until(4);
  PastRun skipped{.owner = Owner::of("s"), .start_ms = logged[0].start_ms + 60'000, .duration = 0ms};
  skipped.outcome = Outcome::skipped;
  logged.insert(logged.begin(), skipped);      // another skip may join it
  logged.insert(logged.begin() + 2, skipped);  // before the last run
  logged[2].start_ms = logged[1].start_ms - 1000;
  logged.push_back({.owner = Owner::of("u"), .start_ms = 1});  // not confirmed
  const auto copied = runs_to_keep(logged, std::vector<PastRun>{run_number(0)});
  REQUIRE(copied.size() == 4);
  CHECK(copied[0].fence == run_number(3).fence);
  CHECK(copied[1].outcome == Outcome::skipped);
}

TEST_CASE("kept runs: log and list are one history, and the list tells of a run whose beginning the log has forgotten")
{
  LockHistory logged{.runs = {run_number(9), run_number(8)}, .complete_since_ms = run_number(8).start_ms};
  logged.runs[1].info = std::nullopt;
  logged.runs[0].outcome = Outcome::forced;
  const LockHistory merged = merge_history(logged, {.runs = runs_until(10)});
  REQUIRE(merged.runs.size() == 10);
  CHECK(merged.runs[0].outcome == Outcome::forced);
  CHECK(merged.runs[1].info);
  CHECK(merged.complete_since_ms == 0);
  CHECK(merge_history(logged, {}).complete_since_ms == run_number(8).start_ms);
}

TEST_CASE("kept runs: the oldest successes go first and failures last")
{
  LockHistory history{.runs = runs_until(100)};
  history.runs[90] = run_number(9, Outcome::failed);
  const LockHistory old = compact_history(history, run_number(5).start_ms);
  CHECK(old.runs.size() == 95);
  CHECK(old.complete_since_ms == 0);  // --history is over for the others
  const LockHistory small = compact_history(history, 0, 1000);
  CHECK(small.runs.size() < 30);
  CHECK(small.runs.front().fence == run_number(99).fence);
  CHECK(small.runs.back().outcome == Outcome::failed);
  CHECK(small.complete_since_ms > history.runs[90].start_ms);
  CHECK(small.complete_since_ms <= small.runs[small.runs.size() - 2].start_ms);
}

TEST_CASE("kept runs: a lock is overdue when its last success is older than --every")
{
  LockState state{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 0ms, .fence = 0};
  CHECK(!overdue_since(summary_of(state), day_one));
  state.runs = {run_number(2, Outcome::failed), run_number(1)};
  CHECK(!overdue_since(summary_of(state), day_one * 2));  // no --every
  state.runs[0].info->every = 10min;
  state.runs.insert(state.runs.begin(), run_number(3));
  CHECK(summary_of(state).every == 10min);  // it stays, whatever a later run says not
  state.runs.erase(state.runs.begin());
  const std::int64_t success_ms = run_number(1).start_ms + 1234;
  CHECK(summary_of(state).last_success_ms == success_ms);
  CHECK(summary_of(state).last_failure_ms == run_number(2).start_ms + 1234);
  CHECK(!overdue_since(summary_of(state), success_ms + 600'000));
  CHECK(overdue_since(summary_of(state), success_ms + 600'001) == 1ms);
  state.runs.pop_back();
  CHECK(overdue_since(summary_of(state), run_number(2).start_ms + 600'005) == 5ms);
  state.once = OnceSuccess{.at_ms = run_number(5).start_ms};
  CHECK(!overdue_since(summary_of(state), run_number(5).start_ms + 600'000));
}

TEST_CASE("kept runs: a job that was only ever skipped is overdue by the --every of its skips")
{
  LockState state{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = 0ms, .fence = 0};
  state.runs = {run_number(2, Outcome::skipped), run_number(1, Outcome::skipped)};
  state.runs[0].info->every = 10min;
  state.runs[1].info->every = 1min;
  const std::int64_t first_ms = run_number(1).start_ms;
  CHECK(!overdue_since(summary_of(state), first_ms + 600'000));
  CHECK(overdue_since(summary_of(state), first_ms + 600'001) == 1ms);
  state.runs.push_back(run_number(0));
  state.runs[2].info->every = 20min;
  CHECK(summary_of(state).every == 20min);  // of the run
}
