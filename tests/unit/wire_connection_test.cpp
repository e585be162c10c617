// SPDX-License-Identifier: Apache-2.0
#include "wire/connection.h"

#include "wire/direct.h"
#include "wire/subscription.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

using namespace rlock;
using namespace std::chrono_literals;

namespace {

const BootClock system_clock;
constexpr auto plenty = 10s;  // for what is expected to come at once

Limit within(Millis time, Stop stop = Stop::never()) { return {system_clock.now() + time, stop}; }

// One accepted connection, as the script of a scripted server sees it.
class Peer {
 public:
  Peer(Fd socket, const std::atomic<bool>& over) : m_socket(std::move(socket)), m_over(over) {}

  bool say(std::string_view text) const
  {
    return ::send(m_socket.get(), text.data(), text.size(), MSG_NOSIGNAL) > 0;
  }

  // Until so much has been read; what was sent is of no interest if the client hung up.
  std::string hear(std::size_t count) const
  {
    std::string heard(count, '\0');
    const auto read = ::recv(m_socket.get(), heard.data(), count, MSG_WAITALL);
    heard.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
    return heard;
  }

  // False once the test is over or the client gone.
  bool lasts(Millis time) const
  {
    pollfd wait{.fd = m_socket.get(), .events = POLLRDHUP, .revents = 0};
    return ::poll(&wait, 1, static_cast<int>(time.count())) == 0 && !m_over;
  }

 private:
  Fd m_socket;
  const std::atomic<bool>& m_over;
};

// Listens on a unix socket and runs the script for each connection, one after the other.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(const Peer&)> script)
      : m_listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
  {
    char directory[] = "/tmp/rlock-wire-XXXXXX";
    REQUIRE(::mkdtemp(directory) != nullptr);
    m_directory = directory;
    m_endpoint.kind = Endpoint::Kind::unix_socket;
    m_endpoint.path = m_directory + "/s";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    m_endpoint.path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(m_listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
            0);
    REQUIRE(::listen(m_listener.get(), 8) == 0);
    m_thread = std::thread([this, script = std::move(script)] {
      for (Fd next(accept_one()); next; next = Fd(accept_one())) {
        script(Peer(std::move(next), m_over));
      }
    });
  }
  ~ScriptedServer()
  {
    m_over = true;
    ::shutdown(m_listener.get(), SHUT_RDWR);
    m_thread.join();
    ::unlink(m_endpoint.path.c_str());
    ::rmdir(m_directory.c_str());
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] const Endpoint& endpoint() const { return m_endpoint; }

  Connection connect() const
  {
    auto connection = Connection::open(m_endpoint, system_clock, within(plenty));
    REQUIRE(connection);
    return *std::move(connection);
  }

 private:
  int accept_one() const { return ::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC); }

  Fd m_listener;
  std::string m_directory;
  Endpoint m_endpoint;
  std::atomic<bool> m_over = false;
  std::thread m_thread;
};

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

std::string ask(Connection& connection, const Limit& limit)
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

bool has(const std::string& text, std::string_view part)
{
  return text.find(part) != std::string::npos;
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
  const Instant start = system_clock.now();
  CHECK(has(ask(connection, within(200ms)), "no answer from unix:///tmp/rlock-wire-"));
  const auto took = system_clock.now() - start;
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
  const ScriptedServer at_once([](const Peer& peer) { peer.hear(ping_bytes.size()); });
  auto connection = at_once.connect();
  CHECK(has(ask(connection, within(plenty)), "lost the connection to unix:///tmp/rlock-wire-"));
  // and SIGPIPE would have ended us here
  CHECK(has(ask(connection, within(plenty)), "lost the connection to"));
}

TEST_CASE("connection: what a full server says before it hangs up is heard")
{
  const ScriptedServer full(
      [](const Peer& peer) { peer.say("-ERR max number of clients reached\r\n"); });
  Direct transport(full.endpoint(), system_clock);
  const auto reply = transport.call("", ping, within(plenty));
  REQUIRE_FALSE(reply);
  CHECK(reply.error().fault == Fault::unfit);
}

TEST_CASE("connection: garbage")
{
  for (const char* garbage :
       {"HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x03", "$x\r\n", "*1\r\n%1\r\n"}) {
    CAPTURE(garbage);
    const auto server = server_that_says(garbage);
    auto connection = server.connect();
    CHECK(
        has(ask(connection, within(plenty)), " does not answer like a redis server without TLS ("));
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
  CHECK(has(ask(connection, within(60s)), " answered with more than 64 MiB"));
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
  CHECK(reply.error().fault == Fault::interrupted);
  CHECK_FALSE(connection.send(ping, within(plenty, stop.token())));
}

TEST_CASE("connection: nobody there, and what to do about it")
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = "/tmp/rlock-wire-no-such-directory/s";
  const auto connection = Connection::open(endpoint, system_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().fault == Fault::unreachable);
  CHECK(connection.error().text ==
        "cannot reach unix:///tmp/rlock-wire-no-such-directory/s: no such socket (is redis-server "
        "running? "
        "-S names another server, -S local: starts a private one)");
}

