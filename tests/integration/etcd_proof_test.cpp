// SPDX-License-Identifier: Apache-2.0
// A leader of etcd that was deposed while it was stopped answers a keep-alive. The usual rule counts that as a renewal, so two
// clients hold a lock. The proof of rlock does not.
#include "stores/etcd/etcd_backend.h"
#include "stores/etcd/etcd_checks.h"
#include "stores/etcd/etcd_layout.h"
#include "support/etcd_fixture.h"
#include "support/integration.h"
#include "support/limits.h"

using namespace rlock::test;

namespace {

const BootClock the_clock;

constexpr Millis lease{6000};
constexpr Millis asked_after{5000};   // since the leader was stopped, so that the new leader's lease ends first
constexpr Millis resumed_after{400};  // since it was asked

std::unique_ptr<record::Backend> backend_of(const EtcdServer& server, std::size_t node)
{
  return etcd::open_backend(server.spec(server.url_of_node(node)), the_clock, std::make_unique<SystemRng>());
}

record::PresenceId make_presence(record::Backend& backend)
{
  const auto presence = backend.presences()->make(lease, record::Keeping::kept, within(10s));
  REQUIRE_MESSAGE(presence, presence.error().text);
  const auto state = backend.read("k", within(10s));
  REQUIRE(state);
  const std::vector<record::PresenceId> needed{presence->id};
  const auto commit = backend.write_if(
      "k", state->version, {.bytes = "x", .face = {}, .log = {}, .messages = {}, .needed = needed}, within(10s));
  REQUIRE(commit);
  REQUIRE(std::holds_alternative<record::Committed>(*commit));
  REQUIRE(std::holds_alternative<LeaseTerm>(*backend.presences()->prove(presence->id, within(10s))));
  return presence->id;
}

// Stops the leader, lets `renew` ask it when another one leads, and resumes it meanwhile. Returns when it was asked.
template <typename Renew>
Instant ask_deposed_leader(EtcdServer& server, std::size_t leader, Renew renew)
{
  server.cut_off_member(leader);
  server.stop_member(leader);
  const Instant stopped_at = the_clock.now();
  the_clock.sleep_until(stopped_at + asked_after, StopToken::never());
  std::thread resume([&] {
    the_clock.sleep_until(stopped_at + asked_after + resumed_after, StopToken::never());
    server.resume_member(leader);
  });
  const Instant asked_at = the_clock.now();
  renew();
  resume.join();
  return asked_at;
}

Instant gone_at(record::Backend& other, const record::PresenceId& id)
{
  wait_until(
      [&] {
        const std::vector<record::PresenceId> ids{id};
        const auto gone = other.presences()->gone(ids, within(2s));
        return gone && !gone->empty();
      },
      "the other members have ended the lease");
  return the_clock.now();
}

}  // namespace

TEST_CASE("etcd proof: a deposed leader's keep-alive proves nothing, although it is answered in time")
{
  EtcdServer server({.nodes = 3, .relays_peers = true});
  const std::size_t leader = server.leader();
  const auto mine = backend_of(server, leader);
  const auto other = backend_of(server, (leader + 1) % 3);
  const record::PresenceId id = make_presence(*mine);
  std::string proven;
  ask_deposed_leader(server, leader, [&] {
    const auto proof = mine->presences()->prove(id, within(3s));
    proven = !proof ? "unknown" : std::holds_alternative<LeaseTerm>(*proof) ? "renewed" : "gone";
  });
  CHECK(proven != "renewed");
  gone_at(*other, id);
}

// The deliberate mistake: without the commit after the keep-alive a client believes in its lease when another one has got the lock.
TEST_CASE("etcd proof: by the usual rule, the answer to a keep-alive, two clients would hold the lock")
{
  EtcdServer server({.nodes = 3, .relays_peers = true});
  const std::size_t leader = server.leader();
  const auto mine = backend_of(server, leader);
  const auto other = backend_of(server, (leader + 1) % 3);
  const record::PresenceId id = make_presence(*mine);
  etcd::Connection connection(server.spec(server.url_of_node(leader)), the_clock, std::make_unique<SystemRng>());
  const std::int64_t number = std::stoll(id, nullptr, 16);
  REQUIRE(connection.keep_alive(number, within(10s)));
  const auto version = connection.status(within(10s));
  REQUIRE(version);
  std::int64_t ttl = 0;
  const Instant asked_at = ask_deposed_leader(server, leader, [&] {
    const auto kept = connection.keep_alive(number, within(3s));
    ttl = kept ? kept->ttl : 0;
  });
  if (etcd::judge_version(version->version) != etcd::VersionIs::loses_leases) {
    MESSAGE("etcd " << version->version << " answered with a ttl of " << ttl);
    return;  // such a leader asks the others before it renews
  }
  CHECK(ttl == lease / 1s);
  CHECK(gone_at(*other, id) < asked_at + lease);
}
