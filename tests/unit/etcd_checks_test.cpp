// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_checks.h"
#include "support/findings.h"
#include "support/test.h"

using namespace rlock::test;
using etcd::VersionIs;

namespace {

etcd::MemberFacts member(const std::string& version)
{
  return {.where = "etcd://a:2379",
          .status = etcd::StatusAnswer{.header = {}, .version = version, .leader = 1, .errors = {}},
          .error = {}};
}

etcd::CheckedFacts three()
{
  return {.named = {member("3.6.9"), member("3.6.9"), member("3.6.9")},
          .voters = 3,
          .clock = record::ClockDifference{.ahead_ms = 200, .unsure_ms = 501},
          .uses_tls = true};
}

}  // namespace

TEST_CASE("etcd checks: which versions may end a lease that was renewed, or answer with an old state")
{
  struct Row {
    const char* version;
    VersionIs expect;
  };
  const Row rows[] = {{"2.3.8", VersionIs::too_old},       {"3.3.27", VersionIs::too_old},
                      {"3.4.23", VersionIs::loses_leases}, {"3.4.30", VersionIs::loses_leases},
                      {"3.4.31", VersionIs::shows_past},   {"3.5.0", VersionIs::loses_leases},
                      {"3.5.12", VersionIs::loses_leases}, {"3.5.13", VersionIs::shows_past},
                      {"3.5.27", VersionIs::shows_past},   {"3.5.28", VersionIs::good},
                      {"3.4.41", VersionIs::shows_past},   {"3.4.42", VersionIs::good},
                      {"3.6.8", VersionIs::shows_past},    {"3.6.9", VersionIs::good},
                      {"3.7.0", VersionIs::good},          {"3.6.0-rc.1", VersionIs::shows_past},
                      {"4.0.0", VersionIs::good},          {"", VersionIs::unknown},
                      {"3.x", VersionIs::unknown}};
  for (const Row& row : rows) {
    CAPTURE(row.version);
    CHECK(etcd::judge_version(row.version) == row.expect);
  }
}

TEST_CASE("etcd checks: the time in an answer of HTTP")
{
  CHECK(etcd::date_in("HTTP/1.1 200 OK\r\nDate: Sat, 28 Nov 2026 18:45:58 GMT\r\nContent-Length: 2\r\n\r\n{}") ==
        1'795'891'558);
  CHECK_FALSE(etcd::date_in("HTTP/1.1 200 OK\r\n\r\n{}"));
  CHECK_FALSE(etcd::date_in("HTTP/1.1 200 OK\r\nDate: soon\r\n\r\n"));
  CHECK_FALSE(etcd::date_in("\r\nDate: "));
}

TEST_CASE("etcd checks: a good cluster has no finding to act on") { check_all_ok(etcd::findings_of(three())); }

TEST_CASE("etcd checks: what is wrong is said with the advice")
{
  etcd::CheckedFacts facts = three();
  SUBCASE("an old version on one member")
  {
    facts.named[1] = member("3.4.23");
    CHECK(finding(facts, "version").status == CheckStatus::fail);
    CHECK(has(finding(facts, "version").found, "etcd 3.4.23 may end a lease that was renewed"));
  }
  SUBCASE("a version that may answer a read with an old state")
  {
    facts.named[1] = member("3.5.16");
    CHECK(finding(facts, "version").status == CheckStatus::fail);
    CHECK(has(finding(facts, "version").found, "etcd 3.5.16 may answer with an old state"));
  }
  SUBCASE("a member that is silent")
  {
    facts.named[2] = {.where = "etcd://c:2379", .status = std::nullopt, .error = "cannot reach etcd://c:2379"};
    CHECK(finding(facts, "members").status == CheckStatus::warn);
    CHECK(finding(facts, "members").found == "2 of 3 in the URL answer: cannot reach etcd://c:2379");
  }
  SUBCASE("one node, and a member that the URL does not name")
  {
    facts.named.resize(1);
    CHECK(finding(facts, "members").status == CheckStatus::warn);
    facts.voters = 1;
    CHECK(has(finding(facts, "members").found, "no lock is taken or renewed while it is down"));
  }
  SUBCASE("no leader")
  {
    facts.named[0].status->leader = 0;
    CHECK(finding(facts, "leader").status == CheckStatus::fail);
  }
  SUBCASE("an alarm")
  {
    facts.named[0].status->errors = {"memberID:1 alarm:NOSPACE "};
    CHECK(finding(facts, "space").status == CheckStatus::fail);
  }
  SUBCASE("a clock that differs")
  {
    facts.clock->ahead_ms = 3'600'000;
    CHECK(finding(facts, "clock").status == CheckStatus::warn);
    CHECK(has(finding(facts, "clock").advice, "rlock once"));
    facts.clock.reset();
    CHECK(finding(facts, "clock").status == CheckStatus::unknown);
  }
  SUBCASE("no TLS")
  {
    facts.uses_tls = false;
    CHECK(finding(facts, "encryption").status == CheckStatus::warn);
  }
}