TEST_CASE("connection: local: is not a place to connect to")
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::local;
  const auto connection = Connection::open(endpoint, system_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().fault == Fault::internal);
}

TEST_CASE("handshake: HELLO unknown, then AUTH; the db in the same round trip")
{
  constexpr std::string_view hello =
      "*7\r\n$5\r\nHELLO\r\n$1\r\n2\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$4\r\nhush\r\n$7\r\nSETNAME\r\n$"
      "5\r\nrlock\r\n";
  constexpr std::string_view select = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
  constexpr std::string_view auth = "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$4\r\nhush\r\n";
  std::string first;
  std::string second;
  {
    const ScriptedServer server([&](const Peer& peer) {
      first = peer.hear(hello.size() + select.size());
      peer.say(
          "-ERR unknown command `HELLO`, with args beginning with: `2`, `AUTH`, `ann`, `hush`, \r\n"
          "-NOAUTH Authentication required.\r\n");
      second = peer.hear(auth.size() + select.size());
      peer.say("+OK\r\n+OK\r\n");
      peer.lasts(plenty);
    });
    Endpoint endpoint = server.endpoint();
    endpoint.user = "ann";
    endpoint.password = "hush";
    endpoint.db = 3;
    CHECK(Connection::open(endpoint, system_clock, within(plenty)));
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
  endpoint.user = "ann";
  endpoint.password = "hush";
  const auto connection = Connection::open(endpoint, system_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().fault == Fault::refused);
  CHECK(has(connection.error().text, "refused the user or password"));
  CHECK_FALSE(has(connection.error().text, "hush"));
  CHECK_FALSE(has(connection.error().text, "ann"));
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
  const auto connection = Connection::open(endpoint, system_clock, within(plenty));
  REQUIRE_FALSE(connection);
  CHECK(connection.error().fault == Fault::config);
  CHECK(connection.error().text.starts_with("no db 99 on unix:///tmp/rlock-wire-"));
}

TEST_CASE("direct: a failed call is not sent again; the next one finds a new connection")
{
  std::atomic<int> connections = 0;
  const ScriptedServer server([&connections](const Peer& peer) {
    peer.hear(ping_bytes.size());
    if (++connections > 1) {
      peer.say("+PONG\r\n");
      peer.lasts(plenty);
    }
  });
  Direct transport(server.endpoint(), system_clock);
  const auto lost = transport.call("", ping, within(plenty));
  REQUIRE_FALSE(lost);
  CHECK(lost.error().fault == Fault::unreachable);
  CHECK(connections == 1);
  CHECK(transport.call("", ping, within(plenty)));
}

TEST_CASE("run_script: the source follows where the server does not know the script, once")
{
  constexpr std::string_view by_sha =
      "*5\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n";
  constexpr std::string_view by_source =
      "*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 7\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n";
  const Script script{.name = "seven", .source = "return 7", .sha1 = "ab"};
  const std::array<std::string_view, 1> keys{"k"};
  const std::array<std::string_view, 1> args{"a"};
  for (const std::string last : {":7\r\n", "-NOSCRIPT No matching script\r\n", "-OOM full\r\n"}) {
    CAPTURE(last);
    const ScriptedServer server([&last, by_sha, by_source](const Peer& peer) {
      peer.say(peer.hear(by_sha.size()) == by_sha ? "-NOSCRIPT No matching script\r\n"
                                                  : "-ERR\r\n");
      peer.say(peer.hear(by_source.size()) == by_source ? last : "-ERR\r\n");
      peer.lasts(plenty);
    });
    Direct transport(server.endpoint(), system_clock);
    const auto reply = run_script(transport, script, keys, args, within(plenty));
    const bool answered = last.starts_with(':');
    REQUIRE(static_cast<bool>(reply) == answered);
    if (answered) {
      CHECK(reply->integer == 7);
    } else {
      CHECK(reply.error().fault == (has(last, "OOM") ? Fault::unfit : Fault::internal));
    }
  }
}

TEST_CASE("subscription: confirmed, then messages and nothing else")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(1);
    peer.say(
        "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
        "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
        "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n*3\r\n$7\r\nmessage\r\n$1\r\nb\r\n$"
        "2\r\nho\r\n");
    peer.lasts(plenty);
  });
  const std::array<std::string_view, 2> channels{"a", "b"};
  auto subscription = Subscription::open(server.endpoint(), channels, system_clock, within(plenty));
  REQUIRE(subscription);
  for (const char* text : {"hi", "ho"}) {
    const auto message = subscription->next(within(plenty));
    REQUIRE(message);
    REQUIRE(message->has_value());
    CHECK((*message)->text == text);
  }
  const auto none = subscription->next(within(20ms));
  REQUIRE(none);
  CHECK_FALSE(none->has_value());
}

TEST_CASE("subscription: a channel that is refused")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(1);
    peer.say(
        "-NOPERM this user has no permissions to access one of the channels used as arguments\r\n");
    peer.lasts(plenty);
  });
  const std::array<std::string_view, 1> channels{"a"};
  const auto subscription =
      Subscription::open(server.endpoint(), channels, system_clock, within(plenty));
  REQUIRE_FALSE(subscription);
  CHECK(subscription.error().fault == Fault::refused);
}
