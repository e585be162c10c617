// SPDX-License-Identifier: Apache-2.0
#include "redis/connection.h"

#include <array>

#include "support/scripted_server.h"
#include "support/test.h"

using namespace rlock::test;

TEST_CASE("handshake: HELLO unknown, then AUTH, and the db in the same round trip")
{
  constexpr std::string_view hello =
      "*7\r\n$5\r\nHELLO\r\n$1\r\n2\r\n$4\r\nAUTH\r\n$8\r\nsomebody\r\n$4\r\nhush\r\n$7\r\nSETNAME\r\n$"
      "5\r\nrlock\r\n";
  constexpr std::string_view select = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
  constexpr std::string_view auth = "*3\r\n$4\r\nAUTH\r\n$8\r\nsomebody\r\n$4\r\nhush\r\n";
  std::string first;
  std::string second;
  {
    const ScriptedServer server([&](const Peer& peer) {
      first = peer.hear(hello.size() + select.size());
      peer.say(
          "-ERR unknown command `HELLO`, with args beginning with: `2`, `AUTH`, `somebody`, `hush`, \r\n"
          "-NOAUTH Authentication required.\r\n");
      second = peer.hear(auth.size() + select.size());
      peer.say("+OK\r\n+OK\r\n");
      peer.lasts(plenty);
    });
    Endpoint endpoint = server.endpoint();
    endpoint.user = "somebody";
    endpoint.password = "hush";
    endpoint.db = 3;
    CHECK(Connection::open(endpoint, real_clock, within(plenty)));
  }
  CHECK(first == std::string(hello) + std::string(select));
  CHECK(second == std::string(auth) + std::string(select));
}

TEST_CASE("handshake: a refusal says so and tells no secret")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(1);
    peer.say("-ERR unknown subcommand, with args beginning with: `hush`\r\n");
    peer.lasts(plenty);
  });
  Endpoint endpoint = server.endpoint();
  endpoint.user = "somebody";
  endpoint.password = "hush";
  const auto connection = Connection::open(endpoint, real_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().code == ErrorCode::refused);
  CHECK(has(connection.error().text, "refused the user or password"));
  CHECK_FALSE(has(connection.error().text, "hush"));
  CHECK_FALSE(has(connection.error().text, "somebody"));
}

TEST_CASE("handshake: no such db")
{
  const auto server = ScriptedServer([](const Peer& peer) {
    peer.hear(1);
    peer.say("-ERR DB index is out of range\r\n");
    peer.lasts(plenty);
  });
  Endpoint endpoint = server.endpoint();
  endpoint.db = 99;
  const auto connection = Connection::open(endpoint, real_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().code == ErrorCode::config);
  CHECK(connection.error().text.starts_with("no db 99 on unix:///"));
}

TEST_CASE("handshake: a server before Redis 6 is asked for its role, where it must be a master")
{
  struct Row {
    std::string_view role;  // the answer to ROLE
    std::string_view says;  // empty: it is a master
  };
  const Row rows[] = {
      {"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", ""},
      {"*1\r\n$5\r\nslave\r\n", "says that it is a slave and no master"},
      {"-ERR unknown command `ROLE`, with args beginning with: \r\n", "unknown command"},
      {"*0\r\n", "unknown command"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.role);
    const ScriptedServer server([&](const Peer& peer) {
      peer.hear_some();
      peer.say("-ERR unknown command `HELLO`, with args beginning with: `2`, \r\n");
      peer.hear(std::string_view("*1\r\n$4\r\nROLE\r\n").size());
      peer.say(row.role);
      peer.lasts(plenty);
    });
    Endpoint endpoint = server.endpoint();
    endpoint.must_be_master = true;
    const auto connection = Connection::open(endpoint, real_clock, within(plenty));
    CHECK(static_cast<bool>(connection) == row.says.empty());
    if (!connection) {
      CHECK_MESSAGE(has(connection.error().text, row.says), connection.error().text);
    }
  }
}

TEST_CASE("handshake: a replica is refused with its first answer, which costs no round trip")
{
  constexpr std::string_view replica = "*4\r\n$5\r\nproto\r\n:2\r\n$4\r\nrole\r\n$7\r\nreplica\r\n";
  constexpr std::string_view master = "*4\r\n$5\r\nproto\r\n:2\r\n$4\r\nrole\r\n$6\r\nmaster\r\n";
  constexpr std::string_view unknown = "-ERR unknown command 'HELLO', with args beginning with: '2' \r\n";
  struct Row {
    std::string_view to_hello;
    std::string_view to_ping;
    std::string_view gets;  // the text of the reply, or a part of the error
    ErrorCode code = ErrorCode::internal;
  };
  const Row rows[] = {
      {replica, "+PONG\r\n", "is a replica", ErrorCode::unreachable},
      {replica, "-READONLY You can't write\r\n", "READONLY"},
      {master, "+PONG\r\n", "PONG"},
      {unknown, "+PONG\r\n", "PONG"},
      {"-ERR max number of clients reached\r\n", "", "ERR max number of clients reached"},
      {"-ERR unknown command 'PING'\r\n", "", "ERR unknown command 'PING'"},
  };
  constexpr std::array<std::string_view, 1> ping{"PING"};
  constexpr std::string_view both = "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n*1\r\n$4\r\nPING\r\n";
  for (const Row& row : rows) {
    CAPTURE(row.gets);
    std::string heard;
    const ScriptedServer server([&](const Peer& peer) {
      heard = peer.hear(both.size());
      peer.say(std::string(row.to_hello) + std::string(row.to_ping));
      peer.lasts(plenty);
    });
    Endpoint endpoint = server.endpoint();
    endpoint.refuses_replica = true;
    auto connection = Connection::open(endpoint, real_clock, within(plenty));
    REQUIRE(connection);
    const auto reply = connection->call(ping, within(plenty));
    CHECK(heard == both);
    const std::string text = reply ? reply->text : reply.error().text;
    CHECK_MESSAGE(has(text, row.gets), text);
    CHECK((reply ? ErrorCode::internal : reply.error().code) == row.code);
  }
}

TEST_CASE("handshake: a replica is refused before the first request where HELLO is sent anyway")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear_some();
    peer.say("*2\r\n$4\r\nrole\r\n$7\r\nreplica\r\n+OK\r\n");
    peer.lasts(plenty);
  });
  Endpoint endpoint = server.endpoint();
  endpoint.refuses_replica = true;
  endpoint.db = 3;
  const auto connection = Connection::open(endpoint, real_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().code == ErrorCode::server_not_ready);
  CHECK(has(connection.error().text, "is a replica"));
}
