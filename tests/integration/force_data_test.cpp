// SPDX-License-Identifier: Apache-2.0
// force-unlock deletes nothing that is not provably a lock, and list shows no such key.

#include "support/integration.h"
#include "support/json.h"

using namespace rlock::test;
namespace {

constexpr const char* redissons = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";

Words listed(const RedisServer& server)
{
  Words keys;
  const std::string out = rlock_on(server, {"list", "--json"}).out;
  for (std::size_t from = 0; from < out.size(); from = out.find('\n', from) + 1) {
    keys.push_back(Json::parse(out.substr(from, out.find('\n', from) - from)).at("key"));
  }
  return keys;
}

// With each form of force-unlock that does not name the value.
void refuses_to_delete(const RedisServer& server, const std::string& key)
{
  CAPTURE(key);
  const Reply before = server.command({"DUMP", key});
  const auto ttl = as_int(server.command({"PTTL", key}));
  for (const Words& how : {Words{"--yes"}, Words{"--yes", "--now"}, Words{"--yes", "--grace", "0"}}) {
    Words words = joined({"force-unlock", "-k", key}, how);
    expect_end(rlock_on(server, words), 78, {out_is("")});
  }
  CHECK(rlock_on(server, {"force-unlock", "-k", key, "--token", "another", "--now"}).code != 0);
  CHECK(as_text(server.command({"DUMP", key})) == before.text);
  CHECK((ttl == -1) == (as_int(server.command({"PTTL", key})) == -1));
}

}  // namespace

TEST_SUITE_BEGIN("topology");

SERVER_CASE("force-unlock: data of another program is not deleted by --yes, and not listed as a lock")
{
  server.command({"SET", "session:42", R"({"user":"ann"})"});
  server.command({"SET", "counter", "17"});
  server.command({"SET", "otp", "4711", "PX", "60000"});
  server.command({"HSET", "cart:1", "prod", "5"});
  server.command({"HSET", "uuid", "8743c9c0-0795-4907-87fd-6c719a6b4586", "5"});
  server.command({"HSET", "half", redissons, "0"});
  for (const char* key : {"session:42", "counter", "otp", "cart:1", "uuid"}) {
    refuses_to_delete(server, key);
  }
  CHECK(listed(server).empty());

  server.command({"RPUSH", "list", "a"});
  server.command({"SADD", "set", "a"});
  server.command({"ZADD", "zset", "1", "a"});
  server.command({"HSET", "profile", "name", "ann", "age", "5"});
  for (const char* key : {"list", "set", "zset", "profile"}) {
    CAPTURE(key);
    CHECK(rlock_on(server, {"force-unlock", "-k", key, "--token", "a", "--now"}).code == 78);
    CHECK(rlock_on(server, {"force-unlock", "-k", key, "--yes", "--now"}).code == 78);
    CHECK(as_int(server.command({"EXISTS", key})) == 1);
  }
}

TEST_CASE("force-unlock: data of another program is called that, in one line whose --token a shell can read")
{
  struct Row {
    Words written;
    std::string shown;   // as status prints it
    std::string quoted;  // as a shell reads it
  };
  const std::string far_away = "4000000000000";
  const std::vector<Row> rows{
      {{"SET", "cart", R"({"user":7})"}, R"({"user":7})", R"('{"user":7}')"},
      {{"SET", "cart", "it's 5 o'clock"}, "it's 5 o'clock", R"('it'\''s 5 o'\''clock')"},
      {{"SET", "cart", R"(C:\new)"}, R"(C:\\new)", R"('C:\new')"},
      {{"SET", "cart", "two\nlines's"}, R"(two\nlines's)", R"($'two\nlines\x27s')"},
      {{"SET", "cart", "17"}, "17", "17"},
      {{"SET", "cart", "token-1", "PX", "60000"}, "token-1", "token-1"},
      {{"HSET", "cart", "prod", "5"}, "prod", "prod"},
      {{"ZADD", "{cart}:timeout", far_away, "not a permit"}, "not a permit", "'not a permit'"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.quoted);
    const RedisServer server;
    server.command(row.written);
    for (const Words& how : {Words{}, Words{"--yes"}, Words{"--yes", "--now"}}) {
      const Finished refused = rlock_on(server, joined({"force-unlock", "-k", "cart"}, how));
      expect_end(refused, 78, {out_is("")});
      CHECK(refused.err ==
            "rlock: cart holds data of another program, or a lock that nothing proves: it is deleted only with "
            "--token " +
                row.quoted + "\n");
    }
    const Finished status = rlock_on(server, {"status", "cart"});
    CHECK(status.out.find("cart: data of another program, or its lock") == 0);
    CHECK(has(status.out, "\n  value    " + row.shown + "\n"));
    CHECK_FALSE(has(status.out, "held"));
    CHECK_FALSE(has(status.out, "holder"));

    expect_end(rlock_on(server, {"force-unlock", "-k", "cart", "--token", "another", "--now"}), 1,
               {out_is("cart: holds another value, " + row.quoted + "; nothing was done\n"), err_is("")});

    const Words forces = rlock_argv({"force-unlock", "-S", server.url(), "-k", "cart", "--now"});
    Process forced(joined({"bash", "-c", "\"$@\" --token " + row.quoted, "bash"}, forces));
    CHECK(forced.wait() == success);
    CHECK(forced.out() ==
          "cart: deleted; it held " + row.quoted + "; if that was a lock, its job may still be running\n");
    CHECK(forced.err().empty());
    CHECK_FALSE(has(rlock_on(server, {"status", "cart"}).out, row.shown));
  }
}

