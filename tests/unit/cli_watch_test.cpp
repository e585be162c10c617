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

#define VIEW_CASE(title) CASE_WITH(View, view, title)

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

VIEW_CASE("watch: a lock without a ttl never ends, or ends with the session of its client, which is unknown")
{
  LockState state = three.front();
  state.ttl = {};
  CHECK(has(bare(drawn({state}, view, {.rows = 10, .columns = 80})[2]), "never ends"));
  for (const NativeFormat format : {NativeFormat::curator, NativeFormat::kazoo}) {
    state.beside = format;
    CHECK(has(bare(drawn({state}, view, {.rows = 10, .columns = 80})[2]), "unknown"));
  }
}

TEST_CASE("watch: shows each holder, and the time left")
{
  const InUtc in_utc;
  View view;
  const auto lines = drawn(three, view, {.rows = 24, .columns = 80});
  CHECK(has(bare(lines.front()), "3 held, 8 waiting"));
  CHECK(has(bare(lines.front()), "12:00:00 UTC"));
  CHECK(bare(lines[2]).starts_with("a   alice@web1 1s      [#####---] 20s    7     -      ./a.sh  "));
  CHECK(width(bare(lines[2])) == 80);
  CHECK(std::count(lines.begin(), lines.end(), "a: held") == 1);  // the selected one's details
}

