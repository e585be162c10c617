// SPDX-License-Identifier: Apache-2.0
// A scan of many pages: each reply has its whole time limit, however long the scan takes.
#include "store/redis/scan.h"

#include "support/stepped_clock.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

// Each reply takes 3 s. Five pages with two keys each; the server says that hashes that end with 1 look like locks.
class SlowServer final : public Transport {
 public:
  explicit SlowServer(SteppedClock& clock) : m_clock(clock) {}

  Result<Reply> call(std::string_view, std::span<const std::string_view> argv, const CallLimits& limit) override
  {
    if (m_clock.now() + 3s > limit.deadline) {
      return Error{ErrorCode::unreachable, "no answer"};
    }
    m_clock.add(3s);
    words.emplace_back(argv.begin(), argv.end());
    return argv[0] == "SCAN" ? page(std::stoi(std::string(argv[1]))) : looked_through(argv.subspan(3));
  }
  Result<Reply> follow_up(std::string_view, std::span<const std::string_view>, const CallLimits&) override
  {
    return Error{ErrorCode::internal, "not asked"};
  }
  Result<Subscription> subscribe(std::span<const std::string_view>, const CallLimits&) override
  {
    return Error{ErrorCode::internal, "not asked"};
  }
  void forget() override {}

  std::vector<std::vector<std::string>> words;

 private:
  static Reply text(std::string value) { return {.kind = Reply::Kind::text, .text = std::move(value)}; }
  static Reply list(std::vector<Reply> elements)
  {
    return {.kind = Reply::Kind::array, .elements = std::move(elements)};
  }

  static Reply page(int number)
  {
    const std::string name = "page" + std::to_string(number) + ":";
    return list({text(number == 4 ? "0" : std::to_string(number + 1)), list({text(name + "0"), text(name + "1")})});
  }
  static Reply looked_through(std::span<const std::string_view> names)
  {
    std::vector<Reply> found;
    for (const std::string_view name : names) {
      if (name.ends_with("1")) {
        found.push_back(text(std::string(name)));
      }
    }
    return list(std::move(found));
  }

  SteppedClock& m_clock;
};

}  // namespace

TEST_CASE("scan: each answer has the whole timeout, and one script looks through many hashes")
{
  SteppedClock clock;
  SlowServer server(clock);
  const auto found =
      hashes_like_locks(server, "*", {.clock = clock, .timeout = 5s, .whole = {far_future, StopToken::never()}});
  REQUIRE(found);
  CHECK(*found == std::vector<std::string>{"page0:1", "page1:1", "page2:1", "page3:1", "page4:1"});
  CHECK(std::count_if(server.words.begin(), server.words.end(),
                      [](const auto& words) { return words[0] == "EVALSHA"; }) == 1);
}

TEST_CASE("scan: a deadline for all answers together ends it")
{
  SteppedClock clock;
  SlowServer server(clock);
  const auto found =
      hashes_like_locks(server, "*", {.clock = clock, .timeout = 5s, .whole = {clock.now() + 10s, StopToken::never()}});
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::unreachable);
}