SERVER_CASE("force-unlock: a lock that another client keeps as a string goes with exactly the token shown")
{
  server.command({"SET", "theirs", "token-1", "NX", "PX", "60000"});
  refuses_to_delete(server, "theirs");
  CHECK(has(rlock_on(server, {"status", "-k", "theirs"}).out, "token-1"));
  const Finished refused = rlock_on(server, {"force-unlock", "-k", "theirs", "--yes"});
  CHECK(has(refused.err, "--token token-1"));
  CHECK(rlock_on(server, {"force-unlock", "-k", "theirs", "--token", "token-1", "--now"}).code == 0);
  CHECK_FALSE(is_held(server, "theirs"));

  server.command({"HSET", "odd", "foreign-1", "1"});
  server.command({"PEXPIRE", "odd", "60000"});
  refuses_to_delete(server, "odd");
  CHECK(rlock_on(server, {"force-unlock", "-k", "odd", "--token", "foreign-1", "--now"}).code == 0);
  CHECK_FALSE(is_held(server, "odd"));
}

TEST_CASE("force-unlock: locks as Redisson writes them go with --yes, and are listed")
{
  skip_on_databases("Redisson writes to Redis only");
  const RedisServer server;
  const std::string far_away = "4000000000000";
  server.command({"HSET", "lock", redissons, "2"});
  server.command({"HSET", "transaction", std::string(redissons) + ":4f", "1"});
  server.command({"HSET", "writer", "mode", "write", std::string(redissons) + ":write", "1"});
  server.command({"HSET", "reader", "mode", "read", redissons, "1"});
  server.command({"SET", "{reader}:" + std::string(redissons) + ":rwlock_timeout:1", "1", "PX", "60000"});
  server.command({"SET", "permits", "2"});
  server.command({"ZADD", "{permits}:timeout", far_away, std::string(16, '\x07')});
  for (const char* key : {"lock", "transaction", "writer", "reader"}) {
    server.command({"PEXPIRE", key, "60000"});
  }
  CHECK(listed(server) == Words{"lock", "reader", "transaction", "writer"});
  for (const char* key : {"lock", "transaction", "writer", "reader", "permits"}) {
    CAPTURE(std::string(key));
    CHECK(rlock_on(server, {"force-unlock", "-k", key, "--yes", "--now"}).code == 0);
    CHECK(as_int(server.command({"EXISTS", key})) == (std::string(key) == "permits" ? 1 : 0));
  }
  CHECK(as_text(server.command({"GET", "permits"})) == "3");  // the number of permits stays
}

SERVER_CASE("force-unlock: a permit that Redisson before 3.17 wrote, with 32 digits, can be broken")
{
  const std::string id = "0123456789abcdef0123456789abcdef";
  server.command({"SET", "pool", "1"});
  server.command({"ZADD", "{pool}:timeout", "4000000000000", id});
  CHECK(rlock_on(server, {"force-unlock", "-k", "pool", "--token", id, "--now"}).code == 0);
  CHECK(as_int(server.command({"ZCARD", "{pool}:timeout"})) == 0);
  CHECK(as_text(server.command({"GET", "pool"})) == "2");

  server.command({"ZADD", "{pool}:timeout", "4000000000000", id});
  server.command({"SET", "pool", "1"});
  CHECK(rlock_on(server, {"force-unlock", "-k", "pool", "--yes", "--now"}).code == 0);
  CHECK(as_text(server.command({"GET", "pool"})) == "2");
}

TEST_SUITE_END();
