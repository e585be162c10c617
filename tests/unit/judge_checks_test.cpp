// SPDX-License-Identifier: Apache-2.0
// The checks of the judge on records made by hand: each promise kept, and each promise broken.
#include "judge/checks.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace rlock;
using namespace rlock::judge;

namespace {

Instant at(int ms) { return Instant(Millis(100'000 + ms)); }

// A job that ran from `begin` to `last` and ended by itself with 0.
RunRecord ran(std::size_t id, int begin, int last, std::uint64_t fence)
{
  RunRecord run;
  run.id = id;
  run.keys = {"k"};
  run.ttl = Millis(1000);
  run.spawned = at(begin - 10);
  run.ended = at(last + 5);
  run.exit = test::Exit{.code = 0, .signal = 0};
  run.evidence.begin = Evidence::Begin{at(begin), 1, fence, "k"};
  run.evidence.end = Evidence::End{at(last), 0};
  run.evidence.last = at(last);
  return run;
}

// A job that was stopped at `last`, because its lock was lost.
RunRecord lost(std::size_t id, int begin, int last, std::uint64_t fence)
{
  RunRecord run = ran(id, begin, last, fence);
  run.evidence.end.reset();
  run.exit = test::Exit{.code = 121, .signal = 0};
  return run;
}

RunRecord with(RunRecord run, Target target, int number, int ms)
{
  run.signals.push_back({at(ms), target, number});
  return run;
}

RunRecord of_kind(RunRecord run, Kind kind, unsigned permits = 1)
{
  run.kind = kind;
  run.permits = permits;
  return run;
}

RunRecord of_form(RunRecord run, JobForm form)
{
  run.form = form;
  return run;
}

RunRecord ended(RunRecord run, int code, int signal = 0)
{
  run.exit = test::Exit{.code = code, .signal = signal};
  return run;
}

FaultRecord fault(Excuse excuse, int begin, int end, std::string key = "k")
{
  return {.name = "fault", .excuse = excuse, .key = std::move(key), .begin = at(begin), .end = at(end)};
}

Records records(std::vector<RunRecord> runs, std::vector<FaultRecord> faults = {}, std::vector<Stall> stalls = {})
{
  return {std::move(runs), std::move(faults), std::move(stalls)};
}

std::size_t overlaps(const Records& all) { return check_overlaps(all).violations.size(); }
std::size_t wrong_exits(const RunRecord& run) { return check_exits(records({run})).size(); }

}  // namespace

TEST_CASE("judge: two jobs at the same time are an overlap, one after the other are none")
{
  CHECK(overlaps(records({ran(1, 0, 100, 5), ran(2, 101, 200, 6)})) == 0);
  CHECK(overlaps(records({ran(1, 0, 100, 5), ran(2, 99, 200, 6)})) == 1);
  CHECK(overlaps(records({ran(2, 99, 200, 6), ran(1, 0, 100, 5)})) == 1);  // in any order
}

TEST_CASE("judge: an overlap with a holder that began long before is found")
{
  CHECK(overlaps(records({ran(1, 0, 500, 5), of_kind(ran(2, 100, 110, 6), Kind::reader), ran(3, 300, 310, 7)})) == 2);
}

TEST_CASE("judge: readers share, a writer does not")
{
  const RunRecord reader = of_kind(ran(1, 0, 100, 5), Kind::reader);
  CHECK(overlaps(records({reader, of_kind(ran(2, 50, 150, 6), Kind::reader)})) == 0);
  CHECK(overlaps(records({reader, of_kind(ran(2, 50, 150, 6), Kind::writer)})) == 1);
  CHECK(overlaps(records({reader, ran(2, 50, 150, 6)})) == 1);
}

TEST_CASE("judge: no more holders than permits")
{
  const auto permit = [](std::size_t id, int begin) { return of_kind(ran(id, begin, 100, id), Kind::permits, 2); };
  CHECK(overlaps(records({permit(1, 0), permit(2, 50)})) == 0);
  CHECK(overlaps(records({permit(1, 0), permit(2, 50), permit(3, 60)})) == 1);
}

TEST_CASE("judge: a job under several locks holds each of them")
{
  RunRecord several = of_kind(ran(1, 0, 100, 5), Kind::several);
  several.keys = {"k", "l"};
  RunRecord other = ran(2, 50, 60, 6);
  other.evidence.begin->key = "l";
  CHECK(overlaps(records({several, other})) == 1);
}

TEST_CASE("judge: a fault that removes locks excuses an overlap when it came between the begins")
{
  const std::vector<RunRecord> runs{lost(1, 0, 400, 5), ran(2, 200, 500, 6)};
  CHECK(overlaps(records(runs, {fault(Excuse::data_loss, 100, 101)})) == 0);
  CHECK(overlaps(records(runs, {fault(Excuse::data_loss, 100, 101, "")})) == 0);
  CHECK(check_overlaps(records(runs, {fault(Excuse::data_loss, 100, 101)})).excused.at("fault") == 1);
  CHECK(overlaps(records(runs, {fault(Excuse::none, 100, 101)})) == 1);
  CHECK(overlaps(records(runs, {fault(Excuse::data_loss, 100, 101, "other")})) == 1);
  CHECK(overlaps(records(runs, {fault(Excuse::data_loss, 201, 300)})) == 1);
  CHECK(overlaps(records(runs, {fault(Excuse::data_loss, -3000, -2900)})) == 1);
}

TEST_CASE("judge: an excused overlap must be short, told and caught by the fence")
{
  const std::vector<FaultRecord> removed{fault(Excuse::data_loss, 100, 101)};
  const RunRecord winner = ran(2, 200, 3000, 6);
  CHECK(overlaps(records({lost(1, 0, 1240, 5), winner}, removed)) == 0);
  CHECK(overlaps(records({lost(1, 0, 1260, 5), winner}, removed)) == 1);
  CHECK(overlaps(records({lost(1, 0, 1260, 5), winner}, removed, {{at(300), at(400)}})) == 0);  // the machine stalled
  CHECK(overlaps(records({lost(1, 0, 400, 6), winner}, removed)) == 1);
  CHECK(overlaps(records({lost(1, 0, 400, 5), winner}, {fault(Excuse::lost_count, 100, 101)})) == 1);
  CHECK(overlaps(records({ran(1, 0, 400, 5), winner}, removed)) == 1);
}

TEST_CASE("judge: after a fail-over a job may end before its rlock learns of the loss")
{
  const std::vector<FaultRecord> promoted{fault(Excuse::fail_over, 100, 101)};
  const RunRecord winner = ran(2, 200, 3000, 6);
  CHECK(overlaps(records({ran(1, 0, 400, 5), winner}, promoted)) == 0);
  CHECK(overlaps(records({ended(lost(1, 0, 400, 5), 0), winner}, promoted)) ==
        1);  // it was stopped, and says that it was not
  CHECK(overlaps(records({ran(1, 0, 1700, 5), winner}, promoted)) == 1);
  CHECK(overlaps(records({ran(1, 0, 400, 6), winner}, promoted)) == 1);
}

TEST_CASE("judge: after a fail-over the later holder may be the loser, because an old master granted the lock")
{
  const std::vector<FaultRecord> promoted{fault(Excuse::fail_over, 100, 101)};
  const RunRecord winner = ran(1, 0, 3000, 5);
  CHECK(overlaps(records({winner, lost(2, 200, 400, 6)}, promoted)) == 0);
  CHECK(overlaps(records({winner, lost(2, 200, 400, 6)}, {fault(Excuse::data_loss, 100, 101)})) == 1);
  CHECK(overlaps(records({winner, lost(2, 200, 400, 5)}, promoted)) == 1);
  CHECK(overlaps(records({winner, ran(2, 200, 2000, 6)}, promoted)) == 1);
  const std::vector<RunRecord> swapped{ran(1, 0, 3000, 6), lost(2, 200, 400, 5)};
  CHECK(overlaps(records(swapped, promoted)) == 0);
  CHECK(check_fences(records(swapped, promoted)).empty());
  CHECK(check_fences(records(swapped, {fault(Excuse::fail_over, 300, 301)})).size() == 1);
}

TEST_CASE("judge: a fixed lease may tell its loss with 124")
{
  RunRecord fixed = ended(lost(1, 0, 400, 5), 124);
  CHECK(overlaps(records({fixed, ran(2, 200, 500, 6)}, {fault(Excuse::data_loss, 100, 101)})) == 1);
  fixed.fixed = true;
  CHECK(overlaps(records({fixed, ran(2, 200, 500, 6)}, {fault(Excuse::data_loss, 100, 101)})) == 0);
}

TEST_CASE("judge: a script holds the lock until its keeper is killed")
{
  const RunRecord script = of_kind(ran(1, 0, 500, 5), Kind::script);
  CHECK(overlaps(records({script, ran(2, 200, 300, 6)})) == 1);
  CHECK(overlaps(records({with(script, Target::keeper, SIGKILL, 150), ran(2, 200, 300, 6)})) == 0);
}

TEST_CASE("judge: the fence grows")
{
  const auto wrong = [](std::uint64_t first, std::uint64_t second) {
    return check_fences(records({ran(1, 0, 100, first), ran(2, 200, 300, second)})).size();
  };
  CHECK(wrong(5, 6) == 0);
  CHECK(wrong(5, 5) == 1);
  CHECK(wrong(6, 5) == 1);
  const auto first = of_kind(ran(1, 0, 100, 6), Kind::reader);
  CHECK(check_fences(records({first, of_kind(ran(2, 1, 100, 5), Kind::reader)})).empty());  // granted together
  CHECK(check_fences(records({first, ran(2, 200, 300, 5)})).size() == 1);
}

TEST_CASE("judge: a lock that was taken before its job began excuses its lower fence")
{
  const auto fences = [](const RunRecord& late, const FaultRecord& taken) {
    return check_fences(records({ran(1, 200, 400, 6), late}, {taken})).size();
  };
  const RunRecord told = lost(2, 300, 350, 5);
  CHECK(fences(told, fault(Excuse::data_loss, 100, 110)) == 0);
  CHECK(fences(told, fault(Excuse::data_loss, 100, 110, "")) == 1);
  CHECK(fences(told, fault(Excuse::data_loss, 310, 320)) == 1);
  CHECK(fences(told, fault(Excuse::none, 100, 110)) == 1);
  CHECK(fences(ended(ran(2, 300, 350, 5), 0), fault(Excuse::data_loss, 100, 110)) == 1);
}

TEST_CASE("judge: a clock that went back excuses a fence only with a lost counter")
{
  const auto micros = [](int ms) {
    return static_cast<std::uint64_t>(at(ms).time_since_epoch() / std::chrono::microseconds(1));
  };
  const std::vector<RunRecord> runs{ran(1, 0, 100, micros(-50)), ran(2, 200, 300, micros(-60))};
  CHECK(check_fences(records(runs, {fault(Excuse::clock, 110, 120)})).size() == 1);
  CHECK(check_fences(records(runs, {fault(Excuse::clock, 110, 120), fault(Excuse::data_loss, 130, 140)})).empty());
  CHECK(check_fences(records(runs, {fault(Excuse::clock, 110, 120), fault(Excuse::lost_count, 130, 140)})).empty());
  CHECK(check_fences(records(runs, {fault(Excuse::lost_count, 130, 140)})).size() == 1);
  // A counter that begins anew is not the time of any clock.
  const std::vector<RunRecord> counted{ran(1, 0, 100, 6), ran(2, 200, 300, 1)};
  CHECK(check_fences(records(counted, {fault(Excuse::clock, 110, 120), fault(Excuse::lost_count, 130, 140)})).size() ==
        1);
}

TEST_CASE("judge: the queue is first come, first served")
{
  const auto waiter = [](std::size_t id, int spawned, int queued, int begin) {
    RunRecord run = ran(id, begin, begin + 10, id);
    run.spawned = at(spawned);
    run.queued = at(queued);
    run.patient = true;
    return run;
  };
  const RunRecord first = waiter(1, 0, 10, 200);
  const auto wrong = [](const RunRecord& one, const RunRecord& other) {
    return check_queue(records({one, other})).violations.size();
  };
  CHECK(wrong(first, waiter(2, 20, 30, 300)) == 0);
  CHECK(wrong(first, waiter(2, 20, 30, 100)) == 1);
  CHECK(wrong(first, waiter(2, 5, 15, 100)) == 0);  // came before the first was surely in line
  CHECK(wrong(with(first, Target::runner, SIGSTOP, 50), waiter(2, 20, 30, 100)) == 0);
  const auto beside = [&](const std::string& key) {
    const RunRecord second = waiter(2, 20, 30, 100);
    return check_queue(records({first, second}, {fault(Excuse::none, 50, 60, key)})).violations.size();
  };
  CHECK(beside("k") == 0);
  CHECK(beside("") == 0);
  CHECK(beside("other") == 1);
}

TEST_CASE("judge: the exit code is the job's or says why it is not")
{
  CHECK(wrong_exits(ran(1, 0, 100, 5)) == 0);
  CHECK(wrong_exits(ended(ran(1, 0, 100, 5), 3)) == 1);
  CHECK(wrong_exits(ended(ran(1, 0, 100, 5), 75)) == 1);   // busy, but its job ran
  CHECK(wrong_exits(ended(ran(1, 0, 100, 5), 69)) == 1);   // unreachable, but its job ran
  CHECK(wrong_exits(ended(ran(1, 0, 100, 5), 124)) == 1);  // it had no time limit
  CHECK(wrong_exits(ended(lost(1, 0, 100, 5), 0)) == 1);   // its job was stopped
  CHECK(wrong_exits(lost(1, 0, 100, 5)) == 0);
  CHECK(wrong_exits(ended(lost(1, 0, 100, 5), 70)) == 1);
  CHECK(wrong_exits(ended(lost(1, 0, 100, 5), -1, SIGKILL)) == 1);
  CHECK(wrong_exits(with(ended(lost(1, 0, 100, 5), -1, SIGKILL), Target::job, SIGKILL, 100)) == 0);
  CHECK(wrong_exits(with(ended(lost(1, 0, 100, 5), -1, SIGKILL), Target::runner, SIGTERM, 50)) == 0);  // --kill-after
  CHECK(wrong_exits(with(ended(lost(1, 0, 100, 5), -1, SIGKILL), Target::job, SIGTERM, 50)) == 1);
  CHECK(wrong_exits(ended(lost(1, 0, 100, 5), 71)) == 1);
  CHECK(wrong_exits(with(ended(lost(1, 0, 100, 5), 71), Target::guardian, SIGKILL, 100)) == 0);
  CHECK(check_exits(records({ended(lost(1, 0, 100, 5), 71)}, {}, {{at(0), at(200)}})).empty());  // a starved guardian
}

TEST_CASE("judge: a caller of rlock once without a job may end as one whose job failed")
{
  const RunRecord failed =
      of_kind(with(ended(lost(1, 0, 100, 5), -1, SIGTERM), Target::runner, SIGTERM, 50), Kind::once);
  RunRecord run = of_kind(ended(ran(2, 50, 100, 6), 143), Kind::once);
  run.evidence = {};
  CHECK(check_exits(records({failed, run})).empty());
  CHECK(check_exits(records({failed, ended(run, 3)})).size() == 1);
  CHECK(check_exits(records({run})).size() == 1);
  CHECK(check_exits(records({failed, of_kind(run, Kind::plain)})).size() == 1);
}

TEST_CASE("judge: a run without a job is busy, unreachable or told to stop")
{
  RunRecord run = ran(1, 0, 100, 5);
  run.evidence = {};
  CHECK(wrong_exits(run) == 1);
  CHECK(wrong_exits(of_kind(run, Kind::once)) == 0);
  CHECK(wrong_exits(ended(run, 75)) == 0);
  CHECK(wrong_exits(ended(run, 69)) == 0);
  CHECK(wrong_exits(ended(run, -1, SIGTERM)) == 1);
  CHECK(wrong_exits(with(ended(run, -1, SIGTERM), Target::runner, SIGTERM, 50)) == 0);
  run.patient = true;
  CHECK(wrong_exits(ended(run, 75)) == 1);
  run.exit.reset();
  CHECK(wrong_exits(run) == 1);
}

TEST_CASE("judge: a loss has a cause")
{
  const RunRecord run = lost(1, 0, 100, 5);
  CHECK(check_losses(records({run})).violations.size() == 1);
  CHECK(check_losses(records({run}, {fault(Excuse::none, 50, 60)})).violations.empty());
  CHECK(check_losses(records({run}, {fault(Excuse::none, 50, 60, "")})).violations.empty());
  CHECK(check_losses(records({run}, {fault(Excuse::none, 50, 60, "k:1")})).violations.empty());  // of a shard
  CHECK(check_losses(records({run}, {fault(Excuse::none, 50, 60, "another")})).violations.size() == 1);
  CHECK(check_losses(records({run}, {}, {{at(0), at(200)}})).violations.empty());
  Records slow = records({run});
  slow.server_stalls = {{at(0), at(200)}};
  CHECK(check_losses(slow).violations.empty());
  CHECK(check_losses(records({with(run, Target::runner, SIGSTOP, 10)})).violations.empty());
}

TEST_CASE("judge: a job dies with its killed rlock")
{
  const auto wrong = [](const RunRecord& run) { return check_deaths(records({run})).violations.size(); };
  CHECK(wrong(with(lost(1, 0, 130, 5), Target::runner, SIGKILL, 100)) == 0);
  CHECK(wrong(with(lost(1, 0, 450, 5), Target::runner, SIGKILL, 100)) == 1);
  const RunRecord late = with(lost(1, 0, 450, 5), Target::runner, SIGKILL, 100);
  CHECK(check_deaths(records({late}, {}, {{at(100), at(120)}})).violations.empty());
  CHECK(check_deaths(records({late}, {}, {{at(100), at(110)}})).violations.size() == 1);
  CHECK(wrong(with(lost(1, 0, 700, 5), Target::runner, SIGKILL, 100)) == 1);
  CHECK(wrong(with(lost(1, 0, 700, 5), Target::guardian, SIGKILL, 100)) == 1);
  CHECK(wrong(with(with(lost(1, 0, 700, 5), Target::runner, SIGKILL, 100), Target::guardian, SIGSTOP, 90)) == 0);
}

TEST_CASE("judge: a job is dead before the lease of its stopped rlock ends")
{
  const auto wrong = [](const RunRecord& run) { return check_deaths(records({run})).violations.size(); };
  CHECK(wrong(with(lost(1, 0, 1090, 5), Target::runner, SIGSTOP, 100)) == 0);
  CHECK(wrong(with(lost(1, 0, 1110, 5), Target::runner, SIGSTOP, 100)) == 1);
  const RunRecord both = with(lost(1, 0, 1110, 5), Target::runner, SIGSTOP, 100);
  CHECK(wrong(with(both, Target::guardian, SIGSTOP, 100)) == 1);
  CHECK(wrong(with(both, Target::runner, SIGCONT, 500)) == 0);  // it renewed again
  RunRecord longer = both;
  longer.evidence.begin->lease = Millis(2000);  // etcd gives no shorter one
  CHECK(wrong(longer) == 0);
  CHECK(wrong(with(lost(1, 0, 2110, 5), Target::runner, SIGSTOP, 100)) == 1);
}

TEST_CASE("judge: a job that outlasts KILL keeps its lock, and only a loss that was told excuses an overlap")
{
  for (const JobForm form : {JobForm::frozen, JobForm::hidden}) {
    RunRecord run = of_form(lost(1, 0, 3000, 5), form);
    run.limited = true;
    const RunRecord winner = ran(2, 200, 300, 6);
    const auto overlaps_of = [&](int code, Excuse excuse, std::uint64_t fence) {
      Records all = records({ended(run, code), ran(2, 200, 300, fence)}, {fault(excuse, 100, 101)});
      all.freezes = {{at(50), at(3000)}};
      return overlaps(all);
    };
    CHECK(overlaps(records({ended(run, 121), winner})) == 1);  // the lock was released, or left to its ttl
    CHECK(overlaps_of(121, Excuse::none, 6) == 0);             // its rlock could not renew
    CHECK(overlaps_of(124, Excuse::none, 6) == 1);
    CHECK(overlaps_of(121, Excuse::none, 4) == 1);
    CHECK(overlaps_of(121, Excuse::data_loss, 6) == 0);
  }
}

TEST_CASE("judge: a frozen file system gives its jobs the time of its freezes, and no other jobs")
{
  const auto wrong = [](JobForm form, const std::vector<Stall>& freezes) {
    Records all =
        records({of_form(lost(1, 0, 3000, 5), form), ran(2, 200, 300, 6)}, {fault(Excuse::data_loss, 100, 101)});
    all.freezes = freezes;
    return overlaps(all);
  };
  CHECK(wrong(JobForm::frozen, {}) == 1);
  CHECK(wrong(JobForm::frozen, {{at(300), at(1000)}}) == 1);
  CHECK(wrong(JobForm::frozen, {{at(300), at(3000)}}) == 0);
  CHECK(wrong(JobForm::timeout, {{at(300), at(3000)}}) == 1);
}

TEST_CASE("judge: a shell tells of the death of its command by 128 and the number of the signal, setsid by the number")
{
  const RunRecord killed = with(ended(lost(1, 0, 100, 5), 137), Target::job, SIGKILL, 100);
  CHECK(wrong_exits(killed) == 1);
  CHECK(wrong_exits(of_form(killed, JobForm::timeout)) == 0);
  CHECK(wrong_exits(of_form(ended(killed, 143), JobForm::timeout)) == 1);
  CHECK(wrong_exits(of_form(ended(killed, 9), JobForm::timeout)) == 1);
  CHECK(wrong_exits(of_form(ended(killed, 9), JobForm::setsid_wait)) == 0);
  CHECK(wrong_exits(of_form(ended(lost(1, 0, 100, 5), 137), JobForm::timeout)) == 1);
}

TEST_CASE("judge: a job in a session of its own dies with its rlock, and one that outlasts KILL cannot")
{
  const auto wrong = [](JobForm form) {
    return check_deaths(records({of_form(with(lost(1, 0, 450, 5), Target::runner, SIGKILL, 100), form)}))
        .violations.size();
  };
  CHECK(wrong(JobForm::setsid_wait) == 1);
  CHECK(wrong(JobForm::timeout) == 1);
  CHECK(wrong(JobForm::hidden) == 0);
  CHECK(wrong(JobForm::frozen) == 0);
}
