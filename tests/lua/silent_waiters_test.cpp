// SPDX-License-Identifier: Apache-2.0
// Waiters that are silent, because they are stopped or dead (lua/lib/waiters.lua): who watches whether a hand-over is taken, and
// who gets a lock that was not.
#include "lua/queued_read_write.h"

#include <deque>

using namespace rlock::test;

namespace {

const std::string long_ago = "1";  // a ticket older than SUBSCRIBE_GRACE

// One holder at a time.
const std::vector<LockKind> modes{Plain{}, StringLock{}, Writer{}, Permits{1}};

// Waiters wa, wb, … of a lock that is held, long since in line, which listen.
struct Line : ScriptedLock {
  Line(const LockKind& kind, int count) : ScriptedLock(kind)
  {
    acquire("holder");
    for (int i = 0; i < count; ++i) {
      wait(name_of(i), std::to_string(i + 1));
      m_listeners.emplace_back(server, Words{"rlock:owner:{k}:" + name_of(i)});
    }
  }
  static std::string name_of(int number) { return "w" + std::string(1, static_cast<char>('a' + number)); }

  // The words of the waiters that heard any.
  std::string all_heard()
  {
    std::string all;
    for (std::size_t i = 0; i < m_listeners.size(); ++i) {
      for (const std::string& text : m_listeners[i].received()) {
        all += (all.empty() ? "" : ", ") + name_of(static_cast<int>(i)) + " " + text;
      }
    }
    return all;
  }
  Reply ask(int number) const { return wait(name_of(number)); }
  void end_hold() const { server.command({"DEL", "k", "{k}:timeout"}); }
  std::string queue() const
  {
    const Words keys = as_texts(server.command({"KEYS", "rlock:queue*"}));
    return keys.empty() ? "" : keys.front();
  }
  Words in_line() const { return as_texts(server.command({"ZRANGE", queue(), "0", "-1"})); }

 private:
  std::deque<ChannelListener> m_listeners;  // which are not moved
};

}  // namespace

EACH_MODE_CASE(
    "silent waiters: a hand-over is watched by the first waiter, and later by some behind it and the last ones")
{
  Line line(kind, 20);
  line.release("holder");
  std::string expected = "wa yours, wb claim 2000";
  int delay = 3000;
  for (int number = 2; number < 20; ++number) {
    if (number < 10 || number >= 12) {
      expected += ", " + Line::name_of(number) + " watch " + std::to_string(delay += 20);
    }
  }
  CHECK(line.all_heard() == expected);
  CHECK(word(line.ask(0)) == "granted");
  CHECK(line.all_heard() == "wb next 30000");
}

EACH_MODE_CASE(
    "silent waiters: the end of a lock that --min-hold keeps is watched by the first waiters and the last ones")
{
  Line line(kind, 20);
  line.release("holder", "holder", 2500);
  std::string expected = "wa look 2500";
  int delay = 2500;
  for (int number = 1; number < 20; ++number) {
    if (number < 9 || number >= 12) {
      expected += ", " + Line::name_of(number) + " watch " + std::to_string(delay += 20);
    }
  }
  CHECK(line.all_heard() == expected);
  CHECK(word(line.ask(4)) == "busy");
  CHECK(line.in_line().size() == 20);
}

TEST_CASE("silent waiters: hand-overs in quick succession wake up one waiter each")
{
  Line line(Plain{}, 6);
  line.release("holder");
  line.all_heard();
  line.release("wa");
  CHECK(line.all_heard() == "wb yours, wc claim 2000");
}

EACH_MODE_CASE("silent waiters: what the server notes of the waiters goes with the last of them")
{
  Line line(kind, 3);
  const auto notes = [&] { return line.server.command({"KEYS", "rlock:waiters*"}).elements.size(); };
  line.release("holder");
  CHECK(notes() == 1);
  line.release("wa");
  line.release("wb");  // hands over to the last one
  CHECK(notes() == 0);
}

EACH_MODE_CASE(
    "silent waiters: a hand-over is also watched where the next in line have just come and do not listen yet")
{
  const ScriptedLock lock(kind);
  ChannelListener last = subscribe_as(lock, "last");
  lock.acquire("holder");
  for (const char* waiter : {"killed1", "killed2", "killed3", "last"}) {
    lock.wait(waiter);
  }
  lock.release("holder");
  CHECK(last.received() == Words{"claim 2000"});
}

