// SPDX-License-Identifier: Apache-2.0
#include "engine/looking_source.h"
#include "support/test.h"

#include <poll.h>

using namespace rlock::test;

namespace {

const BootClock boot_clock;

class ScriptedLooks final : public record::LookingSource {
 public:
  ScriptedLooks() : LookingSource(boot_clock) {}

  Result<Done> add(std::span<const LockChannel>, const CallLimits&) override
  {
    look_after(pause);
    return Done{};
  }

  std::vector<std::string> news;  // what the next look finds
  Millis pause{0};
  int looks = 0;

 private:
  Result<Millis> look(const CallLimits&) override
  {
    ++looks;
    for (const std::string& text : std::exchange(news, {})) {
      hear({"channel", text});
    }
    return pause;
  }
};

CallLimits at_once() { return {boot_clock.now(), StopToken::never()}; }

bool is_readable(const MessageSource& source)
{
  pollfd wait{.fd = source.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, 0) == 1;
}

std::string text_of(const Result<std::optional<Message>>& message)
{
  REQUIRE(message);
  return *message ? (*message)->text : "none";
}

}  // namespace

TEST_CASE(
    "looking source: the messages of one look are told without another look, and the descriptor is readable until then")
{
  ScriptedLooks source;
  source.news = {"one", "two"};
  REQUIRE(source.add({}, at_once()));
  CHECK(is_readable(source));
  source.pause = 1h;
  CHECK(text_of(source.next(at_once())) == "one");
  CHECK(is_readable(source));
  CHECK(text_of(source.next(at_once())) == "two");
  CHECK(source.looks == 1);
  CHECK_FALSE(is_readable(source));
}

TEST_CASE("looking source: it does not look before it is time to")
{
  ScriptedLooks source;
  source.news = {"one"};
  source.pause = 1h;
  REQUIRE(source.add({}, at_once()));
  CHECK(text_of(source.next(at_once())) == "none");
  CHECK(source.looks == 0);
}

TEST_CASE("looking source: a wait ends with the message of a later look")
{
  ScriptedLooks source;
  source.pause = 20ms;
  REQUIRE(source.add({}, at_once()));
  source.news = {"one"};
  CHECK(text_of(source.next({boot_clock.now() + 10s, StopToken::never()})) == "one");
  CHECK(source.looks == 1);
}
