// SPDX-License-Identifier: Apache-2.0
// The doctor's rules for certificates, sentinels, clusters, several servers and this host.
#include "doctor/rules.h"
#include "support/findings.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

std::string status_of(const Facts& facts, std::string_view check) { return status_in(check_server(facts, 30s), check); }

const HostPort db1{"db1", 6379};
const HostPort db2{"db2", 6379};

SentinelView names(const HostPort& master, Result<Done> fail_over = Done{})
{
  return {.where = "s:26379", .master = master, .can_fail_over = std::move(fail_over)};
}

Facts watched_by(std::vector<SentinelView> said, Result<Done> is_one = Done{})
{
  Facts facts;
  facts.sentinels = SentinelFacts{std::move(said), {{db1, std::move(is_one)}}};
  return facts;
}

Facts in_a_cluster(const std::string& info, std::vector<SlotOwner> owners, const std::string& full_coverage = "yes")
{
  Facts facts;
  facts.info = Fields();
  facts.config = Fields();
  facts.config->set("cluster-require-full-coverage", full_coverage);
  facts.config->set("cluster-allow-pubsubshard-when-down", "yes");
  facts.cluster = ClusterFacts{Fields::of_info(info), std::move(owners)};
  return facts;
}

Facts server(const std::string& run, const std::string& history, const std::string& host)
{
  Facts facts;
  facts.server = "redis://" + host;
  facts.host = host;
  facts.info = Fields::of_info("run_id:" + run + "\r\nmaster_replid:" + history + "\r\n");
  return facts;
}

std::string together(const std::vector<Facts>& servers, std::string_view check)
{
  return status_in(check_quorum(servers), check);
}

}  // namespace

TEST_CASE("doctor: what there is none of is not spoken of")
{
  for (const char* check :
       {"certificate", "sentinels", "fail-over", "master", "cluster", "spares", "coverage", "shard-pubsub"}) {
    CHECK_MESSAGE(status_of(Facts{}, check) == "missing", check);
  }
  CHECK(check_quorum(std::vector<Facts>(1)).empty());
}

TEST_CASE("doctor: the certificate that expires first decides")
{
  const auto with = [](std::vector<CertificateLife> all) {
    Facts facts;
    facts.certificates = std::move(all);
    return status_of(facts, "certificate");
  };
  using std::chrono::days;
  const Error expired{ErrorCode::server_not_ready, "has expired"};
  const Error silent{ErrorCode::unreachable, "silence"};
  CHECK(with({{"a", days(15)}}) == "ok");
  CHECK(with({{"a", days(14)}}) == "warn");
  CHECK(with({{"a", days(0)}}) == "warn");
  CHECK(with({{"a", days(300)}, {"b", days(3)}}) == "warn");
  CHECK(with({{"a", days(300)}, {"b", expired}}) == "fail");
  CHECK(with({{"a", days(300)}, {"b", silent}}) == "ok");
  CHECK(with({{"a", silent}}) == "unknown");
}

