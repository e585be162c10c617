// SPDX-License-Identifier: Apache-2.0
// The client of ZooKeeper on real servers.
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/limits.h"
#include "support/stepped_clock.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;
using namespace rlock::zookeeper;

namespace {

using rlock::BootClock;
using rlock::CallLimits;
using rlock::StopToken;

rlock::zookeeper::Answer asked(rlock::zookeeper::Client& client, const Operation& operation)
{
  const BootClock clock;
  const auto answer = client.ask(operation, within(10s));
  REQUIRE_MESSAGE(answer, answer.error().text);
  return *answer;
}

}  // namespace

TEST_CASE("zookeeper client: connects, creates, reads and watches, several requests in one write")
{
  const ZookeeperServer servers;
  const BootClock clock;
  const auto client = servers.client(servers.url(), 10s, clock);
  const std::array first{create("/a", "one", CreateMode::persistent, false),
                         create("/a/me", "", CreateMode::ephemeral, false),
                         sync("/a"),
                         get_data("/a", true),
                         get_children("/a"),
                         exists("/b", false)};
  const auto answers = client->ask(first, within(10s));
  REQUIRE_MESSAGE(answers, answers.error().text);
  CHECK((*answers)[0].is_ok());
  CHECK((*answers)[1].stat.ephemeral_owner == client->session_id());
  CHECK((*answers)[3].data == "one");
  CHECK((*answers)[4].children == std::vector<std::string>{"me"});
  CHECK((*answers)[5].code == Code::no_node);
  CHECK(client->term().length == 10s);

  const std::array parts{check("/a/me", any_version), set_data("/a", "two", 0),
                         create("/a/c", "", CreateMode::container, false)};
  const auto done = asked(*client, multi(parts));
  CHECK(done.is_ok());
  CHECK(done.parts.at(1).stat.version == 1);
  const auto event = client->next_event(within(10s));
  REQUIRE(event);
  REQUIRE(event->has_value());
  CHECK((*event)->path == "/a");

  const auto refused = asked(*client, multi(parts));
  CHECK(refused.code == Code::bad_version);
  CHECK(refused.parts.at(1).code == Code::bad_version);
  CHECK(asked(*client, get_data("/a", false)).data == "two");
  CHECK(asked(*client, ping()).is_ok());
  REQUIRE(client->close(within(10s)));

  const auto other = servers.client(servers.url(), 10s, clock);
  CHECK(asked(*other, get_children("/a")).children == std::vector<std::string>{"c"});
}

// Two members may have closed it when a third one lets it go on.
TEST_CASE("zookeeper client: a session is not attached again when its term is over by the clock of the client")
{
  const ZookeeperServer servers;
  SteppedClock clock;
  const auto client = servers.client(servers.url(), 30s, clock);
  const CallLimits limit{.deadline = clock.now() + 600s, .stop = StopToken::never()};
  const auto change = set_data("/me", "", any_version);
  REQUIRE(client->ask(create("/me", "", CreateMode::ephemeral, false), limit));
  const auto first = client->session_id();
  clock.add(29s);
  const auto proven = client->prove(change, limit);
  REQUIRE(proven);
  REQUIRE(proven->has_value());
  CHECK((*proven)->is_ok());
  clock.add(31s);  // from the proof
  const auto late = client->prove(change, limit);
  REQUIRE(late);
  CHECK_FALSE(late->has_value());
  CHECK(client->session_id() == 0);

  const auto again = client->ask(exists("/me", false), limit);
  REQUIRE_MESSAGE(again, again.error().text);
  CHECK(again->stat.ephemeral_owner == first);  // which the server still has
  CHECK(client->session_number() == 2);
  const auto second = client->session_id();
  client->drop();
  clock.add(31s);
  REQUIRE(client->ask(exists("/me", false), limit));
  CHECK(client->session_id() != second);
}

