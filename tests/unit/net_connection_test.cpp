// SPDX-License-Identifier: Apache-2.0
#include "redis/connection.h"

#include "redis/codec.h"
#include "support/test.h"

#include "support/scripted_server.h"

#include <array>
#include <thread>

using namespace rlock::test;

namespace {

constexpr std::array<std::string_view, 1> ping{"PING"};
constexpr std::string_view ping_bytes = "*1\r\n$4\r\nPING\r\n";

std::string show(const Reply& reply)
{
  switch (reply.kind) {
    case Reply::Kind::nil: return "nil";
    case Reply::Kind::integer: return std::to_string(reply.integer);
    case Reply::Kind::text: return "'" + reply.text + "'";
    case Reply::Kind::error: return "error " + reply.text;
    case Reply::Kind::array: break;
  }
  std::string all = "[";
  for (const Reply& element : reply.elements) {
    all += show(element) + " ";
  }
  return all + "]";
}

std::string ask(Connection& connection, const CallLimits& limit)
{
  const auto reply = connection.call(ping, limit);
  return reply ? show(*reply) : "fault: " + reply.error().text;
}

// A server that reads one PING and answers each connection with `reply`, then lasts.
ScriptedServer server_that_says(std::string reply)
{
  return ScriptedServer([reply = std::move(reply)](const Peer& peer) {
    peer.hear(ping_bytes.size());
    peer.say(reply);
    peer.lasts(plenty);
  });
}

}  // namespace

TEST_CASE("connection: each type of reply")
{
  struct Row {
    std::string bytes;
    std::string expect;
  };
  using namespace std::string_literals;
  const Row rows[] = {
      {"+PONG\r\n", "'PONG'"},
      {"-ERR no\r\n", "error ERR no"},
      {":-42\r\n", "-42"},
      {":9223372036854775807\r\n", "9223372036854775807"},
      {"$-1\r\n", "nil"},
      {"*-1\r\n", "nil"},
      {"$0\r\n\r\n", "''"},
      {"$5\r\na\r\n\0b\r\n"s, "'a\r\n\0b'"s},
      {"*3\r\n:1\r\n*1\r\n$1\r\nx\r\n$-1\r\n", "[1 ['x' ] nil ]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.bytes);
    const auto server = server_that_says(row.bytes);
    auto connection = server.connect();
    CHECK(ask(connection, within(plenty)) == row.expect);
  }
}

TEST_CASE("connection: a request goes out as RESP, binary-safe")
{
  std::string heard;
  {
    const ScriptedServer server([&heard](const Peer& peer) {
      heard = peer.hear(29);
      peer.say("+OK\r\n");
      peer.lasts(plenty);
    });
    auto connection = server.connect();
    const std::array<std::string_view, 3> argv{"SET", std::string_view("a\0\r\n", 4), ""};
    REQUIRE(connection.call(argv, within(plenty)));
  }
  CHECK(heard == std::string("*3\r\n$3\r\nSET\r\n$4\r\na\0\r\n\r\n$0\r\n\r\n", 29));
}

TEST_CASE("connection: the deadline is over the whole answer, not over each byte")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(ping_bytes.size());
    peer.say("$1000\r\n");
    while (peer.lasts(10ms) && peer.say("x")) {
    }
  });
  auto connection = server.connect();
  const Instant start = real_clock.now();
  CHECK(has(ask(connection, within(200ms)), "no answer from unix:///"));
  const auto took = real_clock.now() - start;
  CHECK(took >= 200ms);
  CHECK(took < 1s);
}

TEST_CASE("connection: a reply in single bytes is still a reply")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(ping_bytes.size());
    for (const char byte : std::string("*2\r\n$2\r\nab\r\n:7\r\n")) {
      peer.say(std::string(1, byte));
      peer.lasts(1ms);
    }
    peer.lasts(plenty);
  });
  auto connection = server.connect();
  CHECK(ask(connection, within(plenty)) == "['ab' 7 ]");
}

