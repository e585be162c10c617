// SPDX-License-Identifier: Apache-2.0
// Which runs follow from the entries of an event log.
#include "lock/event_log.h"
#include "lock/past_run.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

// "released h owner a" as in the list, with blanks for NULs.
EventLogEntry entry(int at, const std::string& text)
{
  std::string entry = std::to_string(at) + "000";  // at ms
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ' ');) {
    entry += '\0' + (word == "-" ? "" : word);
  }
  return EventLogEntry::of(std::move(entry));
}

// Of each run its owner, start, duration, outcome and exit code.
std::string told(const std::vector<PastRun>& runs)
{
  std::string text;
  for (const PastRun& run : runs) {
    text += (text.empty() ? "" : "; ") + run.owner.text() + " at " + std::to_string(run.start_ms) +
            (run.duration ? " for " + std::to_string(run.duration->count()) : "") + " " +
            (run.outcome ? std::string(name_of(*run.outcome)) : "?") +
            (run.exit_code ? " " + std::to_string(*run.exit_code) : "") +
            (run.times > 1 ? " x" + std::to_string(run.times) : "");
  }
  return text;
}

// Entry n is of n ms; now is ms 100, and `holders` have the lock.
std::string runs(const std::vector<std::string>& texts, const std::vector<std::string>& holders = {})
{
  std::vector<EventLogEntry> entries;
  for (const std::string& text : texts) {
    entries.push_back(entry(static_cast<int>(entries.size()) + 1, text));
  }
  const auto is_holder = [&](const Owner& owner) { return std::ranges::find(holders, owner.text()) != holders.end(); };
  return told(past_runs(entries, is_holder, 100));
}

}  // namespace

TEST_CASE("past runs: what a release says of the run")
{
  struct Row {
    const char* words;
    const char* expected;
  };
  const Row rows[]{{"exit 0", "a at 1 for 1 succeeded 0"},
                   {"exit 3", "a at 1 for 1 failed 3"},
                   {"exit 124 outcome timed_out", "a at 1 for 1 timed_out 124"},
                   {"exit 121 outcome forced", "a at 1 for 1 forced 121"},
                   {"outcome lost", "a at 1 for 1 lost"},
                   {"", "a at 1 for 1 ?"},  // an older rlock, or a release by token
                   {"outcome unused", ""},
                   {"outcome of-a-later-version exit 1", "a at 1 for 1 failed 1"}};
  for (const Row& row : rows) {
    CAPTURE(row.words);
    CHECK(runs({"acquired a info -", std::string("released a owner a ") + row.words}) == row.expected);
  }
}

TEST_CASE("past runs: a run that was over before its lease has the result that came too late for a release")
{
  CHECK(runs({"acquired a info -", "lost a what none", "released a owner a exit 0"}) == "a at 1 for 1 succeeded 0");
  CHECK(runs({"acquired a info -", "acquired b info -", "lost a what held", "released a owner a exit 3"}, {"b"}) ==
        "a at 1 for 1 failed 3");
  CHECK(runs({"acquired a info -", "acquired b info -", "released a owner a exit 0", "released a owner a exit 0"},
             {"b"}) == "a at 1 for 1 succeeded 0");
}

TEST_CASE("past runs: a hold that was lost before its job began is no run")
{
  CHECK(runs({"acquired a info -", "lost a what none outcome unused"}) == "");
  CHECK(runs({"acquired a info -", "acquired b info -", "lost a what held outcome unused"}, {"b"}) == "");
  CHECK(runs({"acquired a info -", "lost a what none", "unused a"}) == "");
}