TEST_CASE("zookeeper client: the session lives through a lost connection, and a new one begins when it has expired")
{
  const ZookeeperServer servers;
  const BootClock clock;
  const auto client = servers.client(servers.url(), 1s, clock);
  CHECK(asked(*client, create("/me", "", CreateMode::ephemeral, false)).is_ok());
  const auto session = client->session_id();
  client->drop();
  CHECK(asked(*client, exists("/me", false)).stat.ephemeral_owner == session);
  CHECK(client->session_number() == 1);
  CHECK(client->connection_number() == 2);

  client->drop();
  const auto other = servers.client(servers.url(), 10s, clock);
  wait_until([&] { return asked(*other, exists("/me", false)).code == Code::no_node; }, "the session has expired");
  CHECK(asked(*client, exists("/me", false)).code == Code::no_node);
  CHECK(client->session_number() == 2);
  CHECK(client->session_id() != session);
}

TEST_CASE("zookeeper client: a proof attaches the session on a new connection and moves its term")
{
  const ZookeeperServer servers({.nodes = 3});
  const BootClock clock;
  const auto client = servers.client(servers.url(), 5s, clock);
  CHECK(asked(*client, create("/me", "", CreateMode::ephemeral, false)).is_ok());
  const auto session = client->session_id();
  const SessionTerm first = client->term();
  const Operation change = set_data("/me", "", any_version);
  const auto proven = client->prove(change, within(10s));
  REQUIRE_MESSAGE(proven, proven.error().text);
  REQUIRE(proven->has_value());
  CHECK((*proven)->stat.ephemeral_owner == session);
  CHECK(client->term().from > first.from);
  CHECK(client->term().length == 5s);
  CHECK(client->session_id() == session);
  CHECK(client->connection_number() == 2);
  CHECK(asked(*client, exists("/me", false)).stat.version == 1);

  const SessionTerm last = client->term();
  CHECK(asked(*client, remove("/me", any_version)).is_ok());
  const auto gone = client->prove(change, within(10s));
  REQUIRE(gone);
  REQUIRE(gone->has_value());
  CHECK((*gone)->code == Code::no_node);
  CHECK(client->term().from == last.from);
}

TEST_CASE("zookeeper client: while a leader is elected the members are asked again")
{
  ZookeeperServer servers({.nodes = 3});
  const BootClock clock;
  servers.kill_member(servers.leader());
  for (int i = 0; i < 5; ++i) {
    const auto client = servers.client(servers.url(), 10s, clock);
    CHECK(asked(*client, sync("/")).is_ok());
  }
}

TEST_CASE("zookeeper client: a member that is dead or hangs is passed over")
{
  ZookeeperServer servers({.nodes = 3});
  const BootClock clock;
  const std::size_t follower = servers.leader() == 0 ? 1 : 0;
  servers.stop_member(follower);
  const auto client = servers.client(servers.url(), 10s, clock);
  for (int i = 0; i < 4; ++i) {
    CHECK(asked(*client, sync("/")).is_ok());
    client->drop();
  }
  servers.resume_member(follower);
  servers.kill_member(follower);
  for (int i = 0; i < 4; ++i) {
    CHECK(asked(*client, sync("/")).is_ok());
    client->drop();
  }
}

TEST_CASE("zookeeper client: nodes of a user are for those who know the password")
{
  const ZookeeperServer servers;
  const BootClock clock;
  const auto owner = servers.client(servers.url("", "bob:hunter2@"), 10s, clock);
  CHECK(asked(*owner, create("/own", "x", CreateMode::persistent, true)).is_ok());
  owner->drop();
  CHECK(asked(*owner, get_data("/own", false)).data == "x");
  const auto other = servers.client(servers.url("", "bob:wrong@"), 10s, clock);
  CHECK(asked(*other, get_data("/own", false)).code == Code::no_auth);
}

