// SPDX-License-Identifier: Apache-2.0
#include "net/dial.h"

#include "support/scripted_server.h"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

using namespace rlock;
using namespace rlock::test;

namespace {

int option(const Fd& socket, int level, int name)
{
  int value = 0;
  socklen_t size = sizeof value;
  REQUIRE(::getsockopt(socket.get(), level, name, &value, &size) == 0);
  return value;
}

}  // namespace

TEST_CASE("dial: a TCP peer that vanished is found within 30 s")
{
  const ScriptedServer server([](const Peer& peer) { peer.lasts(plenty); }, Endpoint::Kind::tcp);
  const auto socket = dial(server.endpoint(), real_clock, within(plenty));
  REQUIRE(socket);
  CHECK(option(*socket, SOL_SOCKET, SO_KEEPALIVE) == 1);
  const int idle = option(*socket, IPPROTO_TCP, TCP_KEEPIDLE);
  const int probes = option(*socket, IPPROTO_TCP, TCP_KEEPINTVL) * option(*socket, IPPROTO_TCP, TCP_KEEPCNT);
  CHECK(idle + probes <= 30);
}

TEST_CASE("dial: the error tells the end of its text that is advice, and whether anything listens there")
{
  const auto refused =
      dial({.kind = Endpoint::Kind::unix_socket, .path = "/nowhere/redis.sock"}, real_clock, within(plenty));
  REQUIRE_FALSE(refused);
  const Error& error = refused.error();
  CHECK(error.nobody_there);
  REQUIRE(error.advice < error.text.size());
  CHECK(error.text.substr(error.text.size() - error.advice) == " (is redis-server running? -S names another server)");
}