TEST_CASE("past runs: the words that a result becomes say the same again")
{
  const RunResult results[]{{.exit_code = 0},
                            {.exit_code = 3, .outcome = Outcome::failed},
                            {.exit_code = 124, .outcome = Outcome::timed_out},
                            {.exit_code = 143, .outcome = Outcome::cancelled},
                            {.exit_code = 3, .outcome = Outcome::failed, .attempt = 2, .kept_for = Millis{500}},
                            {.outcome = Outcome::lost},
                            {.exit_code = 0, .fence = 7},
                            {.outcome = Outcome::unused},
                            {}};
  std::string all;
  for (const RunResult& result : results) {
    std::string words = encode(result);
    std::ranges::replace(words, '\0', ' ');
    all += words + ";";
  }
  CHECK(all ==
        " exit 0; exit 3; exit 124 outcome timed_out; exit 143 outcome cancelled; exit 3 attempt 2 retry 500; outcome "
        "lost; exit 0 fence 7; outcome unused;;");
}

TEST_CASE("past runs: a line of hand-overs, the last run first, and the present holder is no past run")
{
  CHECK(runs({"acquired a info -", "released a owner a exit 0 to b info -", "released b owner b exit 1 to c info -"},
             {"c"}) == "b at 2 for 1 failed 1; a at 1 for 1 succeeded 0");
}

TEST_CASE("past runs: a skipped run of which an entry names the newer one was replaced, also where that one is unknown")
{
  const auto skipped = [](const std::string& reason) {
    const std::vector<EventLogEntry> entries{entry(5, "skipped b info - waited 2 times 1 " + reason)};
    return past_runs(
               entries, [](const Owner&) { return false; }, 100)
        .at(0);
  };
  const PastRun replaced = skipped("by host=web2\npid=9\nuser=bob");
  CHECK(replaced.replaced);
  CHECK(replaced.busy_by == "bob@web2 (pid 9)");
  CHECK_FALSE(has_begun(replaced));
  CHECK(outcome_name(replaced) == "replaced");
  CHECK(skipped("by ?").replaced);
  CHECK(skipped("by ?").busy_by.empty());
  CHECK_FALSE(skipped("holder a").replaced);
  CHECK(outcome_name(skipped("holder a")) == "skipped");
}

TEST_CASE("past runs: a run that is not released is lost, forced or timed out")
{
  CHECK(runs({"acquired a info -"}, {"a"}).empty());
  CHECK(runs({"acquired a info -"}) == "a at 1 lost");
  CHECK(runs({"acquired a info -", "acquired b info -"}, {"b"}) == "a at 1 lost");
  CHECK(runs({"acquired a info -", "lost a what none"}) == "a at 1 for 1 lost");
  CHECK(runs({"acquired a info -", "acquired b info -", "lost a what held"}, {"b"}) == "a at 1 for 1 lost");
  CHECK(runs({"acquired a info -", "asked a by eve", "acquired b info -", "lost a what held"}, {"b"}) ==
        "a at 1 for 2 forced");
  CHECK(runs({"acquired a info -", "forced a by eve"}) == "a at 1 for 1 forced");
  CHECK(runs({"acquired a info -", "forced a by eve to b info -"}, {"b"}) == "a at 1 for 1 forced");
  CHECK(runs({"acquired a info -", "asked a by eve", "released a owner a"}) == "a at 1 for 2 forced");
  CHECK(runs({"acquired a info -", "asked a by eve"}) == "a at 1 forced");
  CHECK(runs({"acquired a info lease=50\nauto=0"}) == "a at 1 for 50 timed_out");
  CHECK(runs({"acquired a info lease=50\nauto=1"}) == "a at 1 lost");
  CHECK(runs({"acquired a info lease=50\nauto=0", "acquired b info -"}, {"b"}) == "a at 1 lost");  // deleted before
  CHECK(runs({"acquired a info lease=1\nauto=0", "acquired b info -"}, {"b"}) == "a at 1 for 1 timed_out");
  // Its owner says later that it lost the lock.
  for (const std::string about : {"", " info lease=1\nauto=0 outcome lost fence 1000"}) {
    CHECK(runs({"acquired a info lease=1\nauto=0", "acquired b info -", "lost a what held by - holder b" + about},
               {"b"}) == "a at 1 for 1 lost");
  }
}

