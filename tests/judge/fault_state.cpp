// SPDX-License-Identifier: Apache-2.0
// The faults of a server's data, scripts, connections, memory, disk and clock.
#include "judge/faults.h"

#include "support/wait_until.h"

#include <string_view>
#include <thread>

#include <sys/resource.h>

namespace rlock::judge {
namespace {

using test::RedisServer;

Result<Reply> tell(const ServerTarget& target, const Words& words) { return target.server->try_command(words); }

bool is_ok(const Result<Reply>& reply) { return reply && !reply->is_error(); }

bool removes(const Result<Reply>& reply) { return reply && reply->integer > 0; }

// Writes a key beside the lock's, which tells whether the server accepts writes now.
bool write_fails(const ServerTarget& target, const std::string& key, std::string_view how)
{
  const auto reply = tell(target, {"SET", "judge:{" + key + "}", "probe", "PX", "1000"});
  return reply && reply->is_error() && reply->text.starts_with(how);
}

// At once, without time for the fault.
std::function<bool(const ServerTarget&, const std::string&, Rng&)> saying(Words words)
{
  return [words](const ServerTarget& target, const std::string&, Rng&) { return is_ok(tell(target, words)); };
}

bool remove_lock(const ServerTarget& target, const std::string& key, Rng&)
{
  return removes(tell(target, {"DEL", key}));
}

// One of the keys that rlock keeps beside the lock and says it can lose; all of them now and then.
bool remove_bookkeeping(const ServerTarget& target, const std::string& key, Rng& rng)
{
  const auto found = tell(target, {"KEYS", "*{" + key + "}*"});
  Words doomed;
  for (const Reply& name : is_ok(found) ? found->elements : std::vector<Reply>()) {
    if (name.text.starts_with("rlock:") || name.text.starts_with("redisson_lock_token:")) {
      doomed.push_back(name.text);
    }
  }
  if (doomed.empty()) {
    return false;
  }
  if (below(rng, 4) != 0) {
    doomed = {doomed[below(rng, doomed.size())]};
  }
  doomed.insert(doomed.begin(), "DEL");
  return removes(tell(target, doomed));
}

bool remove_fence(const ServerTarget& target, const std::string& key, Rng&)
{
  return removes(tell(target, {"DEL", "redisson_lock_token:{" + key + "}"}));
}

// The holder repairs it, or releases the lock; otherwise the operator sees to it. The number of permits has no ttl.
bool remove_ttl(const ServerTarget& target, const std::string& key, Rng& rng)
{
  if (!removes(tell(target, {"PERSIST", key}))) {
    return false;
  }
  std::this_thread::sleep_for(some_time(rng));
  const auto ttl = tell(target, {"PTTL", key});
  if (ttl && ttl->integer == -1) {
    is_ok(tell(target, {"PEXPIRE", key, "1000"}));
  }
  return true;
}

bool cut_clients(const ServerTarget& target, const std::string&, Rng&)
{
  const bool normal = removes(tell(target, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}));
  return removes(tell(target, {"CLIENT", "KILL", "TYPE", "pubsub"})) || normal;
}

bool pause_clients(const ServerTarget& target, const std::string&, Rng& rng)
{
  const Millis time = some_time(rng);
  const bool done =
      is_ok(tell(target, {"CLIENT", "PAUSE", std::to_string(time.count()), below(rng, 2) == 0 ? "ALL" : "WRITE"}));
  std::this_thread::sleep_for(time);
  return done;
}

// Other clients are told BUSY after 20 ms and wait before.
bool run_slow_script(const ServerTarget& target, const std::string&, Rng& rng)
{
  is_ok(tell(target, {"CONFIG", "SET", "lua-time-limit", "20"}));
  const std::string rounds = std::to_string(2'000'000 + below(rng, 10'000'000));  // about 20 ns each
  return is_ok(
      tell(target, {"EVAL", "local n = 0 for i = 1, tonumber(ARGV[1]) do n = n + i end return 1", "0", rounds}));
}

bool fill_memory(const ServerTarget& target, const std::string& key, Rng&)
{
  is_ok(tell(target, {"CONFIG", "SET", "maxmemory", "1"}));
  return write_fails(target, key, "OOM");
}

bool free_memory(const ServerTarget& target, const std::string&)
{
  is_ok(tell(target, {"CONFIG", "SET", "maxmemory", "0"}));
  return false;
}

// No file of the process may grow, so a write to the data file fails as on a full disk. The fixture lets servers ignore
// the signal for that. The first write that fails makes the server refuse further ones.
bool fill_disk(const ServerTarget& target, const std::string& key, Rng&)
{
  const rlimit full{.rlim_cur = 1, .rlim_max = RLIM_INFINITY};
  if (::prlimit(target.server->pid(), RLIMIT_FSIZE, &full, nullptr) != 0) {
    return false;
  }
  write_fails(target, key, "");
  return write_fails(target, key, "MISCONF");
}

bool free_disk(const ServerTarget& target, const std::string& key)
{
  const rlimit unlimited{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  ::prlimit(target.server->pid(), RLIMIT_FSIZE, &unlimited, nullptr);
  test::wait_until([&] { return !write_fails(target, key, "MISCONF"); }, "the server writes its data file again");
  return false;
}

Millis random_step(Rng& rng)
{
  const Millis by = some_time(rng);
  return below(rng, 2) == 0 ? by : -by;
}

bool step_clock(const ServerTarget& target, const std::string&, Rng& rng)
{
  target.server->step_clock(random_step(rng));
  return true;
}

}  // namespace

void step_clocks_together(std::vector<ServerFault>& faults, const std::deque<RedisServer>& servers)
{
  for (ServerFault& fault : faults) {
    if (fault.excuse == Excuse::clock) {
      fault.act = [&servers](Rng& rng) {
        const Millis by = random_step(rng);
        for (const RedisServer& server : servers) {
          server.step_clock(by);
        }
        return Hit{.done = true};
      };
    }
  }
}

std::span<const Recipe> state_recipes()
{
  static const std::vector<Recipe> all{
      {.name = "script-flush", .begin = saying({"SCRIPT", "FLUSH"})},
      {.name = "del-lock", .excuse = Excuse::data_loss, .begin = remove_lock, .removes_key = true},
      {.name = "del-bookkeeping", .excuse = Excuse::lost_count, .begin = remove_bookkeeping},
      {.name = "del-fence", .excuse = Excuse::lost_count, .begin = remove_fence},
      {.name = "flushall", .excuse = Excuse::data_loss, .begin = saying({"FLUSHALL"})},
      {.name = "persist", .begin = remove_ttl},
      {.name = "client-kill", .begin = cut_clients},
      {.name = "client-pause", .begin = pause_clients},
      {.name = "slow-script", .begin = run_slow_script},
      {.name = "memory-full", .begin = fill_memory, .end = free_memory},
      {.name = "disk-full", .begin = fill_disk, .end = free_disk},
      {.name = "clock-step", .excuse = Excuse::clock, .begin = step_clock},
  };
  return all;
}

}  // namespace rlock::judge
