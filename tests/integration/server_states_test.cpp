// SPDX-License-Identifier: Apache-2.0
// What becomes of taking, keeping and letting go when the server is in one of the states in which it refuses.
#include "support/job_runner.h"
#include "support/scripted_server.h"
#include "support/server_state.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <string>
#include <vector>

using namespace rlock;
using namespace rlock::test;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

// Renewed every 4 s, given up a second before its end: all states are gone through at once, on whatever machine there is.
constexpr Millis ttl = 12s;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// One state, and one rlock that meets it. All states are gone through at the same time.
struct Act {
  explicit Act(const ServerState& its_state) : state(its_state), scene(its_state.args) {}

  [[nodiscard]] Words words(const Words& more) const
  {
    Words all{"run", "-S", "unix://" + state.user + scene.server.socket_path().string(), "-k", "k"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // A job that holds the lock until `dir`/go is there.
  void hold(const Words& options)
  {
    Words all = words({"--ttl", "12s", "--kill-after", "1s"});
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", "sh", "-c", "until test -e " + go.string() + "; do sleep 0.02; done"});
    rlock.emplace(rlock_argv(all));
    wait_until([&] { return exists("k"); }, "it is held");
    wait_until(
        [&] {
          return scene.tell({"PUBSUB", "CHANNELS", "rlock:owner:*"}).elements.size() == 1;
        },
        "its watchdog listens");
  }
  void finish_job() const { std::ofstream(go).close(); }
  [[nodiscard]] bool cannot(const std::string& what) const { return has(rlock->err(), "cannot " + what); }
  [[nodiscard]] std::int64_t pttl() { return scene.tell({"PTTL", "k"}).integer; }
  [[nodiscard]] bool exists(const std::string& key) { return scene.tell({"EXISTS", key}).integer == 1; }

  const ServerState& state;
  Scene scene;
  const std::filesystem::path go = make_temp_dir("state") / "go";
  std::optional<Process> rlock;
  Instant begun{};
  bool ended = false;
};

std::list<Act> acts()
{
  not_on({LockCandidate::cluster},
         "what makes a server a replica is refused there; that slots are not served is among the states");
  std::list<Act> all;
  for (const ServerState& state : server_states()) {
    all.emplace_back(state);
  }
  return all;
}

// Until it has begun, which may take a second, a renewal may still succeed.
void begin(Act& act)
{
  act.state.begin(act.scene);
  act.begun = real_clock.now();
}

void check_nothing_left(Act& act)
{
  CHECK_FALSE(act.exists("k"));
  for (const Reply& key : act.scene.tell({"KEYS", "*k*"}).elements) {
    CHECK_MESSAGE(act.scene.tell({"PTTL", key.text}).integer > 0, key.text << " has no ttl");
  }
}

std::size_t lines(const std::string& text)
{
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("states: who would take a lock is told at once what is wrong, and nothing is left behind")
{
  for (Act& act : acts()) {
    CAPTURE(act.state.name);
    begin(act);
    const Finished end = run_rlock(act.words({"--server-timeout", "2s", "--", "echo", "ran"}));
    CHECK(end.code == act.state.code);
    CHECK(end.out == (act.state.code == 0 ? "ran\n" : ""));
    CHECK_MESSAGE(has(end.err, act.state.says), end.err);
    CHECK(lines(end.err) == (act.state.code == 0 ? 0 : 1));
    act.state.end(act.scene);
    check_nothing_left(act);
    CHECK(run_rlock(act.words({"--", "true"})).code == 0);
  }
}

TEST_CASE("states: what is held is kept through what passes")
{
  auto all = acts();
  for (Act& act : all) {
    act.hold({"-v"});
  }
  for (Act& act : all) {
    begin(act);
    if (act.state.renewable) {
      wait_until([&] { return act.pttl() < 11'000; }, "time passes");
      wait_until([&] { return act.pttl() > 11'000; }, "it is renewed all the same");
    } else {
      CAPTURE(act.state.name);
      wait_until([&] { return has(act.rlock->err(), act.state.says); }, "a renewal has failed and it is said why");
    }
    act.state.end(act.scene);
  }
  for (Act& act : all) {
    CAPTURE(act.state.name);
    wait_until([&] { return real_clock.now() > act.begun + ttl; }, "the lease that it met it with is over", 2 * ttl);
    CHECK_MESSAGE(act.rlock->running(), act.rlock->err());
    act.finish_job();
    CHECK_MESSAGE(act.rlock->wait() == Exit{0}, act.rlock->err());
    CHECK_FALSE(act.cannot("release"));
    check_nothing_left(act);
  }
}

TEST_CASE("states: what is held is lost, and said to be, when it does not pass")
{
  auto all = acts();
  all.remove_if([](const Act& act) { return act.state.renewable; });
  for (Act& act : all) {
    act.hold({"--server-timeout", "500ms"});
  }
  for (Act& act : all) {
    begin(act);
  }
  for (Act& act : all) {
    CAPTURE(act.state.name);
    CHECK_MESSAGE(act.rlock->wait(2 * ttl) == Exit{121}, act.rlock->err());
    CHECK(real_clock.now() < act.begun + ttl);  // before it can be another's
    const std::string said = act.rlock->err();
    CHECK_MESSAGE(has(said, "; the job will be stopped in "), said);  // before it was: an operator may mend it
    const auto last = said.rfind("the lock k was lost: no renewal for ");
    REQUIRE_MESSAGE(last != std::string::npos, said);
    CHECK_MESSAGE(has(said.substr(last), act.state.says), said);
  }
  for (Act& act : all) {
    act.state.end(act.scene);
    wait_until([&] { return !act.exists("k"); }, "it is free when its ttl is over", 2 * ttl);
    check_nothing_left(act);
  }
}

TEST_CASE("states: what cannot be released frees itself, which is said, and the job's end stays the job's")
{
  auto all = acts();
  for (Act& act : all) {
    act.hold({"--server-timeout", "2s"});
  }
  for (Act& act : all) {
    begin(act);
    act.finish_job();
  }
  for (Act& act : all) {
    CAPTURE(act.state.name);
    CHECK_MESSAGE(act.rlock->wait() == Exit{0}, act.rlock->err());
    const std::string said = act.rlock->err();
    CHECK_MESSAGE(has(said, "cannot release k: ") == !act.state.renewable, said);
    CHECK_MESSAGE((has(said, act.state.says) || act.state.renewable), said);
    act.state.end(act.scene);
  }
  for (Act& act : all) {
    wait_until([&] { return !act.exists("k"); }, "it is free when its ttl is over", 2 * ttl);
    check_nothing_left(act);
  }
}

TEST_CASE("states: what cannot be released is released as soon as it can")
{
  auto all = acts();
  all.remove_if([](const Act& act) { return act.state.code == 77; });  // nobody waits for rights
  for (Act& act : all) {
    act.hold({});
  }
  for (Act& act : all) {
    CAPTURE(act.state.name);
    begin(act);
    act.finish_job();
    std::this_thread::sleep_for(200ms);  // some tries
    act.state.end(act.scene);
    CHECK_MESSAGE(act.rlock->wait() == Exit{0}, act.rlock->err());
    CHECK_FALSE(act.cannot("release"));
    CHECK_FALSE(act.exists("k"));
  }
}

TEST_CASE("states: who waits asks again until it has passed, and gives up where it needs more than time")
{
  auto all = acts();
  for (Act& act : all) {
    act.scene.must({"HSET", "k", "somebody:1", "1"});
    act.scene.must({"PEXPIRE", "k", "600000"});
    act.rlock.emplace(rlock_argv(act.words({"-v", "--", "true"})));
    wait_until([&] { return act.exists("rlock:queue:{k}"); }, "it waits");
    wait_until(
        [&] {
          return act.scene.tell({"PUBSUB", "CHANNELS", "rlock:owner:*"}).elements.size() == 1;
        },
        "it listens");
  }
  for (Act& act : all) {
    CAPTURE(act.state.name);
    act.scene.must({"DEL", "k"});  // nobody says so
    begin(act);
    act.scene.cut();
    std::this_thread::sleep_for(200ms);  // some tries
    if (act.state.code == 77) {
      CHECK_MESSAGE(act.rlock->wait() == Exit{77}, act.rlock->err());
      CHECK_MESSAGE(has(act.rlock->err(), act.state.says), act.rlock->err());
    } else {
      CHECK_MESSAGE((act.rlock->running() || act.state.renewable), act.rlock->err());
    }
    act.state.end(act.scene);
    if (act.state.code != 77) {
      CHECK_MESSAGE(act.rlock->wait() == Exit{0}, act.rlock->err());
    }
    check_nothing_left(act);
  }
}
