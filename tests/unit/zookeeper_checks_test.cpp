// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_checks.h"

#include "support/findings.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::zookeeper;
using rlock::record::ClockDifference;

namespace {

ServerFacts three_members()
{
  ServerFacts facts;
  for (const char* mode : {"leader", "follower", "follower"}) {
    facts.members.push_back({.where = "zookeeper://zk:2181", .version = "3.9.4", .mode = mode, .answers = true});
  }
  facts.session = facts.asked_for = 30s;
  facts.uses_tls = true;
  facts.clock = ClockDifference{.ahead_ms = 3, .unsure_ms = 2};
  return facts;
}

}  // namespace

TEST_CASE("zookeeper checks: an ensemble of three is fit")
{
  for (const char* check : {"version", "members", "sessions", "messages", "encryption", "clock"}) {
    CAPTURE(std::string(check));
    CHECK(status_in(findings_of(three_members()), check) == "ok");
  }
}

TEST_CASE("zookeeper checks: what is not fit is named")
{
  ServerFacts facts = three_members();
  facts.members[1].version = "3.4.14";
  CHECK(status_in(findings_of(facts), "version") == "fail");
  facts = three_members();
  for (MemberFacts& member : facts.members) {
    member.version.clear();
  }
  CHECK(status_in(findings_of(facts), "version") == "unknown");
  facts = three_members();
  facts.members[2].answers = false;
  CHECK(status_in(findings_of(facts), "members") == "warn");
  facts = three_members();
  facts.members.resize(1);
  CHECK(status_in(findings_of(facts), "members") == "warn");
  facts = three_members();
  facts.session = 20s;
  CHECK(status_in(findings_of(facts), "sessions") == "warn");
  facts = three_members();
  facts.uses_tls = false;
  CHECK(status_in(findings_of(facts), "encryption") == "warn");
  facts = three_members();
  facts.clock->ahead_ms = -3'600'000;
  CHECK(status_in(findings_of(facts), "clock") == "warn");
  facts.clock.reset();
  CHECK(status_in(findings_of(facts), "clock") == "unknown");
}

TEST_CASE("zookeeper checks: versions that may lose commits fail, those whose members may differ warn")
{
  const std::pair<const char*, const char*> rows[] = {
      {"3.4.14", "fail"}, {"3.5.10", "fail"}, {"3.7.2", "fail"}, {"3.8.0", "fail"}, {"3.8.3", "fail"},
      {"3.8.4", "warn"},  {"3.8.6", "warn"},  {"3.9.0", "fail"}, {"3.9.1", "fail"}, {"3.9.2", "warn"},
      {"3.9.3", "fail"},  {"3.9.4", "ok"},    {"3.10.0", "ok"},  {"4.0.0", "ok"},   {"unknown", "ok"}};
  for (const auto& [version, expect] : rows) {
    const std::string shown = version;  // clang 14 captures no structured binding
    CAPTURE(shown);
    ServerFacts facts = three_members();
    facts.members[1].version = version;
    CHECK(status_in(findings_of(facts), "version") == expect);
    facts.members[0].version = "3.9.2";  // the worst one is named
    CHECK(status_in(findings_of(facts), "version") == (std::string(expect) == "fail" ? "fail" : "warn"));
  }
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
