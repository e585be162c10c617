// SPDX-License-Identifier: Apache-2.0
#include "run/environment.h"

#include "stores/open.h"

#include <doctest/doctest.h>

using namespace rlock;

TEST_CASE("job environment: the lock, its ancestors, and no password")
{
  Endpoint endpoint;
  endpoint.user = "u";
  endpoint.password = "secret";
  Endpoint other = endpoint;
  other.host = "b";
  const ServerSpec server{.endpoints = {endpoint, other}};
  const LockName name = *LockName::parse("b");
  const Owner owner = Owner::of("o2:2");
  const auto environment = job_environment(
      {"PATH=/bin", "RLOCK_KEY=a", "RLOCK_FENCE=41", "RLOCK_HELD=o1:1 a", "RLOCK_SHARD=3", "RLOCK_KEYS=mine"},
      {.held = {{name, owner, Millis{30'000}}}, .server = server.for_job()});

  CHECK(environment_value(environment, "PATH") == "/bin");
  CHECK(environment_value(environment, "RLOCK_KEYS") == "mine");
  CHECK(environment_value(environment, "RLOCK_KEY") == "b");
  CHECK(environment_value(environment, "RLOCK_TOKEN") == "o2:2");
  CHECK(environment_value(environment, "RLOCK_FENCE") == "");
  CHECK(environment_value(environment, "RLOCK_SHARD") == "");
  CHECK(environment_value(environment, "RLOCK_LEASE_MS") == "30000");
  CHECK(environment_value(environment, "RLOCK_HELD") == "o1:1 a\no2:2 b");
  CHECK(environment_value(environment, "RLOCK_SERVER") == "redis://u@127.0.0.1:6379 redis://u@b:6379");
  for (const std::string& entry : environment) {
    CHECK(entry.find("secret") == std::string::npos);
  }
}

TEST_CASE("job environment: the file of the password, in the place of another password")
{
  const std::vector<std::string> inherited{"RLOCK_PASSWORD=x", "RLOCK_PASSWORD_FILE=/old", "REDISCLI_AUTH=y"};
  const auto with = [&](const std::optional<std::string>& file) {
    const HeldLock lock{.name = *LockName::parse("k"), .hold = Owner::of("o:1"), .lease = Millis{1}};
    return job_environment(inherited, {.held = {lock}, .server = {"redis://h", file}});
  };
  CHECK(environment_value(with(std::nullopt), "RLOCK_PASSWORD") == "x");
  CHECK(environment_value(with(std::nullopt), "RLOCK_PASSWORD_FILE") == "/old");
  CHECK(environment_value(with("/new"), "RLOCK_PASSWORD") == "");
  CHECK(environment_value(with("/new"), "RLOCK_PASSWORD_FILE") == "/new");
  CHECK(environment_value(with("/new"), "REDISCLI_AUTH") == "y");
  CHECK(environment_value(with(""), "RLOCK_PASSWORD_FILE") == "");
}

TEST_CASE("job environment: of several locks the first is the lock, and each has its line")
{
  const LockName a = *LockName::parse("a");
  const LockName b = *LockName::parse("b");
  const Owner ours = Owner::of("o2:2");
  const Owner ancestors = Owner::of("o1:1");
  const auto environment =
      job_environment({"RLOCK_HELD=o1:1 b"},
                      {.held = {{a, ours, Millis{20'000}}, {b, ancestors, Millis{30'000}}}, .server = {"redis://h:1"}});
  CHECK(environment_value(environment, "RLOCK_KEY") == "a");
  CHECK(environment_value(environment, "RLOCK_TOKEN") == "o2:2");
  CHECK(environment_value(environment, "RLOCK_LEASE_MS") == "20000");
  CHECK(environment_value(environment, "RLOCK_HELD") == "o1:1 b\no2:2 a\no1:1 b");
}

TEST_CASE("job environment: the number of the shard and its name, which the shards of an outer run do not leave behind")
{
  const HeldLock lock{
      .name = *LockName::parse("stock:0"), .hold = Owner::of("o:1"), .lease = Millis{1}, .shard = Shard{0}};
  const auto environment = job_environment({}, {.held = {lock}, .server = {"unix:///s"}});
  CHECK(environment_value(environment, "RLOCK_SHARD") == "0");
  CHECK_FALSE(find_variable(environment, "RLOCK_SHARD_NAME"));
  CHECK(environment_value(environment, "RLOCK_KEY") == "stock:0");
  const HeldLock named{
      .name = *LockName::parse("stock:a"), .hold = Owner::of("o:1"), .lease = Millis{1}, .shard = Shard{1, "a"}};
  const auto with_name = job_environment({}, {.held = {named}, .server = {"unix:///s"}});
  CHECK(environment_value(with_name, "RLOCK_SHARD") == "1");
  CHECK(environment_value(with_name, "RLOCK_SHARD_NAME") == "a");
  CHECK_FALSE(find_variable(job_environment(with_name, {.held = {lock}, .server = {"unix:///s"}}), "RLOCK_SHARD_NAME"));
}

TEST_CASE("ancestors: all that held this very key, the innermost first, each once")
{
  const auto found = [](const std::string& held, const char* key) {
    std::string owners;
    for (const Owner& owner : ancestors_with({"RLOCK_HELD=" + held}, *LockName::parse(key))) {
      owners += owner.text() + ";";
    }
    return owners;
  };
  struct Row {
    const char* why;
    const char* held;
    const char* key;
    const char* expect;
  };
  const Row rows[] = {
      {"nothing held", "", "a", ""},
      {"one", "o1:1 a", "a", "o1:1;"},
      {"a in b in a", "o1:1 a\no2:2 b\no3:3 a", "a", "o3:3;o1:1;"},
      {"re-entered", "o1:1 a\no2:2 b\no1:1 a", "a", "o1:1;"},
      {"another key", "o1:1 a", "b", ""},
      {"a key that begins like it", "o1:1 ab\no2:2 a b", "a", ""},
      {"a key with spaces", "o1:1 a b", "a b", "o1:1;"},
      {"by acquire, nested in one", "o1:1 a\no1:1/8743c9c0-0795-4907-87fd-6c719a6b4586:1 a", "a", "o1:1;"},
      {"what nobody of us wrote", "\n\n a\na\no1:1\no1:1 a\n", "a", "o1:1;"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(found(row.held, row.key) == row.expect);
  }
  CHECK(ancestors_with({"PATH=/bin"}, *LockName::parse("a")).empty());
}
