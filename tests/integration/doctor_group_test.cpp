// SPDX-License-Identifier: Apache-2.0
// `rlock doctor` where several servers belong together: sentinels, a cluster, a quorum; and about certificates and this host.
#include "support/certificates.h"
#include "support/diagnosis.h"
#include "support/integration.h"
#include "support/redis_cluster.h"
#include "support/scripted_server.h"
#include "support/sentinel_group.h"
#include "support/sockets.h"

#include <deque>

using namespace rlock::test;

namespace {

RedisServer fit_on_tcp(const Words& more = {})
{
  RedisOptions options = fit(more);
  options.tcp = true;
  return RedisServer(options);
}

// A sentinel alone, with this quorum in its configuration.
SentinelProcess sentinel_of(std::uint16_t master, unsigned quorum = 1)
{
  return SentinelProcess({.master_port = master, .quorum = quorum, .down_after = 30s, .password = {}});
}

std::string url_of(const Words& sentinels)
{
  std::string hosts;
  for (const std::string& each : sentinels) {
    hosts += (hosts.empty() ? "" : ",") + each;
  }
  return "redis+sentinel://" + hosts + "/mymaster";
}

Diagnosis of_certificate(int days)
{
  const Authority authority;
  const RedisServer server({.args = {"--appendonly", "yes"}, .tcp = true, .tls = authority.sign("IP:127.0.0.1", days)});
  return examined(server.tcp_url(), {"--cacert", authority.file()});
}

// A master reports a replica when it has heard of its replication.
void know_their_replicas(const RedisCluster& cluster)
{
  const auto all_told = [](const RedisServer& node) {
    const Reply slots = node.command({"CLUSTER", "SLOTS"});
    return std::all_of(slots.elements.begin(), slots.elements.end(),
                       [](const Reply& range) { return range.elements.size() == 4; });
  };
  for (std::size_t i = 0; i < 3; ++i) {
    const RedisServer& master = cluster.nodes()[i];
    master.command({"SET", cluster.key_at(master, "k"), "v"});
  }
  for (const RedisServer& node : cluster.nodes()) {
    wait_until([&] { return all_told(node); }, "each node knows all replicas");
  }
}

}  // namespace

TEST_CASE("doctor: a certificate that is good for long, for a while, and no more")
{
  const Diagnosis fine = of_certificate(60);
  CHECK(complaints(fine) == "");
  const std::string found = fine.found("certificate");
  CHECK_MESSAGE((found.ends_with(" is good for 59 days") || found.ends_with(" is good for 60 days")),
                found);  // within one second
  const Diagnosis soon = of_certificate(10);
  CHECK(soon.code == 0);
  CHECK(complaints(soon) == "certificate=warn");
  const Diagnosis over = of_certificate(-1);
  CHECK(over.code == 69);
  CHECK(complaints(over) == "certificate=fail reach=fail");
  CHECK(has(over.found("certificate"), "has expired"));
}

TEST_CASE("doctor: sentinels that agree")
{
  const SentinelGroup group({.servers = fit()});
  const Diagnosis told = examined(group.url());
  CHECK(told.code == 0);
  CHECK(complaints(told) == "replicas=warn");
  for (const char* check : {"sentinels", "fail-over", "master"}) {
    CHECK_MESSAGE(told.status(check) == "ok", check);
  }
  CHECK(told.found("sentinels").starts_with("3 sentinels name 127.0.0.1:"));
}

TEST_CASE("doctor: sentinels that do not agree, are not there, or are too few")
{
  const RedisServer one = fit_on_tcp(), other = fit_on_tcp();
  const RedisServer third = fit_on_tcp();  // sentinels of one server find each other
  const SentinelProcess here = sentinel_of(one.port()), there = sentinel_of(other.port()),
                        lonely = sentinel_of(third.port(), 2);

  const Diagnosis apart = examined(url_of({here.where(), there.where()}));
  CHECK(apart.code == 1);
  CHECK(complaints(apart) == "sentinels=fail");
  CHECK(has(apart.found("sentinels"), std::to_string(other.port())));

  const Diagnosis absent = examined(url_of({here.where(), "127.0.0.1:1"}));
  CHECK(absent.code == 1);
  CHECK(complaints(absent) == "sentinels=fail");

  const Diagnosis few = examined(url_of({lonely.where()}));
  CHECK(few.code == 1);
  CHECK(complaints(few) == "fail-over=fail");
  CHECK(has(few.found("fail-over"), "NOQUORUM"));

  const Diagnosis unknown = examined("redis+sentinel://" + here.where() + "/nobody");
  CHECK(unknown.code == 78);
  CHECK(complaints(unknown) == "fail-over=unknown master=unknown reach=fail sentinels=fail");
}

TEST_CASE("doctor: sentinels that name a replica, or may not be asked everything")
{
  const RedisServer master = fit_on_tcp();
  const RedisServer replica = fit_on_tcp({"--replicaof", "127.0.0.1", std::to_string(master.port())});
  const SentinelProcess here = sentinel_of(master.port()), there = sentinel_of(replica.port());
  const Diagnosis wrong = examined(url_of({here.where(), there.where()}));
  CHECK(wrong.status("master") == "fail");
  CHECK(has(wrong.found("master"), "replica"));

  here.command({"ACL", "SETUSER", "watcher", "on", ">geheim", "+ping", "+hello", "+subscribe",
                "+sentinel|get-master-addr-by-name"});
  const Diagnosis told = examined(url_of({here.where()}) + "?sentinel_username=watcher&sentinel_password=geheim");
  CHECK(told.status("sentinels") == "ok");
  CHECK(told.status("fail-over") == "unknown");
  CHECK(told.found("fail-over") == "not permitted");
}

