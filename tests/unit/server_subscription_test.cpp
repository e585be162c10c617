// SPDX-License-Identifier: Apache-2.0
#include "redis/subscription.h"

#include "support/scripted_server.h"
#include "support/test.h"

#include <array>

using namespace rlock::test;

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
  auto subscription = Subscription::open(server.endpoint(), channels, real_clock, within(plenty));
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
    peer.say("-NOPERM this user has no permissions to access one of the channels used as arguments\r\n");
    peer.lasts(plenty);
  });
  const std::array<std::string_view, 1> channels{"a"};
  const auto subscription = Subscription::open(server.endpoint(), channels, real_clock, within(plenty));
  REQUIRE_FALSE(subscription);
  CHECK(subscription.error().code == ErrorCode::refused);
}
