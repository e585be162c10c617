// SPDX-License-Identifier: Apache-2.0
// What an operator sees of each kind and can do about it, and what the fencing number is for.
#include "support/guardian_of.h"
#include "support/integration.h"
#include "support/json.h"
#include "support/queue_fixture.h"

using namespace rlock::test;
namespace {

struct Kind {
  std::vector<std::string> options;
  const char* kind;
  const char* format;
  std::size_t holders;  // this kind's limit; three are enough here
};

const std::vector<Kind> kinds{{{}, "plain", "redisson", 1},
                              {{"-s"}, "shared", "redisson", 3},
                              {{"-x"}, "exclusive", "redisson", 1},
                              {{"--permits", "2"}, "permits", "redisson", 2},
                              {{"--format", "string"}, "plain", "string", 1}};

std::string shown(const Kind& kind)
{
  std::string text;
  for (const std::string& option : kind.options) {
    text += option + " ";
  }
  return text;
}

Json status(const QueueFixture& queue) { return Json::parse(rlock_on(queue.server, {"status", "k", "--json"}).out); }

std::vector<Process> hold(const QueueFixture& queue, const Kind& kind)
{
  std::vector<Process> holders;
  for (std::size_t i = 0; i < kind.holders; ++i) {
    holders.push_back(queue.start(kind.options, {"sleep", "60"}));
  }
  wait_until([&] { return listening(queue.server) == kind.holders; }, "they all hold it and listen");
  return holders;
}

}  // namespace

#define EACH_TAKEN_KIND_CASE(title) CASE_FOR_EACH(Kind, kind, kinds, title)

TEST_SUITE_BEGIN("topology");

