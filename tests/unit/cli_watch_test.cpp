// SPDX-License-Identifier: Apache-2.0
#include "cli/output/output.h"
#include "cli/output/watch.h"
#include "cli/verbs/watch_action.h"
#include "support/shown_zone.h"
#include "support/test.h"

#include <regex>

using namespace rlock::test;
using namespace rlock::cli;

namespace {

constexpr std::int64_t noon = 1'795'262'400'000;  // 2026-11-21 12:00:00 UTC

LockState lock(const std::string& name, Millis ttl, std::int64_t age_ms, std::size_t waiting = 0,
               std::uint64_t fence = 1)
{
  const HolderInfo info{.host = "web1",
                        .pid = 7,
                        .user = "alice",
                        .command = "./" + name + ".sh",
                        .label = {},
                        .since_ms = noon - age_ms,
                        .lease = 30s,
                        .automatic = true};
  return {.name = *LockName::parse(name),
          .kind = Plain{},
          .ttl = ttl,
          .fence = fence,
          .holders = {{.owner = Owner::of("token-" + name), .count = 1, .info = info}},
          .waiting = std::vector<Waiter>(waiting, Waiter{Owner::of("w"), std::nullopt})};
}

std::vector<std::string> drawn(const std::vector<LockState>& states, View& view, Size size, const Rates& rates = {},
                               Instant now = {}, std::string_view trouble = {})
{
  return frame(
      {.states = states, .rates = rates, .server = "redis://db1", .error = trouble, .wall_ms = noon, .now = now}, view,
      size);
}

std::string bare(const std::string& line) { return std::regex_replace(line, std::regex("\x1b\\[[0-9]*m"), ""); }

// The first word of each row of the table.
std::vector<std::string> order(const std::vector<LockState>& states, View& view)
{
  std::vector<std::string> names;
  for (const std::string& line : drawn(states, view, {.rows = 10, .columns = 80})) {
    const std::string name = bare(line).substr(0, bare(line).find(' '));
    if (name.size() == 1 && name != "q") {  // the keys
      names.push_back(name);
    }
  }
  return names;
}

using Names = std::vector<std::string>;

const std::vector<LockState> three{lock("b", 5s, 90'000, 1), lock("a", 20s, 1'000, 7), lock("c", 29s, 10'000)};

}  // namespace

TEST_CASE("watch: fills the screen exactly, whatever its size")
{
  for (const Size size : {Size{3, 20}, Size{10, 40}, Size{24, 80}, Size{50, 200}}) {
    View view;
    const auto lines = drawn(three, view, size);
    CHECK(lines.size() == size.rows);
    for (const std::string& line : lines) {
      CHECK_MESSAGE(width(bare(line)) <= size.columns, line);
    }
  }
}

TEST_CASE("watch: the ttl of another client may be zero for a moment")
{
  LockState state = lock("a", 0ms, 0);
  state.holders.front().info.reset();
  View view;
  CHECK(has(bare(drawn({state}, view, {.rows = 10, .columns = 80})[2]), "[--------] 0s"));
}

TEST_CASE("watch: shows each holder, and the time left")
{
  const InUtc in_utc;
  View view;
  const auto lines = drawn(three, view, {.rows = 24, .columns = 80});
  CHECK(has(bare(lines.front()), "3 held, 8 waiting"));
  CHECK(has(bare(lines.front()), "12:00:00 UTC"));
  CHECK(bare(lines[2]).starts_with("a                alice@web1     1s      [#####---] 20s    7     -      ./a.sh  "));
  CHECK(width(bare(lines[2])) == 80);
  CHECK(std::count(lines.begin(), lines.end(), "a: held") == 1);  // the selected one's details
}

TEST_CASE("watch: sorts as its keys say, reversed by pressing them again")
{
  View view;
  CHECK(order(three, view) == Names{"a", "b", "c"});
  press(view, "k");
  CHECK(order(three, view) == Names{"c", "b", "a"});
  press(view, "t");
  CHECK(order(three, view) == Names{"b", "a", "c"});
  press(view, "w");
  CHECK(order(three, view) == Names{"a", "b", "c"});
  press(view, "a");
  CHECK(order(three, view) == Names{"b", "c", "a"});
  press(view, "aq");
  CHECK(order(three, view) == Names{"a", "c", "b"});
  CHECK(view.quits);
}

TEST_CASE("watch: filters by what is typed after /, keys mean nothing then")
{
  View view;
  press(view, "/c.shq");
  CHECK(view.filter == "c.shq");
  CHECK_FALSE(view.quits);
  press(view, "\x7f\r");
  CHECK(order(three, view) == Names{"c"});
  press(view, "/\x1b");
  CHECK(order(three, view).size() == 3);
  press(view, "/ü\x7f\r");
  CHECK(view.filter.empty());
}

TEST_CASE("watch: arrows select, within what there is, and the selected one is in sight")
{
  std::vector<LockState> many;
  for (int i = 0; i < 30; ++i) {
    many.push_back(lock("lock" + std::to_string(100 + i), 10s, 1000));
  }
  View view;
  press(view, "\x1b[A");
  CHECK(view.selected == 0);
  for (int i = 0; i < 100; ++i) {
    press(view, "\x1b[B");
  }
  const auto lines = drawn(many, view, {.rows = 12, .columns = 80});
  CHECK(view.selected == 29);
  CHECK(std::any_of(lines.begin(), lines.end(),
                    [](const std::string& line) { return line.starts_with("\x1b[7mlock129"); }));
}

TEST_CASE("watch: the rate is how often it changed hands while it was watched")
{
  Rates rates;
  const Instant start{1000s};
  rates.note({lock("a", 20s, 1000, 0, 1)}, start);
  rates.note({lock("a", 20s, 1000, 0, 2)}, start + 1s);
  rates.note({lock("a", 20s, 1000, 0, 2)}, start + 2s);
  rates.note({lock("a", 20s, 1000, 0, 9)}, start + 4s);
  CHECK(rates.per_second(*LockName::parse("a"), start + 4s) == doctest::Approx(0.5));
  CHECK(rates.per_second(*LockName::parse("b"), start + 4s) == 0);
  View view;
  CHECK(
      has(bare(drawn({lock("a", 20s, 1000, 0, 9)}, view, {.rows = 5, .columns = 80}, rates, start + 4s)[2]), "0.5/s"));
}

TEST_CASE("watch: trouble takes the place of the keys, and nothing from a server is a control character")
{
  View view;
  LockState odd = lock("a", 20s, 1000);
  odd.holders.front().info->command = "\x1b[2J";
  odd.holders.front().info->host = "\x1b]0;";
  const auto lines = drawn({odd}, view, {.rows = 5, .columns = 120}, {}, {}, "cannot reach it");
  CHECK(bare(lines.back()).starts_with("cannot reach it"));
  CHECK(bare(lines[2]).find('\x1b') == std::string::npos);
}

TEST_CASE("watch: a question waits for y, and any other key takes it back and means nothing else")
{
  View view;
  press(view, "f");
  CHECK(view.wanted == LockAction::force_unlock);
  view.question = Question{LockAction::force_unlock, three[0]};
  press(view, "q");
  CHECK_FALSE(view.question);
  CHECK_FALSE(view.confirmed);
  CHECK_FALSE(view.quits);
  view.question = Question{LockAction::freeze, three[0]};
  const auto lines = drawn(three, view, {.rows = 10, .columns = 80});
  CHECK(bare(lines.back()).starts_with("y/N: freeze b for 2h, "));
  press(view, "y");
  CHECK_FALSE(view.question);
  REQUIRE(view.confirmed);
  CHECK(view.confirmed->about.name.text() == "b");
}

TEST_CASE("watch: a lock with the name of a key beside a lock is not frozen, and can be broken")
{
  const LockState held{
      .name = *LockName::parse("rlock:holder:{a}"), .holders = {{.owner = Owner::of("o:1")}}, .waiting = {}};
  CHECK(has(obstacle_to(LockAction::freeze, held), "choose another name"));
  CHECK(obstacle_to(LockAction::force_unlock, held).empty());
}

TEST_CASE("watch: the details of a lock fill the screen, whatever its size, and arrows do not leave it")
{
  View view;
  press(view, "\r\x1b[B");
  CHECK(view.details);
  CHECK(view.selected == 0);
  const Rates rates;
  const auto page = [&](Size size) {
    return frame({.states = three,
                  .rates = rates,
                  .server = "redis://db1",
                  .error = {},
                  .wall_ms = noon,
                  .now = {},
                  .details = three.data()},
                 view, size);
  };
  for (const Size size : {Size{3, 20}, Size{10, 40}, Size{24, 80}}) {
    const auto lines = page(size);
    CHECK(lines.size() == size.rows);
    CHECK(std::all_of(lines.begin(), lines.end(),
                      [&](const std::string& line) { return width(bare(line)) <= size.columns; }));
  }
  CHECK(page({.rows = 10, .columns = 80})[2] == "b: held");
  press(view, "\x1b");
  CHECK_FALSE(view.details);
}
