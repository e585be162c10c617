// SPDX-License-Identifier: Apache-2.0
#include "stores/mongo/mongo_checks.h"

#include "support/findings.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::mongo;

namespace {

CheckedFacts good_facts()
{
  CheckedFacts facts;
  facts.version = "7.0.14";
  facts.server = {.time_ms = 1, .replica_set = "rs0", .is_primary = true, .is_mongos = false, .wire_version = 21};
  facts.replicas = ReplicaFacts{.members = 3, .voters_with_data = 3, .arbiters = 0, .majority = 2};
  facts.is_persistent = true;
  facts.connections = 10;
  facts.connections_left = 800;
  facts.uses_tls = true;
  return facts;
}

}  // namespace

TEST_CASE("mongo checks: a good replica set passes all") { check_all_ok(findings_of(good_facts())); }

TEST_CASE("mongo checks: each fact that makes a server unfit is found")
{
  struct Row {
    const char* check;
    CheckStatus status;
    void (*change)(CheckedFacts&);
  };
  constexpr auto warns = CheckStatus::warn;
  constexpr auto fails = CheckStatus::fail;
  constexpr auto unknown = CheckStatus::unknown;
  const Row rows[]{
      {"version", fails, [](CheckedFacts& facts) { facts.server.wire_version = 8; }},
      {"version", fails, [](CheckedFacts& facts) { facts.ferretdb = "v1.24.0"; }},
      {"version", warns, [](CheckedFacts& facts) { facts.ferretdb = "v2.1.0"; }},
      {"role", fails, [](CheckedFacts& facts) { facts.server.is_primary = false; }},
      {"role", fails, [](CheckedFacts& facts) { facts.server.is_mongos = true; }},
      {"persistence", fails, [](CheckedFacts& facts) { facts.is_persistent = false; }},
      {"persistence", unknown, [](CheckedFacts& facts) { facts.is_persistent.reset(); }},
      {"replicas", warns, [](CheckedFacts& facts) { facts.replicas->voters_with_data = 2; }},
      {"replicas", unknown, [](CheckedFacts& facts) { facts.replicas.reset(); }},
      {"connections", warns, [](CheckedFacts& facts) { facts.connections_left = 2; }},
      {"connections", unknown, [](CheckedFacts& facts) { facts.connections.reset(); }},
      {"encryption", warns, [](CheckedFacts& facts) { facts.uses_tls = false; }},
      {"clock", warns, [](CheckedFacts& facts) { facts.ahead_ms = -5000; }},
  };
  for (const Row& row : rows) {
    CheckedFacts facts = good_facts();
    row.change(facts);
    const Finding found = finding(facts, row.check);
    CHECK_MESSAGE(found.status == row.status, row.check << ": " << found.found);
    CHECK_MESSAGE(!found.advice.empty(), row.check);
  }
}

TEST_CASE("mongo checks: a server that is alone has no replicas to ask for, and its host needs no encryption")
{
  CheckedFacts facts = good_facts();
  facts.server.replica_set.clear();
  facts.replicas.reset();
  facts.uses_tls = false;
  facts.is_this_host = true;
  CHECK(finding(facts, "replicas").status == CheckStatus::ok);
  CHECK(finding(facts, "encryption").status == CheckStatus::ok);
}

TEST_CASE("mongo checks: a set of two and an arbiter stops with one of its data members")
{
  CheckedFacts facts = good_facts();
  facts.replicas = ReplicaFacts{.members = 3, .voters_with_data = 2, .arbiters = 1, .majority = 2};
  CHECK(has(finding(facts, "replicas").advice, "instead of an arbiter"));
}

TEST_CASE("mongo checks: members without a vote are not counted for the majority")
{
  CheckedFacts facts = good_facts();
  facts.replicas = ReplicaFacts{.members = 5, .voters_with_data = 3, .arbiters = 0, .majority = 2};
  CHECK(finding(facts, "replicas").status == CheckStatus::ok);
  facts.replicas->majority = 0;  // an old server does not say
  CHECK(finding(facts, "replicas").status == CheckStatus::warn);
}
