// SPDX-License-Identifier: Apache-2.0
// The locks of --shards, shown as one.
#include "cli/output/json.h"
#include "cli/output/pools.h"
#include "cli/output/show.h"
#include "cli/output/watch.h"
#include "support/shown_zone.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::cli;

namespace {

constexpr std::int64_t noon = 1'795'262'400'000;

const Pool phones{.key = "phones", .size = 3, .names = "pixel-7,pixel-8,iphone"};
const Pool stock{.key = "stock", .size = 2};

HolderInfo info_of(const std::optional<Pool>& pool, std::int64_t since_ms = noon)
{
  return {.host = "web1", .pid = 7, .user = "alice", .command = "./test.sh", .since_ms = since_ms, .pool = pool};
}

Waiter waiter(const char* owner, const std::optional<Pool>& pool, std::int64_t since_ms = noon)
{
  return {.owner = Owner::of(owner), .info = info_of(pool, since_ms)};
}

LockState lock(const std::string& name, const std::optional<Pool>& pool, std::vector<Waiter> waiting = {})
{
  return {.name = *LockName::parse(name),
          .kind = Plain{},
          .ttl = 30s,
          .fence = 1,
          .holders = {{.owner = Owner::of(name), .count = 1, .info = info_of(pool)}},
          .waiting = std::move(waiting)};
}

// The lines of all pools.
std::string shown(const std::vector<LockState>& states, const std::string& pattern = "*")
{
  std::string text;
  for (const ShownPool& pool : pools_of(states, pattern)) {
    text += show_pool(pool) + (pool.free.empty() ? "" : " (" + show_free_names(pool) + ")") + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("pools: how many are free, and how many wait for any of them")
{
  CHECK(shown({}).empty());
  CHECK(shown({lock("phones", {}), lock("phones:pixel-7", {})}).empty());  // ordinary locks
  CHECK(shown({lock("phones:pixel-8", phones)}) == "phones: 2 of 3 free (pixel-7, iphone)\n");
  // One that is held without --shards is not free, and one that is not of the pool does not count.
  CHECK(shown({lock("phones:iphone", {}), lock("phones:nokia", phones), lock("phones:pixel-8", phones)}) ==
        "phones: 1 of 3 free (pixel-7)\n");
  CHECK(shown({lock("stock:0", stock), lock("stock:1", stock), lock("stock:2", {})}) == "stock: 0 of 2 free\n");

  const std::vector<LockState> crowded{
      lock("phones:iphone", phones, {waiter("a", phones), waiter("b", phones)}),
      lock("phones:pixel-7", phones, {waiter("b", phones), waiter("for this one", {}), waiter("a", phones)}),
      lock("phones:pixel-8", phones, {waiter("a", phones)})};
  CHECK(shown(crowded) == "phones: 0 of 3 free, 2 wait\n");
  CHECK(shown({lock("stock:1", stock, {waiter("a", stock)})}) == "stock: 1 of 2 free, 1 waits (0)\n");
}

TEST_CASE("pools: the newest record says what the pool is, and names that no record has are not told")
{
  const Pool smaller{.key = "phones", .size = 2, .names = "pixel-7,pixel-8"};
  LockState old = lock("phones:iphone", phones);
  LockState last = lock("phones:pixel-7", smaller);
  last.holders.front().info->since_ms = noon + 1;
  CHECK(shown({old, last}) == "phones: 1 of 2 free (pixel-8)\n");
  last.holders.front().info->since_ms = noon - 1;
  CHECK(shown({old, last}) == "phones: 1 of 3 free (pixel-8)\n");

  const Pool large{.key = "hosts", .size = 400, .names = ""};
  CHECK(shown({lock("hosts:a", large), lock("hosts:b", {})}) == "hosts: 399 of 400 free\n");
  CHECK(shown({lock("hosts:a", phones)}).empty());  // a record of another lock
}

TEST_CASE("pools: one of which the pattern leaves out a lock is not counted")
{
  const std::vector<LockState> states{lock("phones:pixel-7", phones), lock("stock:0", stock)};
  CHECK(shown(states, "phones:p*").empty());
  CHECK(shown(states, "phones:*") == "phones: 2 of 3 free (pixel-8, iphone)\n");
  CHECK(shown(states, "stock:[0-9]") == "stock: 1 of 2 free (1)\n");
  const std::vector<LockState> large{lock("hosts:a", Pool{.key = "hosts", .size = 400, .names = ""})};
  CHECK(shown(large, "hosts:a*").empty());
  CHECK(shown(large, "h*") == "hosts: 399 of 400 free\n");
}

TEST_CASE("pools: status, list and watch show one before its locks")
{
  const InUtc in_utc;
  std::vector<LockState> states{lock("phones:pixel-7", phones, {waiter("b", phones, noon - 1000), waiter("a", {})}),
                                lock("plain", {}, {waiter("b", phones)})};
  states.push_back(lock("stock:0", stock));
  const auto pools = pools_of(states, "*");
  CHECK(show_list(states, noon, Colors(), pools) ==
        "KEY             HOLDER              TTL  AGE  WAITING  COMMAND\n"
        "phones          2 of 3 free         -    -    1        free: pixel-8, iphone\n"
        "phones:pixel-7  alice@web1 (pid 7)  30s  0s   2        ./test.sh\n"
        "plain           alice@web1 (pid 7)  30s  0s   1        ./test.sh\n"
        "stock           1 of 2 free         -    -    0        free: 1\n"
        "stock:0         alice@web1 (pid 7)  30s  0s   0        ./test.sh\n");
  CHECK(show_pool_status(pools.front(), noon) ==
        "phones: 2 of 3 free, 1 waits\n"
        "  free     pixel-8, iphone\n"
        "  waiting  1  alice@web1 (pid 7), since 2026-11-21 11:59:59 UTC (1s ago), running ./test.sh\n");

  View view;
  const Rates rates;
  const auto rows = [&](std::size_t height) {
    return frame({.states = states, .rates = rates, .server = "s", .wall_ms = noon, .now = {}, .pools = pools}, view,
                 {.rows = height, .columns = 40});
  };
  CHECK(rows(12)[1] == fitted("phones: 2 of 3 free, 1 waits", 40));
  CHECK(rows(12)[2] == fitted("stock: 1 of 2 free", 40));
  CHECK(rows(6)[2].starts_with("KEY "));  // a small screen has no room for both
  view.filter = "sto";
  CHECK(rows(12)[1] == fitted("stock: 1 of 2 free", 40));

  take_waiters_out(states, pools);
  REQUIRE(states.front().waiting.size() == 1);
  CHECK(states.front().waiting.front().owner == Owner::of("a"));
}

TEST_CASE("pools: json tells the pool of a lock, and its numbers where all of its locks were asked for")
{
  const std::vector<LockState> states{lock("phones:pixel-7", phones, {waiter("b", phones)}), lock("plain", {})};
  const auto pool_in = [](const std::string& json) { return json.substr(json.find("\"pool\"")); };
  const std::string begin = R"("pool":{"key":"phones","size":3,"names":["pixel-7","pixel-8","iphone"],)";
  CHECK(pool_in(status_json(states[0])) == begin + "\"free\":null,\"waiting\":null}}\n");
  const auto pools = pools_of(states, "*");
  CHECK(pool_in(status_json(states[0], pools)) == begin + "\"free\":2,\"waiting\":1}}\n");
  CHECK(pool_in(status_json(states[1], pools)) == "\"pool\":null}\n");
  LockState key = lock("phones", {});
  key.holders.clear();
  CHECK(pool_in(status_json(key, pools)) == begin + "\"free\":2,\"waiting\":1}}\n");
  CHECK(pool_in(status_json(lock("stock:0", stock))) ==
        "\"pool\":{\"key\":\"stock\",\"size\":2,\"names\":[\"0\",\"1\"],\"free\":null,\"waiting\":null}}\n");
}
