// SPDX-License-Identifier: Apache-2.0
// First come, first served, without the dead waiters, whatever happens to messages, connections and the queue itself.
#include "base/defaults.h"
#include "support/activity_log.h"
#include "support/crowd.h"
#include "support/integration.h"
#include "support/presences.h"
#include "support/queue_fixture.h"

#include "lock/requests.h"

using namespace rlock::test;

namespace {

// Strikes while twelve waiters have the lock one after the other. Each of them runs once, and no two at the same time.
void drain_under(QueueFixture& queue, const std::function<void()>& strike)
{
  const ActivityLog activity;
  Process holder = queue.hold("5s");
  for (int i = 0; i < 12; ++i) {
    queue.add_waiter("5s", "; " + activity.short_job("w" + std::to_string(i), 60).back());
  }
  queue.await_subscriptions();
  holder.signal(SIGTERM);
  wait_until([&] { return queue.started_jobs().size() >= 4; }, "the drain is under way");
  strike();
  expect_ends(queue.waiters, 60s);
  std::vector<int> ran = queue.started_jobs();
  std::sort(ran.begin(), ran.end());
  CHECK(ran == numbers_below(12));
  CHECK(overlap(activity.jobs()) == "");
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("queue: two hundred behind one holder run in order of arrival, each once")
{
  const int crowd = crowd_of(200);
  QueueFixture queue;
  Process holder = queue.hold("30s");
  queue.add_waiters(crowd);
  queue.await_subscriptions();
  holder.signal(SIGTERM);
  expect_ends(queue.waiters, 60s);
  std::vector<int> started = queue.started_jobs();
  // The others are passed while they sleep, if the holder has held the lock long enough.
  const int in_order = far_waiters_may_sleep() ? static_cast<int>(listening_waiters) : crowd;
  CHECK(std::vector(started.begin(), started.begin() + std::min<std::ptrdiff_t>(std::ssize(started), in_order)) ==
        numbers_below(std::min(crowd, in_order)));
  std::ranges::sort(started);
  CHECK(started == numbers_below(crowd));
  CHECK(queue.queue_length() == 0);
}

TEST_CASE("queue: a waiter's life is three scripts and a subscription, however many wait")
{
  for (const int crowd : {10, 80}) {
    CAPTURE(crowd);
    QueueFixture queue;
    Process holder = queue.hold("30s");
    const auto began = std::chrono::steady_clock::now();
    queue.add_waiters(crowd);
    queue.await_subscriptions();
    // Each asks again after ten seconds, which pass below a sanitizer.
    const auto again = crowd * ((std::chrono::steady_clock::now() - began) / look_again_after);
    const auto arrived = calls_of(queue.server, "evalsha");
    holder.signal(SIGTERM);
    for (Process& waiter : queue.waiters) {
      waiter.wait(60s);
    }
    // The holder: acquire (twice, because the script is unknown at first), a check when it subscribed, release (twice).
    // Scripts that were unknown are sent again as EVAL, which is not counted here. A job that takes longer than 200 ms
    // on a busy machine costs one more check of its hand-over, and subscribes to the takings and releases: some may.
    const int slow = crowd / 2;
    CHECK(calls_of(queue.server, "evalsha") <= 3 * crowd + 4 + slow + again);
    CHECK(arrived <= crowd + 3 + again);
    CHECK(calls_of(queue.server, "subscribe") <= crowd + 2 + 2 * slow + again);
  }
}

QUEUE_CASE("queue: every third waiter killed, one stopped: the others run in order")
{
  Process holder = queue.hold("30s");
  queue.add_waiters(30, ttl_of_silent("8s"));
  queue.await_subscriptions();
  for (std::size_t i = 0; i < queue.waiters.size(); i += 3) {
    queue.waiters[i].signal(SIGKILL);
  }
  queue.waiters[10].signal(SIGSTOP);
  holder.signal(SIGTERM);
  for (std::size_t i = 0; i < queue.waiters.size(); ++i) {
    if (i % 3 != 0 && i != 10) {
      CHECK(queue.waiters[i].wait(30s) == success);
    }
  }
  std::vector<int> expected = numbers_below(30);
  std::erase_if(expected, [](int number) { return number % 3 == 0 || number == 10; });
  CHECK(queue.started_jobs() == expected);

  queue.waiters[10].signal(SIGCONT);
  CHECK(queue.waiters[10].wait(20s) == success);  // late, but in its turn
  expected.push_back(10);
  CHECK(queue.started_jobs() == expected);
}

TEST_CASE("queue: waiters of each kind run in order of arrival, also when the holder is killed")
{
  struct Row {
    Words kind;
    const char* queue;
    bool has_another;  // holder beside the first one: its permit stays taken, so that the waiters follow one by one
  };
  for (const Row& row :
       {Row{{"-x"}, "rlock:queue-rw:{k}", false}, Row{{"--permits", "2"}, "rlock:queue-permits:{k}", true},
        Row{{"--format", "string"}, "rlock:queue-string:{k}", false}}) {
    CAPTURE(row.queue);
    const QueueFixture queue;
    const ActivityLog activity;
    const Words options = joined({"--ttl", "3s"}, row.kind);
    std::optional<Process> another;
    if (row.has_another) {
      another = queue.start(options, {"sleep", "60"});
      wait_until([&] { return listening(queue.server) == 1; }, "another holder has it");
    }
    Process victim = queue.start(options, activity.stubborn_tree("victim"));
    wait_until([&] { return activity.tree_beats("victim"); }, "the job's tree runs");
    std::vector<Process> waiters;
    for (int i = 0; i < 8; ++i) {
      waiters.push_back(queue.start(options, activity.short_job("w" + std::to_string(i), 40)));
      wait_until([&] { return as_int(queue.server.command({"ZCARD", row.queue})) == i + 1; }, "one more waits");
    }
    victim.signal(SIGKILL);
    expect_ends(waiters, 20s);
    const auto jobs = activity.jobs();
    CHECK(overlap(jobs) == "");
    for (int i = 0; i + 1 < 8; ++i) {
      CHECK(jobs.at("w" + std::to_string(i)).first_ns < jobs.at("w" + std::to_string(i + 1)).first_ns);
    }
  }
}

QUEUE_CASE("queue: the holder killed and the first waiter as well: the next runs when the lease is over")
{
  Process holder = queue.hold("2s");
  queue.add_waiters(3);
  queue.await_subscriptions();
  queue.waiters[0].signal(SIGSTOP);  // so that it begins no job between the two signals
  holder.signal(SIGKILL);
  queue.waiters[0].signal(SIGKILL);
  const auto from = std::chrono::steady_clock::now();
  CHECK(queue.waiters[1].wait(20s) == success);
  CHECK(std::chrono::steady_clock::now() - from < 2s + 2s);
  CHECK(queue.waiters[2].wait(20s) == success);
  CHECK(queue.started_jobs() == std::vector<int>{1, 2});
}

TEST_CASE("queue: connections cut, scripts and queue flushed in the middle of a drain")
{
  struct Blow {
    std::string why;
    std::vector<std::string> words;
  };
  for (const Blow& blow :
       {Blow{"pubsub cut", {"CLIENT", "KILL", "TYPE", "pubsub"}},
        Blow{"connections cut", {"CLIENT", "KILL", "TYPE", "normal"}}, Blow{"scripts flushed", {"SCRIPT", "FLUSH"}},
        Blow{"queue lost", {"DEL", "rlock:queue:{k}"}}}) {
    CAPTURE(blow.why);
    QueueFixture queue;
    drain_under(queue, [&] {
      const Reply struck = queue.server.command(blow.words);
      CAPTURE(show(struck));
      CHECK((struck.text == "OK" || struck.integer > 0));  // it hit something
    });
  }
}

TEST_CASE("queue: the server restarted with its file in the middle of a drain")
{
  QueueFixture queue({.args = {"--appendonly", "yes", "--appendfsync", "always"}});
  drain_under(queue, [&] {
    queue.server.kill_hard();
    queue.server.restart();
  });
}

QUEUE_CASE("queue: twenty waiters whose -w ends leave in time, and leave nothing on the server")
{
  Process holder = queue.hold("30s");
  std::vector<Process> waiters;
  const auto from = std::chrono::steady_clock::now();
  for (int i = 1; i <= 20; ++i) {
    waiters.emplace_back(queue.rlock("run", {"-w", std::to_string(i * 200) + "ms", "--", "true"}));
  }
  for (int i = 1; i <= 20; ++i) {
    CAPTURE(i);
    CHECK(waiters[static_cast<std::size_t>(i - 1)].wait(20s) == exited(75));
    const auto waited = std::chrono::steady_clock::now() - from;
    CHECK(waited >= i * 200ms);
    CHECK(waited < i * 200ms + 3s);  // on a busy machine; bench measures how late it really is
  }
  CHECK(queue.queue_length() == 0);
  const auto notes = as_texts(queue.server.command({"HKEYS", "rlock:waiters:{k}"}));
  CHECK(notes == std::vector<std::string>{"#gone"});  // the answer to a request that is sent twice; it has a ttl
  CHECK(as_int(queue.server.command({"PTTL", "rlock:waiters:{k}"})) > 0);
}

QUEUE_CASE("queue: --min-hold keeps the lock by its ttl, and the queue knows when it ends")
{
  Process holder(queue.rlock("run", {"--min-hold", "1500ms", "--", "true"}));
  CHECK(holder.wait() == success);
  const std::int64_t left = as_int(queue.server.command({"PTTL", "k"}));
  CHECK(left > 500);
  CHECK(left <= 1500);
  CHECK(Process(queue.rlock("run", {"-n", "--", "true"})).wait() == exited(75));
  queue.add_waiter();
  CHECK(queue.waiters[0].wait(5s) == success);
}

TEST_SUITE_END();
