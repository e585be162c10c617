// SPDX-License-Identifier: Apache-2.0
// The meaning of event log entries.
#include "lock/event_log.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

// "released h owner a" as in the list, with blanks for NULs; an info may have lines.
EventLogEntry entry(int at, const std::string& text)
{
  std::string entry = std::to_string(at * 1000);
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ' ');) {
    entry += word.empty() ? "" : '\0' + word;
  }
  return EventLogEntry::of(std::move(entry));
}

std::string told(const std::vector<LockEvent>& events)
{
  std::string text;
  for (const LockEvent& event : events) {
    text += (text.empty() ? "" : "; ") + std::to_string(event.time_ms) + " " + std::string(name_of(event.what)) + " " +
            event.owner.text() + (event.fence > 0 ? " #" + std::to_string(event.fence) : "") +
            (event.from.empty() ? "" : " from " + event.from) + (event.by.empty() ? "" : " by " + event.by);
  }
  return text;
}

std::string history(const std::vector<std::string>& texts)
{
  std::vector<EventLogEntry> entries;
  for (const std::string& text : texts) {
    entries.push_back(entry(static_cast<int>(entries.size()) + 1, text));
  }
  EventLogReader reader;
  std::string text = told(reader.read(entries));
  return text + (reader.holder() ? "; held by " + reader.holder()->text() : "");
}

}  // namespace

TEST_CASE("event log: taken and let go, with the number that it had")
{
  CHECK(history({"acquired a  info host=h", "released a owner a"}) == "1 acquired a #1000; 2 released a #1000");
}

TEST_CASE("event log: a hand-over is one event")
{
  CHECK(history({"acquired a ", "released a owner a to b ", "released b owner b"}) ==
        "1 acquired a #1000; 2 handed_over b #2000 from a; 3 released b #2000");
}

TEST_CASE("event log: a job that was over before its lease was found over is told once, by its release")
{
  CHECK(history({"acquired a ", "lost a what none", "released a owner a exit 0"}) ==
        "1 acquired a #1000; 3 released a #1000");
  CHECK(history({"acquired a ", "acquired b ", "lost a what held", "released a owner a exit 0"}) ==
        "1 acquired a #1000; 2 expired a #1000; 2 acquired b #2000; 4 released a #1000; held by b");
  CHECK(history({"acquired a ", "lost a what none", "acquired b ", "released b owner b"}) ==
        "1 acquired a #1000; 2 lost a #1000; 3 acquired b #3000; 4 released b #3000");
}

TEST_CASE("event log: a skip names the holder that keeps the lock after its run, and a freeze with its reason")
{
  CHECK(history({"acquired a  info host=h", "released a owner a exit 0", "skipped s info host=i times 2 holder a"}) ==
        "1 acquired a #1000; 2 released a #1000; 3 skipped s by @h (pid 0)");
  CHECK(history({"acquired f  info host=h\nfreeze=why", "skipped s info host=i times 1 holder f"})
            .ends_with("skipped s by @h (pid 0), freeze: why; held by f"));
}

TEST_CASE("event log: the end of a hold says how its run ended, or that no job ran")
{
  EventLogReader reader;
  const std::vector<EventLogEntry> entries{entry(1, "acquired a "),
                                           entry(2, "released a owner a outcome unused to b "),
                                           entry(3, "released b owner b outcome unused"),
                                           entry(4, "acquired c "),
                                           entry(5, "released c owner c exit 0"),
                                           entry(6, "acquired d "),
                                           entry(7, "released d owner d outcome lost")};
  std::string ends;
  for (const LockEvent& event : reader.read(entries)) {
    ends += std::string(name_of(event.what)) + (event.outcome ? " " + std::string(name_of(*event.outcome)) : "") + "; ";
  }
  CHECK(ends ==
        "acquired; handed_over unused; released unused; acquired; released succeeded; acquired; released lost; ");
}

TEST_CASE("event log: a nested hold that ends is no release, and the last one is, whichever it was")
{
  CHECK(history({"acquired a ", "released n owner a left 1"}) == "1 acquired a #1000; held by a");
  CHECK(history({"acquired a ", "released a owner a left 1", "released n owner a"}) ==
        "1 acquired a #1000; 3 released a #1000");
}

TEST_CASE("event log: a release and a forced release name the requester")
{
  CHECK(history({"acquired a ", "asked a by eve", "released a owner a"}) ==
        "1 acquired a #1000; 3 released a #1000 by eve");
  CHECK(history({"acquired a ", "asked a by eve", "forced a by eve"}) == "1 acquired a #1000; 3 forced a #1000 by eve");
  CHECK(history({"acquired a ", "forced a by eve to b "}) ==
        "1 acquired a #1000; 2 forced a #1000 by eve; 2 handed_over b #2000 from a by eve; held by b");
}

