// SPDX-License-Identifier: Apache-2.0
// The handshake with servers that do not answer it properly. integration/tls_test.cpp tests it with a real server.
#include "redis/connection.h"
#include "support/scripted_server.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

Endpoint with_tls(Endpoint endpoint)
{
  endpoint.tls.emplace();
  return endpoint;
}

Error failure(const ScriptedServer& server, const CallLimits& limit)
{
  const auto connection = Connection::open(with_tls(server.endpoint()), real_clock, limit);
  REQUIRE_FALSE(connection);
  return connection.error();
}

}  // namespace

TEST_CASE("tls: one deadline over the whole handshake, though bytes keep coming")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.say(std::string("\x16\x03\x03\x40\x00", 5));  // the header of a long record
    while (peer.lasts(5ms) && peer.say("x")) {
    }
  });
  const Instant start = real_clock.now();
  const Error error = failure(server, within(200ms));
  CHECK(error.code == ErrorCode::unreachable);
  CHECK_MESSAGE(has(error.text, "did not complete the handshake within 200ms (if it speaks no TLS: redis://)"),
                error.text);
  CHECK(real_clock.now() - start < 2s);
}

TEST_CASE("tls: a server that speaks something else is told apart at its first byte")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(1);
    peer.say("-ERR Protocol error: too big inline request\r\n");
    peer.lasts(plenty);
  });
  const Error error = failure(server, within(plenty));
  CHECK(error.code == ErrorCode::unreachable);
  CHECK(has(error.text, "it answered without TLS (if it speaks no TLS: redis://)"));
}

TEST_CASE("tls: a server that hangs up, and a stop")
{
  const ScriptedServer gone([](const Peer& peer) { peer.hear(1); });
  CHECK(has(failure(gone, within(plenty)).text, "it ended the connection "));

  const ScriptedServer silent([](const Peer& peer) { peer.lasts(plenty); });
  StopSource stop;
  stop.request();
  CHECK(failure(silent, within(plenty, stop.token())).code == ErrorCode::interrupted);
}

TEST_CASE("tls: nonsense in the form of a record")
{
  const ScriptedServer server([](const Peer& peer) {
    peer.hear(1);
    peer.say(std::string("\x16\x03\x03\x00\x04zzzz", 9));
    peer.lasts(plenty);
  });
  const Error error = failure(server, within(plenty));
  CHECK(error.code == ErrorCode::server_not_ready);
  CHECK(error.text.starts_with("TLS with unix:///"));
}
