// SPDX-License-Identifier: Apache-2.0
// A stock in five segments, each with its lock: nothing is oversold, every segment is used, and a waiter gets the first
// lock that becomes free. Over 300 lines: every case needs the same helpers.
#include <array>
#include <cmath>
#include <numeric>

#include "support/activity_log.h"
#include "support/crowd.h"
#include "support/integration.h"
#include "support/slowness.h"
#include "support/topology.h"

using namespace rlock::test;

namespace {

constexpr int shards = 5;

std::string key(int shard) { return "stock:" + std::to_string(shard); }

std::vector<std::string> any_shard(const RedisServer& server, const std::vector<std::string>& options,
                                   const std::vector<std::string>& job)
{
  const Words any{"run", "-S", server.url(), "-k", "stock", "--shards", std::to_string(shards)};
  return rlock_argv(joined(any, with_job(options, job)));
}

std::string shell_line(const std::vector<std::string>& words)
{
  std::string line;
  for (const std::string& word : words) {
    line += "'" + word + "' ";
  }
  return line;
}

// A shard is a plain lock, held under its own name by rlock.
Process hold(const RedisServer& server, int shard)
{
  Process holder = start_on(server, {"run", "-k", key(shard), "--", "sleep", "100"});
  wait_until([&] { return as_int(server.command({"EXISTS", key(shard)})) == 1; }, "the shard is taken");
  return holder;
}

// Takes the lock of a shard as a foreign client.
void take(const RedisServer& server, int shard)
{
  server.command({"HSET", key(shard), "somebody:1", "1"});
  server.command({"PEXPIRE", key(shard), "60000"});
}

// Releases it as a foreign client.
void release_all(const RedisServer& server, int shard)
{
  server.command({"DEL", key(shard)});
  server.command({"PUBLISH", "redisson_lock__channel:{" + key(shard) + "}", "0"});
}

std::int64_t in_line(const RedisServer& server, int shard)
{
  return as_int(server.command({"ZCARD", "rlock:queue:{" + key(shard) + "}"}));
}

bool stand_in_every_line(const RedisServer& server, int waiters)
{
  skip_on_quorum("a quorum has no queue");
  for (int shard = 0; shard < shards; ++shard) {
    if (in_line(server, shard) != waiters) {
      return false;
    }
  }
  return true;
}

// All queues are empty, and no waiter's record is left.
void check_lines_are_left(const RedisServer& server)
{
  for (int shard = 0; shard < shards; ++shard) {
    CAPTURE(shard);
    CHECK(in_line(server, shard) == 0);
    for (const std::string& entry : as_texts(server.command({"HKEYS", "rlock:waiters:{" + key(shard) + "}"}))) {
      CHECK(entry.starts_with("#"));  // of all waiters together
    }
  }
}

// A segment is a file with a number, protected only by its lock; each use is recorded.
class Segments {
 public:
  explicit Segments(int each) : m_dir(make_temp_dir("segments"))
  {
    for (int shard = 0; shard < shards; ++shard) {
      std::ofstream(m_dir / std::to_string(shard)) << each << "\n";
    }
  }

  // Sells one item of the job's segment; ends with 3 when the segment is sold out.
  [[nodiscard]] std::vector<std::string> sale() const
  {
    return {"sh", "-c",
            "cd " + m_dir.string() +
                "; echo >> used.$RLOCK_SHARD; read n < $RLOCK_SHARD; [ \"$n\" -gt 0 ] || exit 3; "
                "echo $((n - 1)) > $RLOCK_SHARD; echo $RLOCK_SHARD >> sold"};
  }
  [[nodiscard]] int left(int shard) const
  {
    int count = -1;
    std::ifstream(m_dir / std::to_string(shard)) >> count;
    return count;
  }
  [[nodiscard]] int used(int shard) const { return lines("used." + std::to_string(shard)); }
  // What each segment has sold when the first of them has sold `each`. Sold-out segments get more visitors than others, because a visit
  // is over sooner.
  [[nodiscard]] std::array<int, shards> sold_until_one_is_out(int each) const
  {
    std::array<int, shards> sold{};
    std::ifstream file(m_dir / "sold");
    for (std::size_t shard = 0; file >> shard && ++sold.at(shard) < each;) {
    }
    return sold;
  }
  [[nodiscard]] int sold() const { return lines("sold"); }