EACH_MODE_CASE("silent waiters: one that does not listen yet when it is told to watch a hand-over looks at its end")
{
  for (const char* first : {"wa", "late"}) {  // who gets the lock
    CAPTURE(kind_of(kind).with_article);
    CAPTURE(first);
    Line line(kind, std::string_view(first) == "wa" ? 2 : 0);
    line.wait("late"), line.wait("later");
    const auto place = [&] { return as_text(line.server.command({"ZSCORE", line.queue(), "later"})); };
    const std::string arrival = place();
    line.release("holder");
    CHECK(place() == arrival + ".5");
    const Reply answer = line.wait("later", arrival);
    CHECK(word(answer) == "busy");
    CHECK(answer.elements.at(6).text == arrival);
    CHECK(answer.elements.at(9).integer > 1500);
    CHECK(answer.elements.at(9).integer <= 2300);
    CHECK(place() == arrival);
  }
}

EACH_MODE_CASE("silent waiters: one that does not listen yet when another has confirmed its lock learns when that ends")
{
  Line line(kind, 1);
  line.release("holder");
  line.wait("late");
  CHECK(word(line.acquire("wa", "wa", 3000)) == "granted");
  const Reply answer = line.wait("late");
  CHECK(answer.elements.at(9).integer > 2000);
  CHECK(answer.elements.at(9).integer <= 3000);
  CHECK_FALSE(line.wait("late").elements.at(9).integer > 0);
}

EACH_MODE_CASE(
    "silent waiters: who asks after a hand-over that was not taken gets the lock; those in front keep places")
{
  for (const bool is_released : {true, false}) {
    CAPTURE(kind_of(kind).with_article);
    CAPTURE(is_released);
    Line line(kind, 5);
    if (is_released) {
      line.release("holder");
    } else {
      line.end_hold();
      CHECK(word(line.ask(4)) == "busy");  // the lock is handed to the first one
    }
    CHECK(line.in_line().front() == "wb");
    CHECK(word(line.ask(3)) == "busy");
    line.end_hold();  // the claim is over
    CHECK(word(line.ask(3)) == "granted");
    CHECK(line.in_line() == Words{"wb", "wc", "we"});
    CHECK(word(line.wait("wa", "1")) == "busy");  // it goes on, and has its place again
    CHECK(line.in_line().front() == "wa");
  }
}

TEST_CASE("silent waiters: one that was asked to release what it was handed has not taken it")
{
  Line line(Plain{}, 4);
  line.release("holder");
  CHECK(word(line.force("ask", "wa")) == "held");
  line.end_hold();
  CHECK(word(line.ask(2)) == "granted");
}

EACH_MODE_CASE("silent waiters: a newcomer does not have the lock handed to the next one, which may be silent as well")
{
  Line line(kind, 4);
  line.release("holder");
  line.all_heard();
  line.end_hold();
  CHECK(word(line.acquire("visitor")) == "busy");
  CHECK(line.all_heard() == "wb look 0, wc look 0, wd look 0");
  const Reply answer = line.wait("newcomer");
  CHECK(word(answer) == "busy");
  CHECK(answer.elements.at(9).integer >= 200);  // it asks soon
  CHECK(answer.elements.at(9).integer <= 520);
  CHECK(word(line.ask(3)) == "granted");
  CHECK(line.in_line() == Words{"wb", "wc", "newcomer"});
}

SCRIPT_CASE("silent waiters: behind dead ones alone a caller that does not wait gets the free lock")
{
  lock.acquire("holder");
  lock.wait("dead1"), lock.wait("dead2", "2");
  lock.release("holder");  // to dead1, which has just come
  lock.server.command({"DEL", "k"});
  CHECK(word(lock.acquire("visitor")) == "granted");
}

QUEUED_RW_CASE("silent waiters: a reader behind one passes no writer that waits, and readers come in together")
{
  const ChannelListener all(lock.server, Words{"rlock:owner:{k}:silent", "rlock:owner:{k}:w", "rlock:owner:{k}:r"});
  lock.write("holder");
  lock.read("silent"), lock.read("reads"), lock.write("w"), lock.read("r");
  const ChannelListener reader = subscribe_as(lock, "reads");
  lock.end_write("holder");
  lock.server.command({"DEL", "{k}:silent:rwlock_timeout:1"});
  CHECK(word(lock.read("reads")) == "granted");
  CHECK(word(lock.read("r")) == "busy");
}

EACH_MODE_CASE("silent waiters: a lock whose holder died goes to the first in line, whoever asks")
{
  Line line(kind, 3);
  line.release("holder");
  CHECK(word(line.eval(scripts_of(kind).renew, "wa", {"30000", "", "confirm"})) == "kept");
  line.end_hold();
  CHECK(word(line.ask(2)) == "busy");
  CHECK(line.in_line() == Words{"wc"});
}