TEST_CASE("zookeeper client: a server that says nothing, hangs up or says nonsense is an error within the time")
{
  struct Row {
    const char* name;
    Behavior script;
  };
  const Row rows[]{{"nothing", says("")},
                   {"nonsense", says(std::string(100, '\xff'))},
                   {"no ZooKeeper",
                    answers_with("HTTP/1.1 400 Bad Request\r\n\r\nthis is no ZooKeeper, and long enough for a frame")},
                   {"a frame without an end", says(std::string("\x00\xff\xff\xff", 4))},
                   {"drips", drips(std::string(1000, '\0'))},
                   {"an empty frame", says(std::string(4, '\0'))},
                   {"hangs up", [](const Peer& peer) { [[maybe_unused]] const auto request = peer.hear_some(); }}};
  const BootClock clock;
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    const HostileServer server(row.script, Endpoint::Kind::tcp);
    const auto endpoint = parse_zookeeper_url("zookeeper://127.0.0.1:" + std::to_string(server.port()));
    rlock::zookeeper::Client client(connection_spec(*endpoint), 10s, clock, std::make_unique<rlock::SystemRng>());
    const auto start = clock.now();
    const auto answer = client.ask(sync("/"), within(1s));
    REQUIRE(!answer);
    CHECK_MESSAGE((answer.error().code == ErrorCode::unreachable || answer.error().code == ErrorCode::internal),
                  answer.error().text);
    CHECK(clock.now() - start < 5s);
  }
}

TEST_CASE("zookeeper client: a request that is longer than the server takes is an error that names size and setting")
{
  const ZookeeperServer servers({.longest_request = 4096});
  const BootClock clock;
  const auto client = servers.client(servers.url(), 10s, clock);
  CHECK(asked(*client, create("/me", "", CreateMode::ephemeral, false)).is_ok());
  const auto session = client->session_id();
  bool is_connected = true;
  SUBCASE("on a connection") {}
  SUBCASE("with what connects") { is_connected = false; }
  if (!is_connected) {
    client->drop();
  }
  const auto refused = client->ask(set_data("/me", std::string(5000, 'x'), any_version), within(10s));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::config);
  CHECK_MESSAGE(has(refused.error().text, "at a request of 50"), refused.error().text);
  CHECK_MESSAGE(has(refused.error().text, "raise jute.maxbuffer"), refused.error().text);
  CHECK(asked(*client, set_data("/me", std::string(3000, 'x'), any_version)).is_ok());
  CHECK(client->session_id() == session);
}

TEST_CASE("zookeeper client: a server that hangs up once has not refused the request")
{
  std::atomic<int> connections = 0;
  const HostileServer relay(
      [&](const Peer& peer) {
        const int number = connections++;
        [[maybe_unused]] const auto request = peer.hear_some();
        if (number > 0) {
          peer.lasts(plenty);
        }
      },
      Endpoint::Kind::tcp);
  const auto endpoint = parse_zookeeper_url("zookeeper://127.0.0.1:" + std::to_string(relay.port()));
  const BootClock clock;
  rlock::zookeeper::Client client(connection_spec(*endpoint), 10s, clock, std::make_unique<rlock::SystemRng>());
  const auto answer = client.ask(create("/a", std::string(5000, 'x'), CreateMode::ephemeral, false), within(1s));
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == ErrorCode::unreachable);
}

TEST_CASE("zookeeper client: the record of a lock stays below what the server takes")
{
  const ZookeeperServer servers({.longest_request = 4096});
  const std::string url = servers.url("/app");
  for (int i = 0; i < 15; ++i) {
    CAPTURE(i);
    const Finished run = run_rlock({"run", "-S", url, "-k", "k", "--", "sh", "-c", "true " + std::string(300, 'x')});
    REQUIRE_MESSAGE(run.code == 0, run.err);
  }
  const std::string history = run_rlock({"history", "-S", url, "k"}).out;
  CHECK(std::ranges::count(history, '\n') >= 15);
}
