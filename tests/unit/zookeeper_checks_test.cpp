// SPDX-License-Identifier: Apache-2.0
#include "store/zookeeper/zookeeper_checks.h"

#include "support/test.h"

using namespace rlock::test;
using namespace rlock::zookeeper;

namespace {

ServerFacts three_members()
{
  ServerFacts facts;
  for (const char* mode : {"leader", "follower", "follower"}) {
    facts.members.push_back({.where = "zookeeper://zk:2181", .version = "3.8.0", .mode = mode, .answers = true});
  }
  facts.session = facts.asked_for = 30s;
  facts.uses_tls = true;
  return facts;
}

std::string status_of(const ServerFacts& facts, std::string_view check)
{
  for (const auto& finding : findings_of(facts)) {
    if (finding.check == check) {
      constexpr std::array<const char*, 4> words{"ok", "warn", "fail", "unknown"};
      return words[static_cast<std::size_t>(finding.status)];
    }
  }
  return "missing";
}

}  // namespace

TEST_CASE("zookeeper checks: an ensemble of three is fit")
{
  for (const char* check : {"version", "members", "sessions", "messages", "encryption"}) {
    CAPTURE(std::string(check));
    CHECK(status_of(three_members(), check) == "ok");
  }
}

TEST_CASE("zookeeper checks: what is not fit is named")
{
  ServerFacts facts = three_members();
  facts.members[1].version = "3.4.14";
  CHECK(status_of(facts, "version") == "fail");
  facts = three_members();
  for (MemberFacts& member : facts.members) {
    member.version.clear();
  }
  CHECK(status_of(facts, "version") == "unknown");
  facts = three_members();
  facts.members[2].answers = false;
  CHECK(status_of(facts, "members") == "warn");
  facts = three_members();
  facts.members.resize(1);
  CHECK(status_of(facts, "members") == "warn");
  facts = three_members();
  facts.session = 20s;
  CHECK(status_of(facts, "sessions") == "warn");
  facts = three_members();
  facts.uses_tls = false;
  CHECK(status_of(facts, "encryption") == "warn");
}

TEST_CASE("zookeeper checks: the answer to srvr is read")
{
  MemberFacts facts;
  facts.answers = true;
  read_srvr(
      "Zookeeper version: 3.8.0-abc, built on 2024\nLatency min/avg/max: 0/0.0/0\nMode: follower\nNode count: 5\n",
      facts);
  CHECK(facts.version == "3.8.0");
  CHECK(facts.mode == "follower");
  read_srvr("This ZooKeeper instance is not currently serving requests\n", facts);
  CHECK_FALSE(facts.answers);
  CHECK(facts.version.empty());
}
