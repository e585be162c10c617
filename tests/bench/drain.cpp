// SPDX-License-Identifier: Apache-2.0
// How fast a lock goes from job to job: rlock and flock(1) in turns, on this machine, in this run.
//
//   rlock_drain RLOCK STAMP [ROUNDS [MS [WAITING...]]]      starts a redis-server, which ends with it
//
// For each number of waiting processes and each job length (MS; by default 3 and 0) prints the median gap between two
// jobs, from the end of one to the begin of the next, and the time of the whole drain, as medians over the rounds, with
// the ratio; and the number of requests to the server. A busy machine slows down both, so only ratios count.
#include "bench/lab.h"
#include "support/process.h"
#include "support/redis_fixture.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/stat.h>

using namespace rlock;
using namespace rlock::test;
using namespace rlock::bench;
using namespace std::chrono_literals;

namespace {

struct Job {
  std::string stamp;
  int ms;
  [[nodiscard]] Words length() const { return ms > 0 ? Words{std::to_string(ms)} : Words{}; }
};

struct Drain {
  double gap_us;
  double whole_ms;
};

Drain drain_of(const std::filesystem::path& stamps)
{
  std::vector<std::pair<long long, long long>> jobs;
  std::ifstream file(stamps);
  for (long long begin = 0, end = 0; file >> begin >> end;) {
    jobs.emplace_back(begin, end);
  }
  std::sort(jobs.begin(), jobs.end());
  std::vector<double> gaps;
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    gaps.push_back(static_cast<double>(jobs[i].first - jobs[i - 1].second) / 1e3);
  }
  const double whole = jobs.empty() ? 0 : static_cast<double>(jobs.back().second - jobs.front().first) / 1e6;
  return {median(gaps), whole};
}

// `lock` are the words before the job. All processes wait behind a holder, which is then ended.
Drain measure(const Words& lock, const Job& job, int waiting, const std::function<bool()>& all_there)
{
  const auto stamps = make_temp_dir("drain") / "stamps";
  Process holder(lock + Words{"sleep", "1000"});
  std::this_thread::sleep_for(200ms);
  std::vector<Process> crowd;
  for (int i = 0; i < waiting; ++i) {
    crowd.emplace_back(lock + Words{job.stamp, stamps.string()} + job.length());
  }
  wait_until(all_there, "all wait", 120s);
  std::this_thread::sleep_for(500ms);  // lets the machine become quiet first
  // The child of flock(1) holds the lock as well, so the job is ended.
  Process(Words{"pkill", "-TERM", "-x", "-P", std::to_string(holder.pid()), "sleep"}).wait();
  holder.signal(SIGTERM);
  for (Process& one : crowd) {
    one.wait(120s);
  }
  return drain_of(stamps);
}

std::int64_t queued(const RedisServer& server) { return as_int(server.command({"ZCARD", "rlock:queue:{bench}"})); }

std::int64_t waiting_for_file(const std::string& path)
{
  struct stat about {};
  ::stat(path.c_str(), &about);
  std::ifstream locks("/proc/locks");
  std::int64_t count = 0;
  const std::string inode = ":" + std::to_string(about.st_ino) + " ";
  for (std::string line; std::getline(locks, line);) {
    count += line.find("->") != std::string::npos && line.find(inode) != std::string::npos ? 1 : 0;
  }
  return count;
}

std::string scripts_and_subscriptions(const RedisServer& server, int waiting)
{
  std::string text;
  for (const std::string command : {"evalsha", "subscribe", "zscore"}) {
    const auto count = static_cast<double>(calls(server, command));
    char line[64];
    std::snprintf(line, sizeof line, "  %s %.2f", command.c_str(), count / waiting);
    text += line;
  }
  return text;
}

void compare(const std::string& rlock, const Job& job, int rounds, int waiting)
{
  const RedisServer server({.args = {"--maxclients", "5000"}});
  const std::string file = (make_temp_dir("flock") / "f").string();
  std::ofstream{file};
  const Words rlock_run{rlock, "run", "-S", server.url(), "-k", "bench", "--"};
  const Words theirs{"flock", file};
  std::vector<double> rlock_gaps, our_drains, flock_gaps, their_drains, ratios;
  for (int round = 0; round < rounds; ++round) {
    server.command({"CONFIG", "RESETSTAT"});
    const Drain rlock_drain = measure(rlock_run, job, waiting, [&] { return queued(server) >= waiting; });
    const Drain flock = measure(theirs, job, waiting, [&] { return waiting_for_file(file) >= waiting; });
    rlock_gaps.push_back(rlock_drain.gap_us);
    our_drains.push_back(rlock_drain.whole_ms);
    flock_gaps.push_back(flock.gap_us);
    their_drains.push_back(flock.whole_ms);
    ratios.push_back(rlock_drain.gap_us / flock.gap_us);
  }
  std::printf(
      "%5d waiting for jobs of %d ms, %d rounds: gap p50 %7.0f us, flock %7.0f us, ratio %.2f (%.2f to %.2f); "
      "drain %8.1f ms, flock %8.1f ms;%s\n",
      waiting, job.ms, rounds, median(rlock_gaps), median(flock_gaps), median(ratios),
      *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()),
      median(our_drains), median(their_drains), scripts_and_subscriptions(server, waiting).c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc < 3) {
    std::fputs("usage: rlock_drain RLOCK STAMP [ROUNDS [MS [WAITING...]]]\n", stderr);
    return 64;
  }
  const FixtureFailures failures;
  const int rounds = argc > 3 ? std::stoi(argv[3]) : 5;
  const std::vector<int> lengths = argc > 4 ? std::vector{std::stoi(argv[4])} : std::vector{3, 0};
  std::vector<int> crowds;
  for (int i = 5; i < argc; ++i) {
    crowds.push_back(std::stoi(argv[i]));
  }
  if (crowds.empty()) {
    crowds = {10, 50, 200, 1000};
  }
  for (const int ms : lengths) {
    for (const int waiting : crowds) {
      compare(argv[1], {.stamp = argv[2], .ms = ms}, rounds, waiting);
      remove_temp_dirs();
    }
  }
  return 0;
}