TEST_CASE("past runs: a hand-over that its waiter did not confirm")
{
  const std::string to_b = "released a owner a exit 0 to b info lease=50\nauto=1";
  const std::string a = "acquired a info -";
  CHECK(runs({a, to_b, "acquired c info -"}, {"c"}) == "b at 2 ?; a at 1 for 1 succeeded 0");
  CHECK(runs({a, to_b}) == "b at 2 ?; a at 1 for 1 succeeded 0");
  CHECK(runs({a, to_b, "confirmed b", "acquired c info -"}, {"c"}) == "b at 2 lost; a at 1 for 1 succeeded 0");
  CHECK(runs({a, "released a owner a to b info lease=50\nauto=0"}) == "b at 2 ?; a at 1 for 1 ?");
  CHECK(runs({a, "released a owner a to b info lease=50\nauto=0", "confirmed b"}) ==
        "b at 2 for 50 timed_out; a at 1 for 1 ?");
  CHECK(runs({a, to_b, "acquired c info -", "lost b what held"}, {"c"}) ==
        "b at 2 for 1 lost; a at 1 for 1 succeeded 0");  // its rlock says that it had begun
  CHECK(runs({a, to_b, "acquired c info -", "skipped b info - waited 2"}, {"c"}) ==
        "b at 2 for 2 skipped; a at 1 for 1 succeeded 0");
  CHECK(runs({a, to_b, "acquired c info -", "released c owner c exit 0 to b info -", "released b owner b exit 3"}) ==
        "b at 4 for 1 failed 3; c at 3 for 1 succeeded 0; a at 1 for 1 succeeded 0");  // it was stopped, and goes on
  CHECK(runs({a, "forced a by eve to b info lease=50", "acquired c info -"}, {"c"}) == "b at 2 ?; a at 1 for 1 forced");
}

TEST_CASE("past runs: how long a run waited in the queue")
{
  std::vector<EventLogEntry> entries{entry(1, "acquired a info -"),
                                     entry(2, "released a owner a to b info - waited 700")};
  const auto runs = past_runs(
      entries, [](const Owner&) { return false; }, 100);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].waited == Millis{700});
  CHECK(runs[1].waited == Millis{0});
}

TEST_CASE("past runs: the end tells of a run that the log has forgotten, and the number that several servers agreed on")
{
  const std::vector<EventLogEntry> lost{entry(9, "lost a what none by - holder - info host=h fence 4000")};
  const auto forgotten = past_runs(
      lost, [](const Owner&) { return false; }, 100);
  CHECK(told(forgotten) == "a at 4 for 5 lost");
  CHECK(forgotten.at(0).info->host == "h");
  CHECK(forgotten.at(0).fence == 4000);
  CHECK(runs({"released a owner a exit 3 fence 500"}) == "a at 0 for 1 failed 3");
  CHECK(runs({"released n owner a exit 3 fence 500 left 1"}).empty());
  const std::vector<EventLogEntry> agreed{entry(1, "acquired a info -"),
                                          entry(2, "released a owner a exit 0 fence 1500")};
  CHECK(past_runs(
            agreed, [](const Owner&) { return false; }, 100)
            .at(0)
            .fence == 1500);
  const std::vector<EventLogEntry> known{entry(1, "acquired a info -"),
                                         entry(2, "lost a what none info host=h fence 1500")};
  CHECK(told(past_runs(
            known, [](const Owner&) { return false; }, 100)) == "a at 1 for 1 lost");
}

TEST_CASE("past runs: a nested hold is no run, and the outermost hold tells the exit code")
{
  CHECK(runs({"acquired a info -", "released n owner a exit 1 left 1", "released a owner a exit 0"}) ==
        "a at 1 for 2 succeeded 0");
  CHECK(runs({"acquired a info -", "released a owner a exit 4 left 1", "released n owner a exit 0"}) ==
        "a at 1 for 2 failed 4");
}

