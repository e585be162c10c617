// SPDX-License-Identifier: Apache-2.0
// A member of a ZooKeeper ensemble that is cut off from its leader answers pings for a while. A client that takes them for a proof
// believes in its session for longer than the others do.
#include "support/limits.h"
#include "support/test.h"
#include "support/wait_until.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;
using namespace rlock::zookeeper;

namespace {

using rlock::BootClock;
using rlock::CallLimits;
using rlock::Instant;
using rlock::Millis;
using rlock::StopToken;
using ZkClient = rlock::zookeeper::Client;

constexpr Millis session{2000};
constexpr std::size_t cut_off = 0;  // the member with the lowest number is no leader of an ensemble that is new

bool is_there(ZkClient& client, const std::string& path)
{
  const BootClock clock;
  const std::array questions{sync(path), exists(path, false)};
  const auto answers = client.ask(questions, within(10s));
  REQUIRE_MESSAGE(answers, answers.error().text);
  return (*answers)[1].is_ok();
}

}  // namespace

TEST_CASE("zookeeper proof: pings of a member that is cut off prove nothing; a proof ends before the node goes")
{
  ZookeeperServer servers({.nodes = 3, .relays_peers = true});
  REQUIRE(servers.find_leader() != cut_off);
  const auto url_of = [&](const std::vector<std::size_t>& members) {
    std::vector<std::uint16_t> ports;
    for (const std::size_t member : members) {
      ports.push_back(servers.port_of(member));
    }
    return servers.url_at(ports);
  };
  const BootClock clock;
  const auto pinging = servers.client(url_of({cut_off}), session, clock);
  const auto proving = servers.client(url_of({cut_off}), session, clock);
  const auto other = servers.client(url_of({1, 2}), 30s, clock);
  REQUIRE(pinging->ask(create("/pinging", "", CreateMode::ephemeral, false), within(10s)));
  REQUIRE(proving->ask(create("/proving", "", CreateMode::ephemeral, false), within(10s)));
  const Operation change = set_data("/proving", "", any_version);
  REQUIRE(proving->prove(change, within(10s)));
  REQUIRE(is_there(*other, "/pinging"));
  servers.cut_off_member(cut_off);

  Instant believed_by_pings = pinging->term().from + pinging->term().length;
  std::optional<Instant> pinging_gone;
  std::optional<Instant> proving_gone;
  const Instant end = clock.now() + 20s;
  while (!(pinging_gone && proving_gone)) {
    REQUIRE(clock.now() < end);
    const Instant sent = clock.now();
    if (pinging->ask(ping(), within(100ms))) {
      believed_by_pings = sent + pinging->term().length;  // the plain rule
    }
    const auto proven = proving->prove(change, within(100ms));
    CHECK_FALSE((proven && proven->has_value() && (*proven)->is_ok()));
    if (!pinging_gone && !is_there(*other, "/pinging")) {
      pinging_gone = clock.now();
    }
    if (!proving_gone && !is_there(*other, "/proving")) {
      proving_gone = clock.now();
    }
  }
  CHECK(proving->term().from + proving->term().length <= *proving_gone);
  CHECK_MESSAGE(believed_by_pings > *pinging_gone, "the plain rule was safe in this round, so the test shows nothing");
}

TEST_CASE("zookeeper proof: after the last proof a node stays for the whole term")
{
  const ZookeeperServer servers({.nodes = 3});
  const BootClock clock;
  const auto other = servers.client(servers.url(), 30s, clock);
  for (int round = 0; round < 3; ++round) {
    const auto client = servers.client(servers.url(), 1s, clock);
    REQUIRE(client->ask(create("/me", "", CreateMode::ephemeral, false), within(10s)));
    const auto proven = client->prove(set_data("/me", "", any_version), within(10s));
    REQUIRE(proven);
    client->drop();
    const auto is_gone = [&] { return !is_there(*other, "/me"); };
    wait_until(is_gone, "the node is gone");
    CHECK(clock.now() >= client->term().from + client->term().length);
  }
}