EACH_TAKEN_KIND_CASE("kinds: status, list and ttl show each kind with all holders and waiters")
{
  const QueueFixture queue;
  std::vector<Process> holders = hold(queue, kind);
  const Json seen = status(queue);
  CHECK(seen.at("held") == true);
  CHECK(seen.at("mode") == kind.kind);
  CHECK(seen.at("format") == kind.format);
  CHECK(seen.at("ttl_ms") > 15'000);
  CHECK(seen.at("fence") > 1'700'000'000'000'000);
  REQUIRE(seen.at("holders").size() == kind.holders);
  for (const Json& holder : seen.at("holders").elements()) {
    CHECK(holder.at("command") == "sleep 60");
    CHECK(holder.at("count") == 1);
    CHECK(
        std::any_of(holders.begin(), holders.end(), [&](const Process& one) { return holder.at("pid") == one.pid(); }));
  }
  // A renewal between the two changes the ttl, and the order of holders with permits.
  const auto are_same = [&] {
    const Json now = status(queue), listed = Json::parse(rlock_on(queue.server, {"list", "--json"}).out);
    CHECK(listed.at("ttl_ms") > 15'000);
    CHECK(listed.at("ttl_ms") <= 30'000);
    return listed.with("ttl_ms", now.at("ttl_ms")) == now;
  };
  wait_until(are_same, "list shows what status shows");
  CHECK(std::stoi(rlock_on(queue.server, {"ttl", "k"}).out) > 15'000);

  const Kind& waiting = std::string(kind.kind) == "shared" ? kinds[2] : kind;
  Process waiter = queue.start(waiting.options, {"true"});
  wait_until([&] { return status(queue).at("waiting").size() == 1; }, "one waits");
  CHECK(status(queue).at("waiting").at(0).at("pid") == waiter.pid());
  for (Process& holder : holders) {
    holder.signal(SIGTERM);
    holder.wait();
  }
  CHECK(waiter.wait() == success);
  CHECK(status(queue).at("held") == false);
  CHECK(rlock_on(queue.server, {"ttl", "k"}).code == 1);
}

EACH_TAKEN_KIND_CASE("kinds: list finds each kind, also by a name with a tag of its own")
{
  const QueueFixture queue;
  Process holder = start_run(queue.server.url(), joined({"-k", "a{b}c"}, kind.options), {"sleep", "60"});
  wait_until([&] { return listening(queue.server) == 1; }, "it is held");
  for (const char* pattern : {"*", "a{*", "a{b}c"}) {
    const Finished told = rlock_on(queue.server, {"list", pattern, "--json"});
    CHECK(Json::parse(told.out).at("key") == "a{b}c");
  }
  CHECK_FALSE(has(rlock_on(queue.server, {"list", "b*"}).out, "a{b}c"));
}

EACH_TAKEN_KIND_CASE("kinds: wait ends when there is room, for permits as soon as one is free")
{
  const QueueFixture queue;
  std::vector<Process> holders = hold(queue, kind);
  CHECK(rlock_on(queue.server, {"wait", "-n", "k"}).code == 75);
  Process waiting(queue.rlock("wait", {}));
  std::size_t gone = 0;
  do {
    CHECK(waiting.running());
    holders[gone].signal(SIGTERM);
    holders[gone].wait();
  } while (++gone < kind.holders && std::string(kind.kind) != "permits");
  CHECK(waiting.wait() == success);
  CHECK(rlock_on(queue.server, {"wait", "-n", "k"}).code == 0);
}

EACH_TAKEN_KIND_CASE("kinds: force-unlock reaches each holder, or only the named one")
{
  const QueueFixture queue;
  std::vector<Process> holders = hold(queue, kind);
  const std::string token = status(queue).at("holders").at(0).at("owner");
  const auto pid = status(queue).at("holders").at(0).at("pid").number();
  const Finished one = rlock_on(queue.server, {"force-unlock", "k", "--token", token, "--json"});
  CHECK(one.code == 0);
  CHECK(Json::parse(one.out).at("how") == "released");
  for (Process& holder : holders) {
    if (holder.pid() == pid) {
      expect_end(holder, exited(121), {err_has("force-unlocked by ")});
    } else {
      CHECK(holder.running());
    }
  }
  if (kind.holders > 1) {
    CHECK(status(queue).at("holders").size() == kind.holders - 1);
    CHECK(rlock_on(queue.server, {"force-unlock", "k", "--yes", "--now"}).code == 0);
  }
  CHECK(status(queue).at("held") == false);
  for (Process& holder : holders) {
    CHECK(holder.wait().code == 121);
  }
}

QUEUE_CASE("kinds: force-unlock takes all of them away, also when there are more than are shown")
{
  std::vector<std::string> holders{"EVAL",
                                   "local t = redis.call('time') redis.call('set', KEYS[1], 0) for i = 1, 150 do "
                                   "redis.call('zadd', KEYS[2], t[1] * 1000 + 60000, string.format('%016d', i)) end",
                                   "2", "k", "{k}:timeout"};
  queue.server.command(holders);
  queue.server.command(
      {"SET", "redisson_lock_token:{k}", "1"});  // rlock has given out a fencing number: then a bare number is permits
  CHECK(status(queue).at("holders").size() == 64);
  CHECK(rlock_on(queue.server, {"force-unlock", "k", "--yes", "--now"}).code == 0);
  CHECK(as_text(queue.server.command({"GET", "k"})) == "150");
  CHECK(status(queue).at("held") == false);
}

TEST_CASE("kinds: a name that is held as another is refused, 78, with what would fit, or 75 where it only waits")
{
  struct Row {
    std::size_t held;
    const char* advice;
  };
  for (const Row& row : {Row{0, "leave out -s, -x"}, Row{1, "take it with -s or -x"}, Row{3, "take one with --permits"},
                         Row{4, "take it with --format string"}}) {
    const QueueFixture queue;
    std::vector<Process> holders = hold(queue, kinds[row.held]);
    for (const Kind& asked : kinds) {
      CAPTURE(shown(kinds[row.held]) + "asked for as " + shown(asked));
      const bool same = std::string(asked.format) == kinds[row.held].format &&
                        (std::string(asked.kind) == kinds[row.held].kind ||
                         (row.held == 1 && std::string(asked.kind) == "exclusive"));
      if (!same) {
        const auto is_exclusive = [](const Kind& kind) {
          return std::string(kind.format) == "redisson" && std::string(kind.kind) != "permits";
        };
        const bool waits = is_exclusive(asked) && is_exclusive(kinds[row.held]);
        Kind without_waiting = asked;
        without_waiting.options.emplace_back("-n");
        Process refused = queue.start(without_waiting.options, {"true"});
        CHECK(refused.wait() == Exit{.code = waits ? 75 : 78, .signal = 0});
        CHECK((waits || has(refused.err(), row.advice)));
      }
    }
    CHECK(status(queue).at("holders").size() == kinds[row.held].holders);
  }
}

QUEUE_CASE("kinds: a plain lock nested in a read lock of the same owner is refused, not taken for it")
{
  std::string inner;
  for (const std::string& word : queue.rlock("run", {"-n", "--", "true"})) {
    inner += "'" + word + "' ";
  }
  Process outer(queue.rlock("run", {"-s", "--", "sh", "-c", inner}));
  CHECK(outer.wait() == exited(78));
}

// The known failure of leases: a holder is paused, its lease ends, another works, and the first one wakes and writes. The
// writer has left the job's session, because the kernel kills the job of a stopped rlock before its lease ends.
TEST_CASE("fence: a resource that remembers the highest refuses the holder that was paused")
{
  for (const Kind& kind : {kinds[0], kinds[2], kinds[4]}) {
    CAPTURE(shown(kind));
    const QueueFixture queue;
    const auto dir = make_temp_dir("fence");
    std::ofstream(dir / "resource") << "0\n";
    // Writes its name unless a higher number has been seen.
    const auto write = [&](const std::string& name) {
      return "cd " + dir.string() +
             "; read seen rest < resource; if [ \"$RLOCK_FENCE\" -ge \"$seen\" ]; then echo \"$RLOCK_FENCE " + name +
             "\" > new; mv new resource; echo written > " + name + "; else echo refused > " + name + "; fi";
    };
    Kind brief = kind;
    brief.options.insert(brief.options.end(), {"--ttl", "2s"});
    const std::string late = "trap '' TERM; echo $$ > " + (dir / "pid").string() + "; until [ -e " +
                             (dir / "go").string() + " ]; do sleep 0.02; done; " + write("late");
    Process paused = queue.start(brief.options, {"setsid", "--wait", "sh", "-c", late});
    wait_until([&] { return text_of(dir / "pid").find('\n') != std::string::npos; }, "the job runs");
    const pid_t job = static_cast<pid_t>(std::stoi(text_of(dir / "pid")));
    for (const pid_t process : {paused.pid(), guardian_of(paused.pid()), job}) {
      ::kill(process, SIGSTOP);
    }

    Process next = queue.start(brief.options, {"sh", "-c", write("next")});
    CHECK(next.wait() == success);
    CHECK(text_of(dir / "next") == "written\n");
    std::ofstream(dir / "go") << "now";
    ::kill(job, SIGCONT);
    wait_until([&] { return !text_of(dir / "late").empty(); }, "it has tried to write");
    CHECK(text_of(dir / "late") == "refused\n");
    CHECK(has(text_of(dir / "resource"), "next"));
    paused.signal(SIGCONT);
    CHECK(paused.wait().code == 121);
  }
}

// Each of the three begins anew when its job is over, so a waiter of their own kind is always in line.
QUEUE_CASE("kinds: beside jobs that take the plain lock by turns, one for the read-write lock has its turn")
{
  const auto dir = make_temp_dir("turns");
  std::vector<Process> jobs;
  for (int i = 0; i < 3; ++i) {
    const std::string loop = "until [ -e " + (dir / "stop").string() + " ]; do \"$@\" || exit; done";
    jobs.emplace_back(joined({"sh", "-c", loop, "sh"}, queue.rlock("run", {"--", "sleep", "0.1"})));
  }
  wait_until([&] { return queue.queue_length() > 0; }, "one of them waits");
  Process other = queue.start({"-x"}, {"true"});
  CHECK(other.wait(15s) == success);
  std::ofstream(dir / "stop") << "now";
  expect_ends(jobs);
}

TEST_SUITE_END();
