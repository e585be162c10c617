// SPDX-License-Identifier: Apache-2.0
// The cost of waiting: how many requests silent waiters send, how much memory waiting and holding take, and how late a
// waiter whose time is over gives up.
//
//   rlock_idle RLOCK [WAITING [SECONDS]]      starts a redis-server, which ends with it
#include "bench/lab.h"
#include "support/guardian_of.h"
#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace rlock::bench;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

// A holder, and waiters behind it that are never served.
struct Standstill {
  Standstill(std::string program, int waiting) : rlock(std::move(program)), holder(words({"sleep", "1000"}))
  {
    wait_until([&] { return as_int(server.command({"EXISTS", "bench"})) == 1; }, "the lock is taken");
    for (int i = 0; i < waiting; ++i) {
      waiters.emplace_back(words({"true"}));
    }
    // each on a channel of its own, also the holder
    wait_until([&] { return listening() == waiting + 1; }, "all listen", 120s);
  }

  [[nodiscard]] Words words(const Words& job, const Words& options = {}) const
  {
    return Words{rlock, "run", "-S", server.url(), "-k", "bench"} + options + Words{"--"} + job;
  }
  [[nodiscard]] int listening() const
  {
    return static_cast<int>(as_texts(server.command({"PUBSUB", "CHANNELS", "rlock:owner:*"})).size());
  }

  const RedisServer server{{.args = {"--maxclients", "5000"}}};
  const std::string rlock;
  Process holder;
  std::vector<Process> waiters;
};

std::int64_t all_calls(const RedisServer& server)
{
  const std::string stats = as_text(server.command({"INFO", "commandstats"}));
  const std::string mark = ":calls=";
  std::int64_t sum = 0;
  for (auto at = stats.find(mark); at != std::string::npos; at = stats.find(mark, at + 1)) {
    sum += std::stoll(stats.substr(at + mark.size()));
  }
  return sum;
}

void count_commands(const std::string& rlock, int waiting, int seconds)
{
  const Standstill still(rlock, waiting);
  std::this_thread::sleep_for(1s);
  still.server.command({"CONFIG", "RESETSTAT"});
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const auto inside = static_cast<double>(all_calls(still.server));
  double sent = 0;
  for (const std::string command : {"evalsha", "eval", "zscore", "subscribe"}) {
    sent += static_cast<double>(calls(still.server, command));
  }
  std::printf("%d silent waiters, %d s: %.1f commands a second (%.0f with those that the scripts call)\n", waiting,
              seconds, sent / seconds, inside / seconds);
}

struct Memory {
  long resident_kib = 0;
  long share_kib = 0;  // shared memory counts in parts
  Memory operator+(const Memory& other) const
  {
    return {resident_kib + other.resident_kib, share_kib + other.share_kib};
  }
};

Memory memory_of(pid_t pid)
{
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  Memory memory;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    long kib = 0;
    words >> name >> kib;
    memory.resident_kib += name == "Rss:" ? kib : 0;
    memory.share_kib += name == "Pss:" ? kib : 0;
  }
  return memory;
}

void print(const char* who, const Memory& memory)
{
  std::printf("%-32s resident %5ld KiB, its share of it %5ld KiB\n", who, memory.resident_kib, memory.share_kib);
}

void weigh(const std::string& rlock)
{
  const Standstill still(rlock, 3);
  const pid_t holder = still.holder.pid();
  pid_t first = 0;
  pid_t other = 0;
  const auto is_known = [&] {
    for (const Process& waiter : still.waiters) {
      (find_guardian(waiter.pid()) != 0 ? first : other) = waiter.pid();
    }
    return first != 0;
  };
  wait_until(is_known, "the first waiter has a guardian");
  print("waiter", memory_of(other));
  print("first waiter and its guardian", memory_of(first) + memory_of(find_guardian(first)));
  print("holder and its guardian", memory_of(holder) + memory_of(find_guardian(holder)));
}

void lose_patience(const std::string& rlock)
{
  constexpr int count = 20;
  const Standstill still(rlock, 0);
  std::vector<Process> waiters;
  std::vector<Clock::time_point> ends;
  for (int i = 1; i <= count; ++i) {
    const Millis limit = i * 200ms;
    ends.push_back(Clock::now() + limit);
    waiters.emplace_back(still.words({"true"}, {"-w", std::to_string(limit.count()) + "ms"}));
  }
  std::vector<double> late_ms;
  int busy = 0;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    busy += waiters[i].wait() == Exit{.code = 75, .signal = 0} ? 1 : 0;
    late_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - ends[i]).count());
  }
  const std::int64_t left = as_int(still.server.command({"ZCARD", "rlock:queue:{bench}"}));
  std::printf(
      "-w 0.2 to 4 s: %d of %d exit 75, %lld left in line; over after the limit by %.1f ms at the median, "
      "%.1f ms at most\n",
      busy, count, static_cast<long long>(left), median(late_ms), *std::max_element(late_ms.begin(), late_ms.end()));
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc < 2) {
    std::fputs("usage: rlock_idle RLOCK [WAITING [SECONDS]]\n", stderr);
    return 64;
  }
  const FixtureFailures failures;
  const int waiting = argc > 2 ? std::stoi(argv[2]) : 1000;
  const int seconds = argc > 3 ? std::stoi(argv[3]) : 30;
  lose_patience(argv[1]);
  weigh(argv[1]);
  count_commands(argv[1], waiting, seconds);
  remove_temp_dirs();
  return 0;
}
