// SPDX-License-Identifier: Apache-2.0
#include "redis/redis_store.h"
#include "redis/transport.h"

#include "support/scripted_server.h"
#include "support/test.h"

#include <array>
#include <atomic>

using namespace rlock::test;
using namespace std::string_view_literals;

namespace {

constexpr std::array<std::string_view, 1> ping{"PING"};
constexpr std::string_view ping_bytes = "*1\r\n$4\r\nPING\r\n";

}  // namespace

TEST_CASE("direct: what a full server says before it hangs up is heard")
{
  const ScriptedServer full([](const Peer& peer) { peer.say("-ERR max number of clients reached\r\n"); });
  Direct transport(full.endpoint(), real_clock);
  const auto reply = transport.call("", ping, within(plenty));
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::server_not_ready);
}

TEST_CASE("direct: a failed call is not sent again, and the next one finds a new connection")
{
  std::atomic<int> connections = 0;
  const ScriptedServer server([&connections](const Peer& peer) {
    peer.hear(ping_bytes.size());
    if (++connections > 1) {
      peer.say("+PONG\r\n");
      peer.lasts(plenty);
    }
  });
  Direct transport(server.endpoint(), real_clock);
  const auto lost = transport.call("", ping, within(plenty));
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == ErrorCode::unreachable);
  CHECK(connections == 1);
  CHECK(transport.call("", ping, within(plenty)));
}

TEST_CASE("run_script: the source follows where the server does not know the script, once")
{
  constexpr std::string_view by_sha = "*5\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n";
  constexpr std::string_view by_source = "*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 7\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n";
  constexpr std::array<std::string_view, 3> blocks{" ", "7", "return"};
  const Script script{.name = "seven", .blocks = blocks.data(), .order = "\x02\0\x01"sv, .sha1 = "ab"};
  const std::array<std::string_view, 1> keys{"k"};
  const std::array<std::string_view, 1> args{"a"};
  for (const std::string last : {":7\r\n", "-NOSCRIPT No matching script\r\n", "-OOM full\r\n"}) {
    CAPTURE(last);
    const ScriptedServer server([&last, by_sha, by_source](const Peer& peer) {
      peer.say(peer.hear(by_sha.size()) == by_sha ? "-NOSCRIPT No matching script\r\n" : "-ERR\r\n");
      peer.say(peer.hear(by_source.size()) == by_source ? last : "-ERR\r\n");
      peer.lasts(plenty);
    });
    Direct transport(server.endpoint(), real_clock);
    const auto reply = run_script(transport, script, keys, args, within(plenty));
    const bool answered = last.starts_with(':');
    REQUIRE(static_cast<bool>(reply) == answered);
    if (answered) {
      CHECK(reply->integer == 7);
    } else {
      CHECK(reply.error().code == (last.starts_with("-OOM") ? ErrorCode::server_not_ready : ErrorCode::unreachable));
    }
  }
}

TEST_CASE("direct: several requests are sent before the first answer is awaited")
{
  const ScriptedServer server([](const Peer& peer) {
    if (peer.hear(3 * ping_bytes.size()).size() == 3 * ping_bytes.size()) {
      peer.say(":1\r\n-OOM full\r\n:3\r\n");
    }
    peer.lasts(plenty);
  });
  Direct transport(server.endpoint(), real_clock);
  const std::vector<Request> requests(3, {.route_key = "", .words = {"PING"}});
  const auto answers = transport.call_each(requests, within(plenty));
  REQUIRE(answers.size() == 3);
  CHECK(answers[0]->integer == 1);
  REQUIRE_FALSE(answers[1]);
  CHECK(answers[1].error().code == ErrorCode::server_not_ready);
}

TEST_CASE("direct: what is not answered when the connection is lost is unknown, and the next call finds a new one")
{
  std::atomic<int> connections = 0;
  const ScriptedServer server([&connections](const Peer& peer) {
    peer.hear(ping_bytes.size());
    peer.say(":1\r\n");
    if (++connections > 1) {
      peer.lasts(plenty);
    }
  });
  Direct transport(server.endpoint(), real_clock);
  const std::vector<Request> requests(3, {.route_key = "", .words = {"PING"}});
  const auto answers = transport.call_each(requests, within(plenty));
  REQUIRE(answers.size() == 3);
  CHECK(answers[0]);
  CHECK_FALSE(answers[1]);
  CHECK_FALSE(answers[2]);
  CHECK(transport.call("", ping, within(plenty)));
}

TEST_CASE("run_scripts: a script that the server does not know is sent again, by its source if need be")
{
  constexpr std::string_view by_sha = "*4\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n1\r\n$1\r\nk\r\n";
  constexpr std::string_view by_source = "*4\r\n$4\r\nEVAL\r\n$8\r\nreturn 7\r\n$1\r\n1\r\n$1\r\nk\r\n";
  const ScriptedServer server([by_sha, by_source](const Peer& peer) {
    peer.hear(2 * by_sha.size());
    peer.say("-NOSCRIPT No matching script\r\n:2\r\n");
    peer.say(peer.hear(by_sha.size()) == by_sha ? "-NOSCRIPT No matching script\r\n" : "-ERR\r\n");
    peer.say(peer.hear(by_source.size()) == by_source ? ":7\r\n" : "-ERR\r\n");
    peer.lasts(plenty);
  });
  constexpr std::array<std::string_view, 1> blocks{"return 7"};
  const Script script{.name = "seven", .blocks = blocks.data(), .order = "\0"sv, .sha1 = "ab"};
  const std::vector<ScriptCall> calls(2, {.script = script, .keys = {"k"}, .args = {}});
  Direct transport(server.endpoint(), real_clock);
  const auto answers = run_scripts(transport, calls, within(plenty));
  REQUIRE(answers.size() == 2);
  CHECK(answers[0]->integer == 7);
  CHECK(answers[1]->integer == 2);
}