AUTHORITY_CASE("doctor: sentinels that are silent cost one timeout together, not one each")
{
  const Certificate certificate = authority.sign("IP:127.0.0.1", 60);
  const RedisServer server({.args = {"--appendonly", "yes"}, .tcp = true, .tls = certificate});
  const std::string port = std::to_string(free_port());
  const SentinelProcess sentinel(
      {.master_port = server.port(),
       .quorum = 1,
       .down_after = 1h,
       .password = {},
       .lines = {"tls-port " + port, "tls-cert-file " + certificate.file, "tls-key-file " + certificate.key,
                 "tls-ca-cert-file " + authority.file(), "tls-auth-clients no", "tls-replication yes"}});
  std::deque<ScriptedServer> silent;
  Words all{"127.0.0.1:" + port};
  while (silent.size() < 8) {
    silent.emplace_back([](const Peer& peer) { peer.lasts(plenty); }, Endpoint::Kind::tcp);
    all.push_back("127.0.0.1:" + std::to_string(silent.back().endpoint().port));
  }
  const Instant start = real_clock.now();
  const Diagnosis told =
      examined(url_of(all).insert(5, "s"), {"--cacert", authority.file(), "--server-timeout", "500ms"});
  CHECK(real_clock.now() - start < 3s);  // each is asked twice: for the master, and for its certificate
  CHECK(complaints(told) == "sentinels=fail");
  CHECK(has(told.found("sentinels"), all[1]));
}

TEST_CASE("doctor: a cluster in which each master has a replica")
{
  const RedisCluster cluster({.replicas = true, .args = {"--appendonly", "yes"}});
  know_their_replicas(cluster);
  const Diagnosis told = examined(cluster.url());
  CHECK(told.code == 0);
  CHECK(complaints(told) == "replicas=warn");
  for (const char* check : {"cluster", "spares", "coverage", "shard-pubsub"}) {
    CHECK_MESSAGE(told.status(check) == "ok", check);
  }
}

TEST_CASE("doctor: servers that are to be a quorum")
{
  const RedisServer one(fit()), two(fit()), three(fit());
  const Diagnosis set = examined(one.url(), {"-S", two.url(), "-S", three.url()});
  CHECK(set.code == 0);
  CHECK(complaints(set) == "hosts=warn");  // all servers are on one host
  for (const char* check : {"quorum", "distinct", "unrelated"}) {
    CHECK_MESSAGE(set.status(check) == "ok", check);
  }
  const Diagnosis pair = examined(one.url(), {"-S", two.url()});
  CHECK(pair.code == 0);
  CHECK(pair.status("quorum") == "warn");

  RedisServer gone(fit());
  const std::string lost = gone.url();
  gone.stop_signal();
  const Diagnosis partly = examined(one.url(), {"-S", two.url(), "-S", lost, "--server-timeout", "300ms"});
  CHECK(partly.code == 69);
  for (const char* check : {"distinct", "unrelated"}) {
    CHECK(partly.status(check) == "unknown");
    CHECK(partly.found(check) == "not asked: " + lost + " does not answer");
    CHECK(partly.findings.at(check).at("advice") == nullptr);
  }

  const auto link = make_temp_dir("link") / "s";
  std::filesystem::create_symlink(one.socket_path(), link);
  const Diagnosis twice = examined(one.url(), {"-S", two.url(), "-S", "unix://" + link.string()});
  CHECK(twice.code == 1);
  CHECK(complaints(twice) == "distinct=fail hosts=warn");
}

TEST_CASE("doctor: examines each of several servers, and reports one that replicates another")
{
  const RedisServer one = fit_on_tcp(), two(fit()),
                    three = fit_on_tcp({"--replicaof", "127.0.0.1", std::to_string(one.port())});
  wait_until([&] { return has(as_text(three.command({"INFO"})), "master_link_status:up"); }, "it follows");
  const Words words{"doctor", "-S", one.url(), "-S", two.url(), "-S", three.url()};
  const Finished text = run_rlock(words);
  CHECK(text.code == 1);
  for (const RedisServer* server : {&one, &two, &three}) {
    CHECK_MESSAGE(has(text.out, server->url() + "\nok       reach"), text.out);
  }
  CHECK(has(text.out, "\nthis host\nok       host"));
  const Diagnosis told = examined(one.url(), {"-S", two.url(), "-S", three.url()});
  CHECK(told.status("unrelated") == "fail");
  CHECK(told.found("unrelated") ==
        one.url() + " and " + three.url() + " share their data: one replicates the other, or both a third");
  CHECK(told.findings.at("role").at("server") == three.url());
  CHECK(told.status("role") == "fail");
}

TEST_CASE("doctor: this host, and a parent process that ignores SIGCHLD")
{
  const RedisServer server(fit());
  const Diagnosis told = examined(server.url());
  CHECK(told.findings.at("host").at("server").is_null());
  const Words words{"doctor", "--json", "-S", server.url()};
  CHECK(complaints(diagnosis(run_rlock(words, {.ignored_signals = {SIGCHLD}}))) == "sigchld=warn");
}