TEST_CASE("watch: the row of a lock whose renewals are refused says so before its job")
{
  LockState state = lock("a", 20s, 1'000);
  state.holders.front().revoked = true;
  View view;
  const auto row = [&] { return bare(drawn({state}, view, {.rows = 10, .columns = 80})[2]); };
  CHECK(has(row(), " -      (revoked) ./a.sh"));
  state.holders.push_back(state.holders.front());
  state.holders.front().revoked = false;
  state.count = 2;
  CHECK(has(row(), " -      (1 of 2 revoked) ./a.sh"));
}

VIEW_CASE("watch: sorts as its keys say, reversed by pressing them again")
{
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

VIEW_CASE("watch: filters by what is typed after /, keys mean nothing then")
{
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

VIEW_CASE("watch: a server that is away is a banner, and nothing from a server is a control character")
{
  LockState odd = lock("a", 20s, 1000);
  odd.holders.front().info->command = "\x1b[2J";
  odd.holders.front().info->host = "\x1b]0;";
  const auto lines = drawn({odd}, view, {.rows = 6, .columns = 120}, {}, {}, "cannot reach it");
  CHECK(bare(lines[1]).starts_with("NO ANSWER for 0s, the locks are as they were then: cannot reach it"));
  CHECK(bare(lines[3]).find('\x1b') == std::string::npos);
  CHECK(bare(lines[3]).starts_with("a "));
  CHECK(bare(lines.back()).starts_with("q quit"));
}

VIEW_CASE("watch: the banner has as many lines as its words need, and the last one is whole")
{
  const std::string why = "cannot reach redis://db1:6379: no answer within 5s (raise --server-timeout)";
  const auto lines = drawn(three, view, {.rows = 12, .columns = 40}, {}, {}, why);
  std::string all;
  for (const std::string& line : lines) {
    CHECK_MESSAGE(width(bare(line)) <= 40, line);
    all += bare(line) + " ";
  }
  CHECK(lines.size() == 12);
  CHECK(has(std::regex_replace(all, std::regex(" +"), " "), why));
  CHECK(bare(lines.back()).starts_with("q quit"));
  CHECK(drawn(three, view, {.rows = 3, .columns = 20}, {}, {}, why).size() == 3);
}

VIEW_CASE("watch: the message has a line of its own above the keys")
{
  const Rates rates;
  for (const std::size_t rows : {std::size_t{3}, std::size_t{4}, std::size_t{24}}) {
    const auto lines = frame({.states = three,
                              .rates = rates,
                              .server = "s",
                              .error = {},
                              .wall_ms = noon,
                              .now = {},
                              .message = "b is frozen"},
                             view, {.rows = rows, .columns = 80});
    CHECK(lines.size() == rows);
    CHECK(bare(lines.back()).starts_with("q quit"));
    CHECK((rows == 3 || bare(lines[rows - 2]).starts_with("b is frozen")));
  }
}

TEST_CASE("watch: what names and holders do not need is for the job")
{
  std::vector<LockState> states = three;
  states[1].holders.front().info->command = std::string(200, 'j');
  View view;
  const auto jobs_at = [&](std::size_t columns) {
    return count(bare(drawn(states, view, {.rows = 10, .columns = columns})[2]), "j");
  };
  CHECK(jobs_at(80) == 80 - 54 - 1);  // and …
  CHECK(jobs_at(200) == 200 - 54 - 1);
  states[0].name = *LockName::parse(std::string(100, 'b'));
  states[0].holders.front().info->host = std::string(100, 'h');
  CHECK(jobs_at(80) >= 8);
  CHECK(jobs_at(200) >= 60);
}

TEST_CASE("watch: East Asian characters and emoji keep the columns in line")
{
  std::vector<LockState> states{lock("日本語🚀", 20s, 1000), lock("abc", 20s, 1000)};
  View view;
  const auto lines = drawn(states, view, {.rows = 10, .columns = 100});
  const auto before_holder = [](const std::string& line) { return width(line.substr(0, line.find("alice@"))); };
  CHECK(before_holder(bare(lines[2])) == before_holder(bare(lines[3])));
  CHECK(width(bare(lines[2])) == 100);
}

TEST_CASE("watch: pages, the first and the last lock, whatever the terminal sends for these keys")
{
  std::vector<LockState> many;
  for (int i = 0; i < 30; ++i) {
    many.push_back(lock("lock" + std::to_string(100 + i), 10s, 1000));
  }
  View view;
  const auto after = [&](std::string_view keys) {
    press(view, keys);
    drawn(many, view, {.rows = 12, .columns = 80});
    return view.selected;
  };
  CHECK(after("") == 0);
  CHECK(after("\x1b[6~") == 9);
  CHECK(after("\x1b[6~\x1b[B") == 19);
  CHECK(after("\x1b[5~") == 10);
  for (const char* last : {"\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "G"}) {
    CHECK(after(last) == 29);
    CHECK(after("\x1b[6~") == 29);
    CHECK(after("\x1b[A") == 28);
  }
  for (const char* first : {"\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "g"}) {
    CHECK(after("G") == 29);
    CHECK(after(first) == 0);
    CHECK(after("\x1b[5~") == 0);
  }
  CHECK(after("\x1bOB") == 1);
  CHECK(after("\x1b[15~\x1b[3~\x1b[1;5C") == 1);  // F5, Delete, Ctrl-Right mean nothing
  CHECK_FALSE(view.quits);
  CHECK(view.sort == SortBy::key);
}

TEST_CASE("watch: of several holders f takes the one whose number is typed, and asks before")
{
  LockState state = lock("a", 20s, 1000);
  for (int i = 2; i <= 12; ++i) {
    state.holders.push_back(state.holders.front());
    state.holders.back().owner = Owner::of("o:" + std::to_string(i));
    state.holders.back().info->host = "host" + std::to_string(i);
  }
  state.count = 12;
  View view;
  view.choice = Choice{.about = state};
  const auto lines = drawn(three, view, {.rows = 24, .columns = 80});
  CHECK(std::any_of(lines.begin(), lines.end(),
                    [](const std::string& line) { return has(bare(line), "  12  alice@host12 (pid 7)"); }));
  CHECK(has(bare(lines.back()), "number of the holder, 1 to 12: _"));
  press(view, "1");
  CHECK(view.choice);  // 1, or the first digit of 12
  press(view, "2");
  REQUIRE(view.question);
  CHECK(view.question->holder == 11);
  CHECK(has(bare(drawn(three, view, {.rows = 24, .columns = 120}).back()), "held by one of 12 holders, alice@host12"));
  press(view, "y");
  REQUIRE(view.confirmed);
  CHECK(view.confirmed->about.holders[view.confirmed->holder].owner.text() == "o:12");

  const auto chosen = [&](std::string_view keys) -> std::optional<std::size_t> {
    View other;
    other.choice = Choice{.about = state};
    press(other, keys);
    return other.question ? std::optional(other.question->holder) : std::nullopt;
  };
  CHECK(chosen("1\r") == 0);
  CHECK(chosen("3") == 2);
  CHECK(chosen("\x1b") == std::nullopt);
  CHECK(chosen("0\r") == std::nullopt);
  CHECK(chosen("13") == std::nullopt);
  CHECK(chosen("1\x7f"
               "2") == 1);
  CHECK(chosen("99") == std::nullopt);  // 9 is complete, and the other 9 is no y
}

VIEW_CASE("watch: the keys after one that asks a question are left for its answer")
{
  CHECK(press(view, "zyq") == "yq");
  view.wanted.reset();
  view.question = Question{LockAction::freeze, three[0]};
  CHECK(press(view, "y/f") == "");
  CHECK(view.confirmed);
  CHECK_FALSE(view.wanted);
}

VIEW_CASE("watch: a question waits for y, and any other key takes it back and means nothing else")
{
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

VIEW_CASE("watch: the details of a lock fill the screen, whatever its size, and arrows do not leave it")
{
  press(view, "\r\x1b[B");
  CHECK(view.details);
  CHECK(view.selected == 0);
  CHECK(view.scrolled == 1);
  press(view, "\x1b[A");
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
  press(view, "\x1b[F");
  CHECK(has(page({.rows = 6, .columns = 80})[4], "waiting"));
  CHECK(page({.rows = 24, .columns = 80})[2] == "b: held");  // all of it fits
  CHECK(view.scrolled == 0);
  press(view, "\x1b");
  CHECK_FALSE(view.details);
}
