// SPDX-License-Identifier: Apache-2.0
// `rlock list` and `rlock watch` on a server with much other data.
#include "support/integration.h"
#include "support/paths.h"
#include "support/redis_cluster.h"

using namespace rlock::test;

namespace {

constexpr const char* foreign_owner = "6f1d7e2c-9a3b-4c5d-8e7f-0123456789ab:42";

// Hashes with one field, as sessions and carts are, and some with more fields.
void add_ordinary_hashes(const RedisServer& server, int count)
{
  constexpr int batch = 10'000;
  for (int from = 1; from <= count; from += batch) {
    server.command({"EVAL",
                    "for i = ARGV[1], ARGV[2] do redis.call('HSET', 'session:' .. i, 'user', i) "
                    "if i % 10 == 0 then redis.call('HSET', 'session:' .. i, 'mode', 'dark') end end",
                    "0", std::to_string(from), std::to_string(from + batch - 1)});
  }
}

// All kinds of rlock, and two locks of Redisson without an rlock record.
Words take_locks(const std::string& url, const std::function<void(const Words&)>& command)
{
  const std::vector<Words> kinds = {
      {"plain"}, {"writer", "-x"}, {"reader", "-s"}, {"permits", "--permits", "3"}, {"string", "--format", "string"}};
  Words keys{"foreign:plain", "foreign:rw"};
  command({"HSET", "foreign:plain", foreign_owner, "1"});
  command({"PEXPIRE", "foreign:plain", "60000"});
  command({"HSET", "foreign:rw", "mode", "write", std::string(foreign_owner) + ":write", "1"});
  command({"PEXPIRE", "foreign:rw", "60000"});
  for (const Words& kind : kinds) {
    Words words{"acquire", "-S", url, "--lease", "60s", "-k", kind[0]};
    words.insert(words.end(), kind.begin() + 1, kind.end());
    REQUIRE(run_rlock(words).code == 0);
    keys.push_back(kind[0]);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

// The keys in `list --json`, in their order.
Words listed(const std::string& out)
{
  const std::string before = "\"key\":\"";
  Words keys;
  for (const std::string& line : lines_of(out)) {
    const auto at = line.find(before);
    REQUIRE(at != std::string::npos);
    const auto begin = at + before.size();
    keys.push_back(line.substr(begin, line.find('"', begin) - begin));
  }
  return keys;
}

std::int64_t scripts_run(const RedisServer& server) { return calls_of(server, "eval") + calls_of(server, "evalsha"); }

}  // namespace

TEST_CASE("status: many names in the order of the words, and what is no lock is said")
{
  const RedisServer server({.alone = true});
  Words names;
  for (int i = 40; i-- > 0;) {
    names.push_back("lock" + std::to_string(i));
  }
  REQUIRE(rlock_on(server, {"acquire", "-k", names.back(), "--lease", "60s"}).code == 0);
  const Finished status = rlock_on(server, joined({"status", "--json"}, names));
  CHECK(status.code == 1);
  CHECK(listed(status.out) == names);

  server.command({"SADD", "lock7", "x"});
  const Finished refused = rlock_on(server, joined({"status", "--json"}, names));
  CHECK(refused.code == 78);
  CHECK(listed(refused.out).size() == 32);
}

TEST_SUITE_BEGIN("topology");

TEST_CASE("list: 150000 ordinary hashes cost at most 200 scripts, and no lock among them is missed")
{
  const RedisServer server({.alone = true});
  add_ordinary_hashes(server, 150'000);
  const Words keys = take_locks(server.direct_url(), [&](const Words& words) { server.command(words); });
  const auto before = scripts_run(server);
  const Finished list = run_rlock({"list", "-S", server.direct_url(), "--json"});
  expect_end(list, 0, {err_is("")});
  CHECK(listed(list.out) == keys);
  CHECK(scripts_run(server) - before <= 200);
}

SERVER_CASE("list: more locks than one round trip asks for")
{
  Words keys = take_locks(server.url(), [&](const Words& words) { server.command(words); });
  server.command({"EVAL",
                  "for i = 1, 200 do redis.call('HSET', 'many:' .. i, ARGV[1], 1) "
                  "redis.call('PEXPIRE', 'many:' .. i, 60000) redis.call('HSET', 'no:' .. i, ARGV[1], 'x') end",
                  "0", foreign_owner});
  for (int i = 1; i <= 200; ++i) {
    keys.push_back("many:" + std::to_string(i));
  }
  std::sort(keys.begin(), keys.end());
  CHECK(listed(rlock_on(server, {"list", "--json"}).out) == keys);
}

TEST_CASE("watch: on a large server some refreshes ask only for the locks that are known, and show their changes")
{
  const RedisServer server({.alone = true});
  add_ordinary_hashes(server, 150'000);
  take_locks(server.direct_url(), [&](const Words& words) { server.command(words); });
  const auto pages = calls_of(server, "scan");
  REQUIRE(run_rlock({"list", "-S", server.direct_url()}).code == 0);
  const auto pages_of_list = calls_of(server, "scan") - pages;
  const auto before = calls_of(server, "scan");
  Process watch = start_rlock({"watch", "-S", server.direct_url(), "--interval", "100ms", "--json"});
  const auto refreshes = [&] {
    const std::string out = watch.out();
    const std::string mark = "\"key\":\"foreign:rw\"";
    std::int64_t count = 0;
    for (auto at = out.find(mark); at != std::string::npos; at = out.find(mark, at + 1)) {
      ++count;
    }
    return count;
  };
  wait_until([&] { return (calls_of(server, "scan") - before) / pages_of_list + 3 < refreshes(); },
             "it searches seldom");
  server.command({"DEL", "foreign:rw"});
  const auto shown = refreshes();
  server.command({"HSET", "new", foreign_owner, "1"});
  server.command({"PEXPIRE", "new", "60000"});
  wait_until([&] { return has(watch.out(), "\"key\":\"new\""); }, "a new lock is found");
  CHECK(refreshes() <= shown + 2);
  watch.signal(SIGTERM);
  CHECK(watch.wait() == died_of(SIGTERM));
}

TEST_CASE("list: a pattern finds the same locks as the whole list")
{
  skip_on_databases("there is no scan of keys");
  const RedisServer server;
  const Words keys = take_locks(server.url(), [&](const Words& words) { server.command(words); });
  server.command({"HSET", "rlock:holder:{gone}", "x", "y"});
  server.command({"HSET", "rlock:holder:gone", foreign_owner, "1"});
  for (const char* pattern : {"*", "**", "[a-z]*"}) {
    CAPTURE(pattern);
    CHECK(listed(rlock_on(server, {"list", "--json", pattern}).out) == keys);
  }
  CHECK(listed(rlock_on(server, {"list", "--json", "foreign:*"}).out) == Words{"foreign:plain", "foreign:rw"});
  CHECK(listed(rlock_on(server, {"list", "--json", "str*"}).out) == Words{"string"});
  CHECK(rlock_on(server, {"list", "rlock:*"}).code == 1);
}

CLUSTER_CASE("list: all nodes of a cluster are looked through by a script for each batch")
{
  for (int i = 0; i < 300; ++i) {
    [[maybe_unused]] const auto added = cluster.command({"HSET", "session:" + std::to_string(i), "user", "1"});
  }
  const Words keys = take_locks(
      cluster.url(), [&](const Words& words) { [[maybe_unused]] const auto answer = cluster.command(words); });
  const auto all_scripts = [&] {
    std::int64_t sum = 0;
    for (const RedisServer& node : cluster.nodes()) {
      sum += scripts_run(node);
    }
    return sum;
  };
  const auto before = all_scripts();
  const Finished list = run_rlock({"list", "-S", cluster.url(), "--json"});
  expect_end(list, 0, {err_is("")});
  CHECK(listed(list.out) == keys);
  CHECK(all_scripts() - before <= 60);  // one more for each lock than without --json: its history
}

TEST_CASE("list: a quorum of servers that are all down ends with 69 at once")
{
  const std::filesystem::path dir = make_temp_dir("list");
  std::vector<std::string> words{"list"};
  for (const char* name : {"a", "b", "c"}) {
    words.insert(words.end(), {"-S", "unix://" + (dir / name).string()});
  }
  const Finished end = run_rlock(words);  // it waits for 10 s at most
  expect_end(end, 69, {err_has("3 of 3 servers failed")});
}

TEST_SUITE_END();

SERVER_CASE("list: --older-than leaves out locks that are not held for so long")
{
  REQUIRE(rlock_on(server, {"acquire", "-k", "old", "--lease", "5m"}).code == 0);
  const auto is_listed = [&] { return has(rlock_on(server, {"list", "--older-than", "1s"}).out, "old"); };
  wait_until(is_listed, "it is held for a second");
  REQUIRE(rlock_on(server, {"acquire", "-k", "young", "--lease", "5m"}).code == 0);
  expect_end(rlock_on(server, {"list", "--older-than", "1h"}), 1,
             {err_is("rlock: no lock is held for more than 1h\n")});
  CHECK(rlock_on(server, {"list", "--older-than", "1h", "--all"}).code == 64);
  CHECK(has(rlock_on(server, {"list", "--older-than", "0"}).out, "young"));
}
