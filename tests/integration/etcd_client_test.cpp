// SPDX-License-Identifier: Apache-2.0
// The client of etcd on real nodes: requests, leases, watches, members, logins, TLS, deadlines.
#include "stores/etcd/etcd_connection.h"
#include "support/etcd_fixture.h"
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/limits.h"
#include "support/sockets.h"

using namespace rlock::test;
using etcd::Compare;

namespace {

const BootClock the_clock;

etcd::Connection connect(const EtcdServer& server, const std::string& url)
{
  return {server.spec(url), the_clock, std::make_unique<SystemRng>()};
}

etcd::Txn put(const std::string& key, const std::string& value, std::int64_t lease = 0)
{
  return {.compare = {}, .success = {etcd::Put{.key = key, .value = value, .lease = lease}}, .failure = {}};
}

std::string value_of(etcd::Connection& connection, const std::string& key)
{
  const auto answer = must(connection.range({.key = key}, within(10s)));
  return answer.keys.empty() ? "(none)" : answer.keys.front().value;
}

}  // namespace

ETCD_CASE("etcd client: a transaction compares, writes and reads, and values may be long")
{
  etcd::Connection connection = connect(server, server.url());
  const std::string text(1'000'000, 'x');
  const auto first = must(connection.txn(put("k", text), within(10s)));
  CHECK(first.succeeded);
  CHECK(value_of(connection, "k") == text);
  etcd::Txn second = put("k", "two");
  second.compare.push_back({Compare::Target::modification, Compare::Result::equal, "k", first.header.revision - 1});
  second.failure.emplace_back(etcd::Range{.key = "k"});
  const auto refused = must(connection.txn(second, within(10s)));
  CHECK_FALSE(refused.succeeded);
  REQUIRE(refused.answers.size() == 1);
  CHECK(refused.answers.front().keys.front().mod_revision == first.header.revision);
  second.compare.front().revision = first.header.revision;
  CHECK(must(connection.txn(second, within(10s))).succeeded);
  CHECK(value_of(connection, "k") == "two");
  CHECK(value_of(connection, "other") == "(none)");
  CHECK(connection.generation() == 1);
}

ETCD_CASE("etcd client: a lease is granted, kept alive and revoked with its key, and one that is gone has no time")
{
  etcd::Connection connection = connect(server, server.url());
  const auto granted = must(connection.grant(77, 30, within(10s)));
  CHECK(granted.ttl == 30);
  CHECK(must(connection.txn(put("k", "v", 77), within(10s))).succeeded);
  const auto kept = must(connection.keep_alive(77, within(10s)));
  CHECK(kept.ttl == 30);
  CHECK(kept.header.member == granted.header.member);
  CHECK(kept.header.raft_term == granted.header.raft_term);
  CHECK(must(connection.time_to_live(77, within(10s))).ttl > 0);
  const auto again = connection.grant(77, 30, within(10s));
  CHECK_FALSE(again);
  CHECK(connection.refusal().code == etcd::GrpcCode::failed_precondition);
  must(connection.revoke(77, within(10s)));
  CHECK(value_of(connection, "k") == "(none)");
  CHECK(must(connection.keep_alive(77, within(10s))).ttl <= 0);
  CHECK(must(connection.time_to_live(77, within(10s))).ttl <= 0);
  must(connection.revoke(77, within(10s)));
  const auto late = connection.txn(put("k", "v", 77), within(10s));
  CHECK_FALSE(late);
  CHECK(has(connection.refusal().text, "requested lease not found"));
  CHECK(connection.is_lease_gone());
  CHECK(connection.generation() == 1);
}

ETCD_CASE("etcd client: a watch tells what is put after it, in order, beside requests on the same connection")
{
  etcd::Connection connection = connect(server, server.url());
  etcd::Connection other = connect(server, server.url());
  must(connection.txn(put("w/0", "before"), within(10s)));
  must(connection.watch({.key = "w/", .range_end = "w0"}, 5, within(10s)));
  CHECK_FALSE(connection.has_events());
  CHECK_FALSE(must(connection.next_events(within(50ms))));
  must(other.txn(put("w/1", "one"), within(10s)));
  must(other.txn({.success = {etcd::Delete{.key = "w/1"}}}, within(10s)));
  must(other.txn(put("w/2", "two"), within(10s)));
  std::string heard;
  while (heard != "one two ") {
    CHECK(value_of(connection, "w/2") == "two");
    const auto answer = must(connection.next_events(within(10s)));
    REQUIRE(answer);
    CHECK(answer->id == 5);
    for (const auto& event : answer->events) {
      CHECK(!event.is_deletion);
      heard += event.key.value + " ";
    }
  }
  CHECK(connection.generation() == 1);
}