TEST_CASE("past runs: readers and permits overlap, and a writer that goes on as a reader is not lost")
{
  CHECK(runs({"acquired a info - wish read", "acquired b info - wish read", "released a owner a exit 0",
              "released b owner b exit 2"}) == "b at 2 for 2 failed 2; a at 1 for 2 succeeded 0");
  CHECK(runs({"acquired a info - wish 2", "acquired b info - wish 2"}, {"a"}) == "b at 2 lost");
  CHECK(runs({"acquired a info - wish read", "acquired w info - wish write"}, {"w"}) == "a at 1 lost");
  CHECK(runs({"acquired w info - wish write", "released n owner w left 1", "acquired b info - wish read",
              "released w owner w exit 0"},
             {"b"}) == "w at 1 for 3 succeeded 0");
}

TEST_CASE("past runs: a skipped run began when it came, and may stand for several")
{
  CHECK(runs({"acquired a info -", "renewed_late a left 1", "skipped s info host=h waited 2 times 3"}, {"a"}) ==
        "s at 1 for 2 skipped x3");
  CHECK(runs({"skipped s info - waited 99999999999999999999 times -"}) == "s at 1 for 0 skipped");
  CHECK(runs({"skipped s info - waited 0 times 2 exit 127"}) == "s at 1 for 0 failed 127 x2");
}

TEST_CASE("past runs: a log whose beginning is gone, and entries that say nothing")
{
  CHECK(runs({"released a owner a exit 0", "lost b what none", "forced c by eve", "released - owner -", "", "acquired",
              "left 1", "released a owner a exit 1 to d info -"},
             {"d"})
            .empty());
}

TEST_CASE("past runs: the last run of a lock is the last that began")
{
  LockState state{.name = *LockName::parse("k"), .kind = Plain{}, .ttl = {}, .fence = 0, .holders = {}, .waiting = {}};
  CHECK(last_run(state) == nullptr);
  const PastRun skipped{.owner = Owner::of("s"), .outcome = Outcome::skipped};
  state.runs = {skipped};
  CHECK(last_run(state)->owner.text() == "s");
  state.runs = {skipped, {.owner = Owner::of("a"), .outcome = Outcome::lost}};
  CHECK(last_run(state)->owner.text() == "a");
  state.runs = {{.owner = Owner::of("unconfirmed")}, {.owner = Owner::of("a"), .duration = Millis{1}}};
  CHECK(last_run(state)->owner.text() == "a");
}

TEST_CASE("past runs: a skip names the holder that keeps the lock after its run")
{
  const std::vector<EventLogEntry> entries{entry(1, "acquired a info host=h"), entry(2, "released a owner a exit 0"),
                                           entry(3, "skipped s info host=i waited 1 times 1 holder a")};
  const auto skipped = past_runs(
      entries, [](const Owner&) { return false; }, 100);
  REQUIRE(skipped.size() == 2);
  CHECK(skipped.front().busy_by == "@h (pid 0)");
}

TEST_CASE("past runs: a freeze is no run, however it ended, and a run that it kept off names it")
{
  const std::string freeze = "acquired f info host=h\nfreeze=why\nlease=5";
  CHECK(runs({freeze, "released f owner f"}) == "");
  CHECK(runs({freeze, "forced f by eve"}) == "");
  CHECK(runs({freeze, "acquired a info host=h", "released a owner a exit 0"}) == "a at 2 for 1 succeeded 0");
  CHECK(runs({freeze}) == "");
  CHECK(runs({freeze}, {"f"}) == "");
  const std::vector<EventLogEntry> entries{entry(1, freeze),
                                           entry(2, "skipped s info host=h waited 1 times 1 holder f")};
  const auto skipped = past_runs(
      entries, [](const Owner&) { return true; }, 100);
  REQUIRE(skipped.size() == 1);
  CHECK(skipped.front().busy_by.ends_with(", freeze: why"));
}