TEST_CASE("connection: silence is an error for call and none for receive")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(ping_bytes.size());
    peer.say("$5\r\nhe");
    peer.hear(1);
    peer.say("llo\r\n");
    peer.lasts(plenty);
  });
  auto connection = server.connect();
  REQUIRE(connection.send(ping, within(plenty)));
  const auto half = connection.receive(within(30ms));
  REQUIRE(half);
  CHECK_FALSE(half->has_value());

  // the half that came is kept
  REQUIRE(connection.send(ping, within(plenty)));
  const auto whole = connection.answer(within(plenty));
  REQUIRE(whole);
  CHECK(show(*whole) == "'hello'");
  const std::string silent = ask(connection, within(50ms));
  CHECK(has(silent, " within 50ms (raise --server-timeout)"));
}

TEST_CASE("connection: a server that hangs up")
{
  const ScriptedServer server([](const Peer& peer) { peer.hear(ping_bytes.size()); });
  auto connection = server.connect();
  CHECK(has(ask(connection, within(plenty)), "lost the connection to unix:///"));
  // and SIGPIPE would have ended this process
  CHECK(has(ask(connection, within(plenty)), "lost the connection to"));
}

TEST_CASE("connection: a server that hangs up was there if it had spoken before")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(ping_bytes.size());
    peer.say("+PONG\r\n");
    peer.hear(ping_bytes.size());
  });
  Connection connection = server.connect();
  CHECK(ask(connection, within(plenty)) == "'PONG'");
  const auto second = connection.call(ping, within(plenty));
  REQUIRE_FALSE(second);
  CHECK(second.error().was_there);

  const ScriptedServer mute([](const Peer& peer) { peer.hear(ping_bytes.size()); });
  Connection other = mute.connect();
  const auto first = other.call(ping, within(plenty));
  REQUIRE_FALSE(first);
  CHECK_FALSE(first.error().was_there);
}

TEST_CASE("connection: garbage")
{
  for (const char* garbage : {"HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x03", "$x\r\n", "*1\r\n?1\r\n",
                              "%1\r\n+a\r\n+b\r\n", "~1\r\n+a\r\n", ",1.5\r\n", "#t\r\n"}) {
    CAPTURE(garbage);
    const auto server = server_that_says(garbage);
    auto connection = server.connect();
    CHECK(has(ask(connection, within(plenty)), " does not answer like a redis server without TLS ("));
  }
}

TEST_CASE("connection: a reply without end")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.say("$500000000\r\n");
    const std::string much(1 << 20, 'x');
    while (peer.say(much)) {
    }
  });
  auto connection = server.connect();
  CHECK(has(ask(connection, within(60s)), " answered with more than 16 MiB or 131072 values"));
}

TEST_CASE("connection: arrays that cost more than they send")
{
  const std::string many = "*2147483647\r\n";
  std::string values;
  while (values.size() < 4 * most_values + 4) {
    values += ":1\r\n";
  }
  std::string nested;
  for (int i = 0; i < 100'000; ++i) {
    nested += "*1\r\n";
  }
  for (const std::string& bytes : {many + values, "*9\r\n" + many + values, nested}) {
    const auto server = server_that_says(bytes);
    auto connection = server.connect();
    const std::string answer = ask(connection, within(60s));
    CHECK_MESSAGE((has(answer, " answered with more than ") || has(answer, " does not answer like a redis server")),
                  answer);
  }
  const auto announces = server_that_says(many);
  auto connection = announces.connect();
  CHECK(has(ask(connection, within(50ms)), "no answer from"));
}

TEST_CASE("connection: a stop ends a wait and keeps a request from being sent")
{
  const ScriptedServer server([](const Peer& peer) { peer.lasts(plenty); });
  auto connection = server.connect();
  StopSource stop;
  std::thread asks([&stop] { stop.request(); });
  const auto reply = connection.call(ping, within(plenty, stop.token()));
  asks.join();
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::interrupted);
  CHECK_FALSE(connection.send(ping, within(plenty, stop.token())));
}

TEST_CASE("connection: no server there, and what to do about it")
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = "/tmp/rlock-wire-no-such-directory/s";
  const auto connection = Connection::open(endpoint, real_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().code == ErrorCode::unreachable);
  CHECK(connection.error().text ==
        "cannot reach unix:///tmp/rlock-wire-no-such-directory/s: no such socket (is redis-server "
        "running? "
        "-S names another server)");
}

TEST_CASE("connection: local: is not a place to connect to")
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::local;
  const auto connection = Connection::open(endpoint, real_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().code == ErrorCode::internal);
}