 private:
  [[nodiscard]] int lines(const std::string& name) const
  {
    std::ifstream file(m_dir / name);
    int count = 0;
    for (std::string line; std::getline(file, line);) {
      ++count;
    }
    return count;
  }
  std::filesystem::path m_dir;
};

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("shards: forty sellers, five segments: all is sold, nothing twice, and every segment does its part")
{
  const int sellers = crowd_of(40);
  // A sale costs other stores than Redis some 90 ms of processor time: their client libraries, and 40 statements.
  const int sales = topology_kind() == TopologyKind::database ? 800 : 2000;
  const int each = sales / sellers;  // items of a seller; a sold-out segment sends it to another one
  const RedisServer server;
  const Segments segments(sales / shards);
  const std::string sale = shell_line(any_shard(server, {}, segments.sale()));
  const std::string seller = "left=" + std::to_string(each) + "; while [ $left -gt 0 ]; do " + sale +
                             "; case $? in 0) left=$((left - 1));; 3) ;; *) exit 1;; esac; done";
  std::vector<Process> crowd;
  for (int i = 0; i < sellers; ++i) {
    crowd.emplace_back(std::vector<std::string>{"sh", "-c", seller});
  }
  expect_ends(crowd, 100s * slowness);

  CHECK(segments.sold() == sales);
  const auto until_one_is_out = segments.sold_until_one_is_out(sales / shards);
  // Five standard deviations of as many fair choices among the segments.
  const double mean = std::accumulate(until_one_is_out.begin(), until_one_is_out.end(), 0.0) / shards;
  const double most_off = 5 * std::sqrt(mean * (1 - 1.0 / shards));
  for (int shard = 0; shard < shards; ++shard) {
    CAPTURE(shard);
    const int sold = until_one_is_out.at(static_cast<std::size_t>(shard));
    CHECK(segments.left(shard) == 0);
    CHECK(segments.used(shard) >= sold);
    CHECK_MESSAGE(std::abs(sold - mean) < most_off, sold, " sold, the mean is ", mean);
  }
  check_lines_are_left(server);
}

TEST_CASE("shards: never two in one shard, yet as many at once as there are shards")
{
  const RedisServer server;
  const ActivityLog activity;
  std::vector<Process> crowd;
  for (int i = 0; i < 40; ++i) {
    // beats under a name that only the job can know
    crowd.emplace_back(any_shard(server, {}, activity.short_job("shard${RLOCK_SHARD}-" + std::to_string(i), 60)));
  }
  expect_ends(crowd, 100s * slowness);
  std::map<std::string, std::map<std::string, Interval>> by_shard;
  for (const auto& [name, interval] : activity.jobs()) {
    by_shard[name.substr(0, name.find('-'))].emplace(name, interval);
  }
  CHECK(by_shard.size() == shards);
  std::size_t jobs = 0;
  for (const auto& entry : by_shard) {
    const auto& its_jobs = entry.second;
    CAPTURE(entry.first);
    CHECK(overlap(its_jobs) == "");
    jobs += its_jobs.size();
  }
  CHECK(jobs == 40);
  CHECK(overlap(activity.jobs()) != "");
}

TEST_CASE("shards: the job is told which one it has")
{
  const RedisServer server;
  for (int shard = 0; shard < 4; ++shard) {
    take(server, shard);
  }
  Process run(
      any_shard(server, {}, {"sh", "-c", "echo $RLOCK_SHARD $RLOCK_KEY; echo \"$RLOCK_HELD\" | cut -d ' ' -f 2"}));
  CHECK(run.wait() == success);
  CHECK(run.out() == "4 stock:4\nstock:4\n");
}

TEST_CASE("shards: a waiter gets the first free shard, and leaves all queues")
{
  for (int freed = 0; freed < shards; ++freed) {
    CAPTURE(freed);
    const RedisServer server;
    for (int shard = 0; shard < shards; ++shard) {
      take(server, shard);
    }
    Process waiter(any_shard(server, {}, {"sh", "-c", "echo $RLOCK_SHARD"}));
    wait_until([&] { return stand_in_every_line(server, 1); }, "the waiter stands in every line");
    release_all(server, freed);
    CHECK(waiter.wait() == success);
    CHECK(waiter.out() == std::to_string(freed) + "\n");
    check_lines_are_left(server);
  }
}

TEST_CASE("shards: all come free at once: the waiter takes one, the others are free for the next")
{
  const RedisServer server;
  for (int shard = 0; shard < shards; ++shard) {
    take(server, shard);
  }
  Process waiter(any_shard(server, {}, {"sleep", "100"}));
  wait_until([&] { return stand_in_every_line(server, 1); }, "the waiter stands in every line");
  for (int shard = 0; shard < shards; ++shard) {
    release_all(server, shard);
  }
  const auto held = [&] {
    std::int64_t count = 0;
    for (int shard = 0; shard < shards; ++shard) {
      count += as_int(server.command({"EXISTS", key(shard)}));
    }
    return count;
  };
  // The other locks become free before the waiter has left their queues.
  wait_until([&] { return held() == 1 && stand_in_every_line(server, 0); }, "one is held, and waited for is none");
  check_lines_are_left(server);
  std::vector<Process> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back(any_shard(server, {"-n"}, {"sleep", "100"}));
  }
  wait_until([&] { return held() == shards; }, "each has one");
  CHECK(Process(any_shard(server, {"-n"}, {"true"})).wait() == exited(75));
}

