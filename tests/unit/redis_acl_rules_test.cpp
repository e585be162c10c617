// SPDX-License-Identifier: Apache-2.0
#include "redis/acl.h"

#include "lua/scripts.h"
#include "support/test.h"

#include <cctype>
#include <regex>
#include <set>

using namespace rlock::test;

namespace {

std::set<std::string> called_by_scripts()
{
  static const std::regex call(R"(redis\.p?call\('([A-Z]+)')");
  std::set<std::string> commands;
  for (const Script* script : scripts::all) {
    const std::string source = script->source();
    for (std::sregex_iterator it(source.begin(), source.end(), call), end; it != end; ++it) {
      std::string command = (*it)[1];
      std::transform(command.begin(), command.end(), command.begin(), [](unsigned char c) { return std::tolower(c); });
      commands.insert(command == "pubsub" ? "pubsub|numsub" : command);
    }
  }
  return commands;
}

int line_with(const Script& script, std::string_view text)
{
  const std::string source = script.source();
  const auto at = source.find(text);
  REQUIRE(at != std::string::npos);
  return 1 + static_cast<int>(std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

}  // namespace

TEST_CASE("acl rules: the commands are those of the scripts and of rlock itself, each once, and no more")
{
  const std::vector<std::string> globs{"app:*"};
  const auto rights = acl_rules_for(globs);
  REQUIRE(rights);
  std::set<std::string> expected = called_by_scripts();
  CHECK(expected.erase("spublish") == 1);  // where there is a cluster
  expected.insert({"eval", "evalsha", "exists", "info", "scan", "select", "subscribe", "wait", "zscore"});
  for (const std::string& command : rights->commands) {
    CHECK_MESSAGE(expected.erase(command) == 1, command << " is not needed, or twice there");
  }
  for (const std::string& command : expected) {
    FAIL_CHECK(command << " is missing");
  }
}

TEST_CASE("acl rules: a cluster needs some more")
{
  const std::vector<std::string> globs{"app:*"};
  const auto alone = *acl_rules_for(globs);
  auto rights = alone;
  add_cluster(rights);
  CHECK(rights.keys == alone.keys);
  CHECK(rights.channels == alone.channels);
  const std::vector<std::string> more(rights.commands.begin() + static_cast<std::ptrdiff_t>(alone.commands.size()),
                                      rights.commands.end());
  CHECK(more == std::vector<std::string>{"asking", "cluster|slots", "pubsub|shardnumsub", "spublish", "ssubscribe"});
}

TEST_CASE("acl rules: scripts name each command where it is called, so that it can be found there")
{
  static const std::regex anything(R"(redis\.p?call\((?!'[A-Z]+'))");
  for (const Script* script : scripts::all) {
    CAPTURE(script->name);
    const std::string source = script->source();
    CHECK_FALSE(std::regex_search(source, anything));
  }
}

TEST_CASE("acl rules: keys and channels are named after the glob as they are after a lock")
{
  const std::vector<std::string> globs{"app:*"};
  const auto rights = *acl_rules_for(globs);
  CHECK(rights.keys == std::vector<std::string>{"app:*",
                                                "redisson_lock_token:{app:*}",
                                                "rlock:holder:{app:*}",
                                                "rlock:force:{app:*}",
                                                "rlock:events:{app:*}",
                                                "rlock:runs:{app:*}",
                                                "rlock:reserved:{app:*}",
                                                "redisson_lock_queue:{app:*}",
                                                "{app:*}:timeout",
                                                "rlock:permits:{app:*}",
                                                "rlock:done:{app:*}",
                                                "{app:*}:*:rwlock_timeout:*",
                                                "rlock:queue:{app:*}",
                                                "rlock:waiters:{app:*}",
                                                "rlock:queue-rw:{app:*}",
                                                "rlock:waiters-rw:{app:*}",
                                                "rlock:queue-permits:{app:*}",
                                                "rlock:waiters-permits:{app:*}",
                                                "rlock:queue-string:{app:*}",
                                                "rlock:waiters-string:{app:*}",
                                                "redisson_lock_token:app:*",
                                                "rlock:holder:tagged:app:*",
                                                "rlock:force:tagged:app:*",
                                                "rlock:events:tagged:app:*",
                                                "rlock:runs:tagged:app:*",
                                                "rlock:reserved:tagged:app:*",
                                                "redisson_lock_queue:app:*",
                                                "rlock:permits:tagged:app:*",
                                                "rlock:done:tagged:app:*",
                                                "rlock:queue:tagged:app:*",
                                                "rlock:waiters:tagged:app:*",
                                                "rlock:queue-rw:tagged:app:*",
                                                "rlock:waiters-rw:tagged:app:*",
                                                "rlock:queue-permits:tagged:app:*",
                                                "rlock:waiters-permits:tagged:app:*",
                                                "rlock:queue-string:tagged:app:*",
                                                "rlock:waiters-string:tagged:app:*",
                                                "rlock:quorum"});
  CHECK(rights.channels ==
        std::vector<std::string>{"redisson_lock__channel:{app:*}", "redisson_rwlock:{app:*}", "redisson_sc:{app:*}",
                                 "redisson_lock__channel:{app:*}:*", "rlock:taken:{app:*}", "rlock:owner:{app:*}:*",
                                 "rlock:done:{app:*}", "redisson_lock__channel:app:*", "redisson_rwlock:app:*",
                                 "redisson_sc:app:*", "redisson_lock__channel:app:*:*", "rlock:taken:tagged:app:*",
                                 "rlock:owner:tagged:app:*:*", "rlock:done:tagged:app:*"});
  const std::vector<std::string> tagged{"{app}:*"};
  CHECK(acl_rules_for(tagged)->keys[1] == "redisson_lock_token:{app}:*");
  CHECK(acl_rules_for(tagged)->keys.size() == 21);
  const std::vector<std::string> exact{"stock"};
  CHECK(acl_rules_for(exact)->keys.size() == 21);
}

TEST_CASE("acl rules: all keys are one rule, which Redis lets no other follow")
{
  const auto rights = acl_rules_for(std::vector<std::string>{"app:*", "*"});
  REQUIRE(rights);
  CHECK(rights->keys == std::vector<std::string>{"*"});
}

TEST_CASE("acl rules: what no rule can say")
{
  const std::vector<std::string> blank{"a b"};
  CHECK(has(acl_rules_for(blank).error().text, "(try ? for it)"));
  const std::vector<std::string> split{"a}*"};
  CHECK(acl_rules_for(split).error().code == ErrorCode::config);
}

TEST_CASE("acl error: the line of a script names command and key")
{
  const Script& script = scripts::plain_acquire;
  const ScriptCall call{script, {"k", "fence{k}", "holder{k}"}, {"me", "channel{k}", "owner{k}:"}};
  CHECK(requests_on_line(call, line_with(script, "redis.call('SET', FENCE")) == "SET fence{k}");
  CHECK(requests_on_line(call, line_with(script, "redis.pcall('HMGET', LOCK")) == "HMGET k");
  CHECK(requests_on_line(call, line_with(script, "redis.call('PUBLISH', CHANNEL, message)")) == "PUBLISH channel{k}");
  CHECK(requests_on_line(call, line_with(script, "redis.call('PUBLISH', OWNER_CHANNEL ..")) == "PUBLISH owner{k}:*");
  CHECK(requests_on_line(call, line_with(script, "redis.call('TIME')")) == "TIME");
  CHECK(requests_on_line(call, line_with(script, "return kind ~= NAME and")) == "");
  CHECK(requests_on_line(call, 1'000'000) == "");
  CHECK(requests_on_line(call, 1) == "");
}
