// SPDX-License-Identifier: Apache-2.0
// A scan of many pages: each reply has its whole time limit, however long the scan takes; and a scan without end ends.
#include "redis/scan.h"

#include "support/stepped_clock.h"
#include "support/test.h"

#include <cstddef>

using namespace rlock::test;

namespace {

// Each reply takes 3 s. Five pages with two keys each, of which the script says that one may be a lock. `next` says which cursor
// follows, `more_keys` how many keys each page has beside those.
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
    return argv[0] == "SCAN" ? plain_page(argv[1]) : looked_through(argv[3]);
  }
  Result<Reply> follow_up(std::string_view, std::span<const std::string_view>, const CallLimits&) override
  {
    return Error{ErrorCode::internal, "not asked"};
  }
  Result<Subscription> subscribe(std::span<const std::string_view>, const CallLimits&) override
  {
    return Error{ErrorCode::internal, "not asked"};
  }
  void drop_connection() override {}

  std::vector<std::vector<std::string>> words;
  std::function<std::string(const std::string& cursor)> next = [](const std::string& cursor) {
    return cursor == "4" ? "0" : std::to_string(std::stoi(cursor) + 1);
  };
  std::size_t more_keys = 0;

 private:
  Reply plain_page(std::string_view cursor) const
  {
    const std::string key = "rlock:events:{page" + std::string(cursor) + "}";
    return Reply::array({Reply::of(next(std::string(cursor))), Reply::array({Reply::of(key)})});
  }
  Reply looked_through(std::string_view cursor) const
  {
    const std::string at(cursor);
    std::vector<Reply> found{Reply::of(next(at)), Reply::of("page" + at + ":1"),
                             Reply::of("rlock:holder:{page" + at + ":2}")};
    found.resize(found.size() + more_keys, Reply::of("x"));
    return Reply::array(std::move(found));
  }

  SteppedClock& m_clock;
};

PerAnswer five_seconds_each(const SteppedClock& clock)
{
  return {.clock = clock, .timeout = 5s, .whole = {far_future, StopToken::never()}};
}

}  // namespace

TEST_CASE("scan: each answer has the whole timeout, and one script for each page finds all")
{
  SteppedClock clock;
  SlowServer server(clock);
  const auto found = find_locks(server, "*", five_seconds_each(clock));
  REQUIRE(found);
  CHECK(*found == std::vector<std::string>{"page0:1", "page0:2", "page1:1", "page1:2", "page2:1", "page2:2", "page3:1",
                                           "page3:2", "page4:1", "page4:2"});
  CHECK(server.words.size() == 5);
  CHECK(server.words[0][0] == "EVALSHA");
}

TEST_CASE("scan: a record that only the glob of the locks names is no lock")
{
  SteppedClock clock;
  SlowServer server(clock);
  const auto found = find_locks(server, "*:1*", five_seconds_each(clock));
  REQUIRE(found);
  CHECK(std::none_of(found->begin(), found->end(), [](const std::string& name) { return name.ends_with(":2"); }));
}

TEST_CASE("scan: a deadline for all answers together ends it")
{
  SteppedClock clock;
  SlowServer server(clock);
  const auto found =
      find_locks(server, "*", {.clock = clock, .timeout = 5s, .whole = {clock.now() + 10s, StopToken::never()}});
  REQUIRE_FALSE(found);
  CHECK(found.error().code == ErrorCode::unreachable);
}

TEST_CASE("scan: a cursor that is repeated ends it, however long the circle is")
{
  for (const std::string first : {"1", "3", "900"}) {
    CAPTURE(first);
    SteppedClock clock;
    SlowServer server(clock);
    server.next = [&](const std::string& cursor) {
      return cursor == "1000" ? first : std::to_string(std::stoi(cursor) + 1);
    };
    const auto found = find_locks(server, "*", five_seconds_each(clock));
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ErrorCode::internal);
    CHECK(found.error().text.starts_with("SCAN does not end"));
    CHECK(server.words.size() <= 4000);
    const auto logs = locks_beside(server, "events", "*", "list", five_seconds_each(clock));
    REQUIRE_FALSE(logs);
    CHECK(logs.error().text == found.error().text);
  }
}

TEST_CASE("scan: more keys than any server has end it")
{
  SteppedClock clock;
  SlowServer server(clock);
  server.next = [](const std::string& cursor) { return std::to_string(std::stoi(cursor) + 1); };
  server.more_keys = 1'000'000;
  const auto found = find_locks(server, "*", five_seconds_each(clock));
  REQUIRE_FALSE(found);
  CHECK(found.error().text.starts_with("SCAN does not end"));
  CHECK(server.words.size() <= 20);
}