TEST_CASE("shards: the shard of a killed holder is handed to the waiter before its lease is over")
{
  const RedisServer server;
  std::vector<Process> holders;
  for (int shard = 0; shard < shards; ++shard) {
    holders.emplace_back(any_shard(server, {"--ttl", "60s"}, {"sh", "-c", "echo $RLOCK_SHARD; exec sleep 100"}));
  }
  for (const Process& holder : holders) {
    wait_until([&] { return !holder.out().empty(); }, "each has a shard");
  }
  Process waiter(any_shard(server, {}, {"sh", "-c", "echo $RLOCK_SHARD"}));
  wait_until([&] { return stand_in_every_line(server, 1); }, "the waiter stands in every line");
  holders[3].signal(SIGKILL);
  CHECK(waiter.wait(20s) == success);
  CHECK(waiter.out() == holders[3].out());
}

TEST_CASE("shards: -n, -w and a signal leave nothing behind")
{
  const RedisServer server;
  for (int shard = 0; shard < shards; ++shard) {
    take(server, shard);
  }
  Process now(any_shard(server, {"-n"}, {"true"}));
  CHECK(now.wait() == exited(75));
  CHECK(now.err().starts_with("rlock: stock (5 shards) is busy, held by somebody:1"));
  CHECK(Process(any_shard(server, {"-w", "300ms"}, {"true"})).wait() == exited(75));
  Process waiter(any_shard(server, {}, {"true"}));
  wait_until([&] { return stand_in_every_line(server, 1); }, "the waiter stands in every line");
  waiter.signal(SIGTERM);
  CHECK(waiter.wait() == died_of(SIGTERM));
  check_lines_are_left(server);
}

TEST_CASE("shards: connections, scripts and queues lost in the middle of the sale")
{
  struct Blow {
    std::string why;
    std::vector<std::string> words;
  };
  for (const Blow& blow :
       {Blow{"pubsub cut", {"CLIENT", "KILL", "TYPE", "pubsub"}},
        Blow{"connections cut", {"CLIENT", "KILL", "TYPE", "normal"}}, Blow{"scripts flushed", {"SCRIPT", "FLUSH"}},
        Blow{"queue lost", {"DEL", "rlock:queue:{stock:2}"}}}) {
    CAPTURE(blow.why);
    const RedisServer server;
    const Segments segments(100);
    std::vector<Process> holders, crowd;
    for (int shard = 0; shard < shards; ++shard) {
      holders.push_back(hold(server, shard));
    }
    for (int i = 0; i < 30; ++i) {
      crowd.emplace_back(any_shard(server, {"--ttl", "5s"}, {"sh", "-c", segments.sale().back() + "; sleep 0.05"}));
    }
    wait_until([&] { return stand_in_every_line(server, 30); }, "all wait");
    for (const Process& holder : holders) {
      holder.signal(SIGTERM);
    }
    wait_until([&] { return segments.sold() >= 8; }, "the sale is under way");
    server.command(blow.words);
    expect_ends(crowd, 60s);
    int left = 0;
    for (int shard = 0; shard < shards; ++shard) {
      left += segments.left(shard);
    }
    CHECK(segments.sold() == 30);
    CHECK(left == shards * 100 - 30);
  }
}

TEST_SUITE_END();