TEST_CASE("doctor: sentinels")
{
  const Error silent{ErrorCode::unreachable, "silence"};
  const Error no_quorum{ErrorCode::server_not_ready, "NOQUORUM"};
  const Error no_right{ErrorCode::refused, "NOPERM"};
  struct Row {
    const char* why;
    Facts facts;
    const char* sentinels;
    const char* fail_over;
    const char* master;
  };
  const Row rows[] = {
      {"all is well", watched_by({names(db1), names(db1)}), "ok", "ok", "ok"},
      {"one says nothing", watched_by({names(db1), {.where = "t", .answered = silent, .master = {}}}), "fail", "ok",
       "ok"},
      {"one names another", watched_by({names(db1), names(db2)}), "fail", "ok", "ok"},
      {"one knows none", watched_by({names(db1), {.where = "t", .master = {}}}), "fail", "ok", "ok"},
      {"none knows any", watched_by({{.where = "t", .master = {}}}), "fail", "unknown", "ok"},
      {"too few for a fail-over", watched_by({names(db1), names(db1, no_quorum)}), "ok", "fail", "ok"},
      {"may not be asked", watched_by({names(db1, no_right)}), "ok", "unknown", "ok"},
      {"it is a replica", watched_by({names(db1)}, Error{ErrorCode::server_not_ready, "a replica"}), "ok", "ok",
       "fail"},
      {"it does not let us in", watched_by({names(db1)}, no_right), "ok", "ok", "unknown"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(status_of(row.facts, "sentinels") == row.sentinels);
    CHECK(status_of(row.facts, "fail-over") == row.fail_over);
    CHECK(status_of(row.facts, "master") == row.master);
  }
  Facts out_of_reach = watched_by({names(db1), names(db2)});
  out_of_reach.failure = silent;
  CHECK(status_of(out_of_reach, "sentinels") == "fail");
  CHECK(status_of(out_of_reach, "eviction") == "missing");
}

TEST_CASE("doctor: a cluster")
{
  const std::string fine = "cluster_state:ok\r\ncluster_slots_ok:16384\r\n";
  CHECK(status_of(in_a_cluster(fine, {{db1, 1}}), "cluster") == "ok");
  CHECK(status_of(in_a_cluster("cluster_state:fail\r\ncluster_slots_ok:16384\r\n", {{db1, 1}}), "cluster") == "fail");
  CHECK(status_of(in_a_cluster("cluster_state:ok\r\ncluster_slots_ok:16383\r\n", {{db1, 1}}), "cluster") == "fail");
  CHECK(status_of(in_a_cluster("", {{db1, 1}}), "cluster") == "unknown");
  CHECK(status_of(in_a_cluster(fine, {{db1, 1}, {db2, 2}}), "spares") == "ok");
  CHECK(status_of(in_a_cluster(fine, {{db1, 1}, {db2, 0}}), "spares") == "warn");
  CHECK(status_of(in_a_cluster(fine, {}), "spares") == "unknown");
  CHECK(status_of(in_a_cluster(fine, {{db1, 1}}, "yes"), "coverage") == "ok");
  CHECK(status_of(in_a_cluster(fine, {{db1, 0}}, "yes"), "coverage") == "warn");
  CHECK(status_of(in_a_cluster(fine, {{db1, 0}}, "no"), "coverage") == "ok");

  Facts deaf = in_a_cluster(fine, {{db1, 1}});
  CHECK(status_of(deaf, "shard-pubsub") == "ok");
  deaf.config->set("cluster-allow-pubsubshard-when-down", "no");
  CHECK(status_of(deaf, "shard-pubsub") == "warn");

  Facts hidden;
  hidden.cluster = ClusterFacts{};
  for (const char* check : {"cluster", "spares", "coverage", "shard-pubsub"}) {
    CHECK_MESSAGE(status_of(hidden, check) == "unknown", check);
  }
}

TEST_CASE("doctor: servers that are to be a quorum, or are not fit for one")
{
  const Facts a = server("1", "x", "db1"), b = server("2", "y", "db2"), c = server("3", "z", "db3");
  for (const char* check : {"quorum", "distinct", "unrelated", "hosts"}) {
    CHECK_MESSAGE(together({a, b, c}, check) == "ok", check);
  }
  CHECK(together({a, b}, "quorum") == "warn");
  CHECK(together({a, b, c, server("4", "w", "db4")}, "quorum") == "warn");
  CHECK(together({a, b, server("1", "x", "alias")}, "distinct") == "fail");
  CHECK(together({a, b, server("1", "x", "alias")}, "unrelated") == "ok");
  CHECK(together({a, b, server("3", "y", "db3")}, "unrelated") == "fail");
  CHECK(together({a, b, server("3", "z", "db1")}, "hosts") == "warn");
  Facts hidden;
  hidden.server = "redis://db4";
  CHECK(together({a, b, hidden}, "distinct") == "unknown");
  CHECK(together({a, b, hidden}, "unrelated") == "unknown");
  CHECK(together({a, hidden, server("1", "x", "alias")}, "distinct") == "fail");

  Facts silent;
  silent.server = "redis://db5";
  silent.failure = Error{ErrorCode::unreachable, "cannot reach redis://db5: connection refused"};
  CHECK(together({a, silent, server("1", "x", "alias")}, "distinct") == "fail");
  for (const Finding& finding : check_quorum(std::vector{a, b, silent})) {
    if (finding.check == "distinct" || finding.check == "unrelated") {
      CHECK(finding.status == CheckStatus::unknown);
      CHECK(finding.found == "not asked: redis://db5 does not answer");
      CHECK(finding.advice.empty());
    }
  }
}

TEST_CASE("doctor: this host")
{
  CHECK(status_in(check_host({}), "host") == "ok");
  CHECK(status_in(check_host({.missing = {"pidfd_open (Function not implemented)"}}), "host") == "warn");
  CHECK(status_in(check_host({}), "sigchld") == "ok");
  CHECK(status_in(check_host({.missing = {}, .child_signal_ignored = true}), "sigchld") == "warn");
}