TEST_CASE("etcd client: a node that is stopped ends the request at its deadline, and the next one takes another node")
{
  EtcdServer server({.nodes = 3});
  etcd::Connection connection = connect(server, server.url());
  must(connection.txn(put("k", "v"), within(10s)));
  std::size_t stopped = 0;
  while (!has(connection.where(), std::to_string(server.port_of(stopped)))) {
    ++stopped;
  }
  server.stop_member(stopped);
  const auto answer = connection.range({.key = "k"}, within(300ms));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ErrorCode::unreachable);
  CHECK(has(answer.error().text,
            "no answer from etcd://127.0.0.1:" + std::to_string(server.port_of(stopped)) + " within 300ms"));
  wait_until([&] { return static_cast<bool>(connection.range({.key = "k"}, within(3s))); }, "another node has the key");
  CHECK_FALSE(has(connection.where(), std::to_string(server.port_of(stopped))));
  server.resume_member(stopped);
}

TEST_CASE("etcd client: a user must log in, and logs in again when the token is not valid any more")
{
  EtcdServer server({.args = {"--auth-token-ttl=1"}});
  server.demand_login(test_password);
  const std::string at = "@127.0.0.1:" + std::to_string(server.port_of(0));
  etcd::Connection connection(etcd::connection_spec(*etcd::parse_etcd_url("etcd://root:hunter2" + at)), the_clock,
                              std::make_unique<SystemRng>());
  CHECK(value_of(connection, "k") == "(none)");
  [[maybe_unused]] const std::string out = server.etcdctl({"user", "add", "other:other"});  // all tokens are old now
  CHECK(value_of(connection, "k") == "(none)");
  CHECK(connection.generation() == 1);
  const auto refusal = [&](const std::string& login) {
    etcd::Connection stranger(etcd::connection_spec(*etcd::parse_etcd_url("etcd://" + login + at)), the_clock,
                              std::make_unique<SystemRng>());
    const auto answer = stranger.range({.key = "k"}, within(10s));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::refused);
    return answer.error().text;
  };
  CHECK(has(
      refusal("root:wrong"),
      "authentication failed, invalid user ID or password (check the URL, RLOCK_PASSWORD, RLOCK_PASSWORD_FILE or "));
  CHECK(has(refusal("other:other"), "permission denied (rlock acl prints the role that rlock needs)"));
  etcd::Connection stranger(
      etcd::connection_spec(*etcd::parse_etcd_url("etcd://127.0.0.1:" + std::to_string(server.port_of(0)))), the_clock,
      std::make_unique<SystemRng>());
  const auto answer = stranger.range({.key = "k"}, within(10s));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ErrorCode::refused);
  CHECK(has(answer.error().text, "user name is empty (give a user and a password)"));
}

AUTHORITY_CASE("etcd client: TLS with a client certificate, and without one")
{
  const EtcdServer server({.authority = &authority});
  etcd::Connection connection = connect(server, server.url());
  CHECK(value_of(connection, "k") == "(none)");
  etcd::ConnectionSpec without = server.spec(server.url());
  without.members.front().tls->certificate.clear();
  etcd::Connection stranger(without, the_clock, std::make_unique<SystemRng>());
  const auto answer = stranger.range({.key = "k"}, within(10s));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ErrorCode::refused);
  CHECK_MESSAGE(has(answer.error().text, "(give --cert and --tls-key)"), answer.error().text);
  etcd::Connection plain = connect(server, "etcd://127.0.0.1:" + std::to_string(server.port_of(0)));
  const auto plain_answer = plain.range({.key = "k"}, within(10s));
  REQUIRE_FALSE(plain_answer);
  CHECK(plain_answer.error().code == ErrorCode::unreachable);
  CHECK(has(plain_answer.error().text, "etcds://)"));
}

ETCD_CASE("etcd client: what cannot be reached, and what is no etcd, is said exactly")
{
  std::uint16_t nobody = 0;
  tcp_listener(nobody);
  const std::string port = std::to_string(nobody);
  SUBCASE("nobody listens")
  {
    etcd::Connection connection = connect(server, "etcd://127.0.0.1:" + port);
    const auto answer = connection.range({.key = "k"}, within(10s));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::unreachable);
    CHECK(answer.error().text ==
          "cannot reach etcd://127.0.0.1:" + port + ": connection refused (is it running? -S names another server)");
  }
  SUBCASE("one of two members is there")
  {
    for (int i = 0; i < 4; ++i) {
      etcd::Connection connection =
          connect(server, "etcd://127.0.0.1:" + port + ",127.0.0.1:" + std::to_string(server.port_of(0)));
      CHECK(value_of(connection, "k") == "(none)");
    }
  }
  SUBCASE("it speaks no TLS")
  {
    etcd::Connection connection = connect(server, "etcds://127.0.0.1:" + std::to_string(server.port_of(0)));
    const auto answer = connection.range({.key = "k"}, within(1s));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::unreachable);
    CHECK(has(answer.error().text, "(if it speaks no TLS: etcd://)"));
  }
  SUBCASE("it is Redis")
  {
    std::string other;
    const HostileServer redis([&](std::uint16_t at) {
      other = "etcd://127.0.0.1:" + std::to_string(at);
      return answers_with("-ERR unknown command 'PRI'\r\n");
    });
    etcd::Connection connection = connect(server, other);
    const auto answer = connection.range({.key = "k"}, within(10s));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ErrorCode::unreachable);
    CHECK(answer.error().text ==
          other + " does not speak HTTP/2 (is it etcd's port for clients? if it speaks TLS: etcds://)");
  }
}
