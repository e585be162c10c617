// SPDX-License-Identifier: Apache-2.0
// Waiters that are stopped, and continue when their turn is over; and waiters that are killed before they listen.
#include "support/guardian_of.h"
#include "support/integration.h"
#include "support/presences.h"
#include "support/queue_fixture.h"
#include "support/skip.h"
#include "support/slowness.h"

using namespace rlock::test;

namespace {

// Keeps a job running until open().
class Gate {
 public:
  [[nodiscard]] std::string work() const { return "; until [ -e " + m_file.string() + " ]; do sleep 0.02; done"; }
  void open() const { std::ofstream{m_file}; }

 private:
  std::filesystem::path m_file = make_temp_dir("gate") / "open";
};

// Stops the first waiter, and waits until the lock was handed to it.
void hand_to_stopped(const Process& holder, QueueFixture& queue)
{
  queue.await_subscriptions();
  stop_process(queue.waiters[0].pid());
  holder.signal(SIGTERM);
  wait_until([&] { return queue.holder() == queue.waiters[0].pid(); }, "it is its turn");
}

// Of the contract: how long silent waiters together delay the next one that lives.
constexpr auto most_delay = 4s;

constexpr auto longest_skip = 6s * slowness;  // until the waiter behind a silent one runs at all

// How long the lock stands still: from the end of the job before to the begin of the next.
std::chrono::steady_clock::duration time_to_next_job(const Process& holder, const QueueFixture& queue)
{
  const auto began = std::chrono::steady_clock::now();
  holder.signal(SIGTERM);
  wait_until([&] { return !queue.started_jobs().empty(); }, "the next job runs", 30s);
  return std::chrono::steady_clock::now() - began;
}

// Makes the waiters, in their order, come to the queue at this moment.
void arrive_now(const QueueFixture& queue)
{
  const auto time = as_texts(queue.server.command({"TIME"}));
  const long long now = std::stoll(time[0]) * 1'000'000 + std::stoll(time[1]);
  Words request{"ZADD", "rlock:queue:{k}"};
  for (const std::string& waiter : as_texts(queue.server.command({"ZRANGE", "rlock:queue:{k}", "0", "-1"}))) {
    request.insert(request.end(), {std::to_string(now + static_cast<long long>(request.size())), waiter});
  }
  queue.server.command(request);
}

// Eight waiters are stopped, and the lock ends with its ttl. `dies`: as its holder and its guardian are killed; or else it has none.
void check_end_without_release(bool dies)
{
  QueueFixture queue;
  Process holder = dies ? queue.hold("5s") : Process(queue.rlock("acquire", {"--lease", "5s"}));
  wait_until([&] { return as_int(queue.server.command({"EXISTS", "k"})) == 1; }, "the lock is taken");
  queue.add_waiters(9, ttl_of_silent());
  queue.await_subscriptions();
  for (std::size_t i = 0; i < 8; ++i) {
    stop_process(queue.waiters[i].pid());
  }
  if (dies) {
    ::kill(guardian_of(holder.pid()), SIGKILL);
    ::kill(holder.pid(), SIGKILL);
  }
  const auto began = std::chrono::steady_clock::now();
  const Millis left{as_int(queue.server.command({"PTTL", "k"}))};
  wait_until([&] { return !queue.started_jobs().empty(); }, "the next job runs", 30s);
  CHECK((std::chrono::steady_clock::now() - began < left + most_delay));
  CHECK(queue.started_jobs() == std::vector{8});
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("stopped waiter: any number of them delays the next one by four seconds at most, wherever it is in line")
{
  for (const int behind : {0, 3}) {
    CAPTURE(behind);
    QueueFixture queue;
    Process holder = queue.hold("30s");
    queue.add_waiters(8, ttl_of_silent());
    for (int i = 0; i <= behind; ++i) {
      queue.add_waiter(ttl_of_silent());
    }
    queue.await_subscriptions();
    for (std::size_t i = 0; i < queue.waiters.size(); ++i) {
      if (i != 8) {
        stop_process(queue.waiters[i].pid());
      }
    }
    CHECK((time_to_next_job(holder, queue) < most_delay));
    CHECK(queue.started_jobs() == std::vector{8});
  }
}

QUEUE_CASE("killed waiter: any number of them that had no time to listen delays the next one by four seconds at most")
{
  Process holder = queue.hold("30s");
  std::vector<Process> killed;
  for (std::int64_t i = 0; i < 5; ++i) {
    killed.emplace_back(queue.rlock("acquire", {"--lease", ttl_of_silent()}));
    wait_until([&] { return queue.queue_length() == i + 1; }, "it is in line");
  }
  queue.add_waiter(ttl_of_silent());
  queue.await_subscriptions(killed.size());
  for (Process& process : killed) {
    process.signal(SIGKILL);
    process.wait();
  }
  if (!ends_holds_with_clients()) {  // there their places in line end, whether they seem to listen or not
    wait_until([&] { return listening(queue.server) == 2; }, "the server knows that the killed ones listen no more");
  }
  arrive_now(queue);
  CHECK((time_to_next_job(holder, queue) < most_delay));
}

TEST_CASE(
    "stopped waiter: eight of them delay the next one by four seconds at most when the holder and its guardian die")
{
  check_end_without_release(true);
}

TEST_CASE("stopped waiter: eight of them delay the next one by four seconds at most when a lease ends")
{
  check_end_without_release(false);
}

TEST_CASE("stopped waiter: it is passed over, and is first again when it comes back")
{
  skip_if(ends_holds_with_clients(),
          "no waiter knows when the claim of a silent one ends, so the first one that looks then gets the lock");
  QueueFixture queue;
  const Gate gate;
  Process holder = queue.hold("30s");
  queue.add_waiter(ttl_of_silent());
  queue.add_waiter("30s", gate.work());
  queue.add_waiter(ttl_of_silent());
  hand_to_stopped(holder, queue);
  wait_until([&] { return queue.started_jobs() == std::vector{1}; }, "the one behind it runs", longest_skip);

  queue.waiters[0].signal(SIGCONT);
  wait_until([&] { return queue.queue_length() == 2; }, "it is queued again");
  gate.open();
  expect_ends(queue.waiters, 20s);
  CHECK(queue.started_jobs() == std::vector{1, 0, 2});
}

QUEUE_CASE("stopped waiter: back before its claim is over it runs in its turn")
{
  Process holder = queue.hold("30s");
  queue.add_waiter(ttl_of_silent());
  queue.add_waiter(ttl_of_silent());
  hand_to_stopped(holder, queue);
  queue.waiters[0].signal(SIGCONT);
  expect_ends(queue.waiters, 20s);
  CHECK(queue.started_jobs() == numbers_below(2));
}

QUEUE_CASE("stopped waiter: back when its time is over it starts nothing and takes nothing")
{
  const Gate gate;
  Process holder = queue.hold("30s");
  const Millis wait = 2s * slowness;
  const auto began = std::chrono::steady_clock::now();
  queue.add_waiter(ttl_of_silent(), "", {"-w", std::to_string(wait.count()) + "ms"});
  queue.add_waiter("30s", gate.work());
  hand_to_stopped(holder, queue);
  wait_until([&] { return queue.started_jobs() == std::vector{1}; }, "the one behind it runs", longest_skip);

  std::this_thread::sleep_until(began + wait + 1s);
  queue.waiters[0].signal(SIGCONT);
  CHECK(queue.waiters[0].wait() == exited(75));
  CHECK(queue.queue_length() == 0);
  CHECK(queue.holder() == queue.waiters[1].pid());
  gate.open();
  CHECK(queue.waiters[1].wait() == success);
  CHECK(queue.started_jobs() == std::vector{1});
}

QUEUE_CASE("stopped waiter: killed with the lock in its hands, it does not block the next")
{
  Process holder = queue.hold("30s");
  queue.add_waiter(ttl_of_silent());
  queue.add_waiter(ttl_of_silent());
  hand_to_stopped(holder, queue);
  queue.waiters[0].signal(SIGKILL);
  CHECK(queue.waiters[1].wait(longest_skip) == success);
  CHECK(queue.started_jobs() == std::vector{1});
}

TEST_SUITE_END();