TEST_CASE("event log: a freeze is frozen and thawed, apart from the jobs before and after it")
{
  const std::string freeze = "info freeze=why";
  CHECK(history({"acquired a ", "released a owner a exit 0 to f " + freeze, "forced f by eve to b "}) ==
        "1 acquired a #1000; 2 released a #1000; 2 frozen f #2000; 3 thawed f #2000 by eve; 3 acquired b #3000; held "
        "by b");
  CHECK(history({"acquired f " + freeze, "acquired b "}) ==
        "1 frozen f #1000; 2 thawed f #1000; 2 acquired b #2000; held by b");
  CHECK(history({"acquired f " + freeze, "released f owner f to g " + freeze}) ==
        "1 frozen f #1000; 2 thawed f #1000; 2 frozen g #2000; held by g");
}

TEST_CASE("event log: a grant without a release means that the lease expired")
{
  CHECK(history({"acquired a ", "acquired b "}) ==
        "1 acquired a #1000; 2 expired a #1000; 2 acquired b #2000; held by b");
  CHECK(history({"acquired a  wish read", "acquired b  wish read"}) == "1 acquired a #1000; 2 acquired b #2000");
  CHECK(history({"acquired a  wish 3", "acquired b  wish 3"}) == "1 acquired a #1000; 2 acquired b #2000");
}

TEST_CASE("event log: late and lost")
{
  CHECK(history({"acquired a ", "renewed_late a left 900", "lost a what none"}) ==
        "1 acquired a #1000; 2 renewed_late a #1000; 3 lost a #1000");
  EventLogReader reader;
  const std::vector<EventLogEntry> entries{entry(1, "acquired a "), entry(2, "renewed_late a left 900")};
  CHECK(reader.read(entries).back().left == Millis{900});
  CHECK(told({reader.expired(5)}) == "5 expired a #1000");
  CHECK_FALSE(reader.holder());
}

TEST_CASE("event log: a lost lock names the new holder")
{
  CHECK(history({"acquired a ", "acquired b info host=h", "lost a what held holder b"}) ==
        "1 acquired a #1000; 2 expired a #1000; 2 acquired b #2000; 3 lost a #1000 by @h (pid 0); held by b");
  CHECK(history({"acquired a ", "lost a what held holder uuid:1"}) == "1 acquired a #1000; 2 lost a #1000 by uuid:1");
  CHECK(history({"acquired a ", "acquired b ", "lost a what held"}) ==
        "1 acquired a #1000; 2 expired a #1000; 2 acquired b #2000; 3 lost a #1000 by b; held by b");
  CHECK(history({"acquired a ", "lost a what none by eve"}) == "1 acquired a #1000; 2 lost a #1000 by eve");
}

TEST_CASE("event log: it is read in pieces, and what makes no sense is left out")
{
  EventLogReader reader;
  const std::vector<EventLogEntry> first{entry(1, "acquired a ")};
  const std::vector<EventLogEntry> second{entry(2, "released a owner a"), EventLogEntry::of(""),
                                          entry(4, "what ever else")};
  CHECK(told(reader.read(first)) == "1 acquired a #1000");
  CHECK(told(reader.read(second)) == "2 released a #1000");
}

TEST_CASE("event log: when it was is told by the fencing number, or in seconds and microseconds")
{
  CHECK(EventLogEntry::of("1795288200284999").time_ms == 1'795'288'200'284);
  CHECK(EventLogEntry::of("1795288200.4999").time_ms == 1'795'288'200'004);
}

TEST_CASE("event log: who asked for a lock, and why")
{
  struct Row {
    const char* by;
    const char* reason;
    const char* text;
  };
  const Row rows[] = {
      {"ann as root@web1 (pid 71)", "moving the database: 14:05",
       "ann as root@web1 (pid 71): moving the database: 14:05"},
      {"bob@db1 (pid 9)", "", "bob@db1 (pid 9)"},
      {"bob@db1 (pid 9), running ./deploy.sh", "", "bob@db1 (pid 9), running ./deploy.sh"},
      {"", "", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(text_of({.by = row.by, .reason = row.reason}) == row.text);
    CHECK(who_and_why(row.text).by == row.by);
    CHECK(who_and_why(row.text).reason == row.reason);
  }
}
