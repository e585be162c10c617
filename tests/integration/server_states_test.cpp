// SPDX-License-Identifier: Apache-2.0
// Acquire, renewal and release on a server that is in one of the states in which it refuses requests.
#include "support/integration.h"
#include "support/job_runner.h"
#include "support/scripted_server.h"
#include "support/server_state.h"

#include <list>

using namespace rlock::test;

namespace {

// Renewed every third of it, given up a second before its end. All states run at once, so a slow machine needs this
// much.
constexpr Millis ttl = 12s;

// One state, and one rlock on a server in it. All states run at the same time.
struct StateCase {
  explicit StateCase(const ServerState& its_state) : state(its_state), fixture(its_state.args) {}

  [[nodiscard]] Words words(const Words& more) const
  {
    return joined({"run", "-S", "unix://" + state.user + fixture.server.socket_path().string(), "-k", "k"}, more);
  }
  // A job that holds the lock until `dir`/go exists.
  void hold(const Words& options)
  {
    Words all = words({"--ttl", "12s", "--kill-after", "1s"});
    all.insert(all.end(), options.begin(), options.end());
    all.insert(all.end(), {"--", "sh", "-c", "until test -e " + go.string() + "; do sleep 0.02; done"});
    rlock.emplace(rlock_argv(all));
    wait_until([&] { return exists("k"); }, "it is held");
    const auto listens = [&] { return fixture.command({"PUBSUB", "CHANNELS", "rlock:owner:*"}).elements.size() == 1; };
    wait_until(listens, "its watchdog listens");
  }
  void finish_job() const { std::ofstream(go).close(); }
  [[nodiscard]] bool cannot(const std::string& what) const { return has(rlock->err(), "cannot " + what); }
  [[nodiscard]] std::int64_t pttl() { return fixture.command({"PTTL", "k"}).integer; }
  [[nodiscard]] bool exists(const std::string& key) { return fixture.command({"EXISTS", key}).integer == 1; }

  const ServerState& state;
  ServerStateFixture fixture;
  const std::filesystem::path go = make_temp_dir("state") / "go";
  std::optional<Process> rlock;
  Instant begun{};
  bool ended = false;
};

std::list<StateCase> state_cases()
{
  skip_on({TopologyKind::cluster},
          "what makes a server a replica is refused there; that slots are not served is among the states");
  std::list<StateCase> all;
  for (const ServerState& state : server_states()) {
    all.emplace_back(state);
  }
  return all;
}

// A renewal may still succeed until the state has begun, which may take a second.
void begin(StateCase& state_case)
{
  state_case.state.begin(state_case.fixture);
  state_case.begun = real_clock.now();
}

void check_nothing_left(StateCase& state_case)
{
  CHECK_FALSE(state_case.exists("k"));
  for (const Reply& key : state_case.fixture.command({"KEYS", "*k*"}).elements) {
    CHECK_MESSAGE(state_case.fixture.command({"PTTL", key.text}).integer > 0, key.text << " has no ttl");
  }
}

}  // namespace

TEST_CASE("states: an acquire is told at once what is wrong, and nothing is left behind")
{
  for (StateCase& state_case : state_cases()) {
    CAPTURE(state_case.state.name);
    begin(state_case);
    const Finished end = run_rlock(state_case.words({"--server-timeout", "2s", "--", "echo", "ran"}));
    CHECK(end.code == state_case.state.code);
    CHECK(end.out == (state_case.state.code == 0 ? "ran\n" : ""));
    CHECK_MESSAGE(has(end.err, state_case.state.says), end.err);
    CHECK(count(end.err, "\n") == (state_case.state.code == 0 ? 0 : 1));
    state_case.state.end(state_case.fixture);
    check_nothing_left(state_case);
    CHECK(run_rlock(state_case.words({"--", "true"})).code == 0);
  }
}

TEST_CASE("states: what is held is kept through what passes")
{
  auto all = state_cases();
  for (StateCase& state_case : all) {
    state_case.hold({"-v"});
  }
  for (StateCase& state_case : all) {
    begin(state_case);
    if (state_case.state.renewable) {
      wait_until([&] { return state_case.pttl() < 11'000; }, "time passes");
      wait_until([&] { return state_case.pttl() > 11'000; }, "it is renewed all the same");
    } else {
      CAPTURE(state_case.state.name);
      wait_until([&] { return has(state_case.rlock->err(), state_case.state.says); },
                 "a renewal has failed and it is said why");
    }
    state_case.state.end(state_case.fixture);
  }
  for (StateCase& state_case : all) {
    CAPTURE(state_case.state.name);
    wait_until([&] { return real_clock.now() > state_case.begun + ttl; }, "the lease that it met it with is over",
               2 * ttl);
    CHECK_MESSAGE(state_case.rlock->running(), state_case.rlock->err());
    state_case.finish_job();
    CHECK_MESSAGE(state_case.rlock->wait() == Exit{0}, state_case.rlock->err());
    CHECK_FALSE(state_case.cannot("release"));
    check_nothing_left(state_case);
  }
}

TEST_CASE("states: what is held is lost, and said to be, when it does not pass")
{
  auto all = state_cases();
  all.remove_if([](const StateCase& state_case) { return state_case.state.renewable; });
  for (StateCase& state_case : all) {
    state_case.hold({"--server-timeout", "500ms"});
  }
  for (StateCase& state_case : all) {
    begin(state_case);
  }
  for (StateCase& state_case : all) {
    CAPTURE(state_case.state.name);
    CHECK_MESSAGE(state_case.rlock->wait(2 * ttl) == Exit{121}, state_case.rlock->err());
    CHECK(real_clock.now() < state_case.begun + ttl);  // before another client can get the lock
    const std::string said = state_case.rlock->err();
    CHECK_MESSAGE(has(said, "; the job will be stopped in "), said);  // early enough for an operator to repair it
    const auto last = said.rfind("the lock k was lost: no renewal for ");
    REQUIRE_MESSAGE(last != std::string::npos, said);
    CHECK_MESSAGE(has(said.substr(last), state_case.state.says), said);
  }
  for (StateCase& state_case : all) {
    state_case.state.end(state_case.fixture);
    wait_until([&] { return !state_case.exists("k"); }, "it is free when its ttl is over", 2 * ttl);
    check_nothing_left(state_case);
  }
}

TEST_CASE("states: what cannot be released frees itself, which is said, and the job's end stays the job's")
{
  auto all = state_cases();
  for (StateCase& state_case : all) {
    state_case.hold({"--server-timeout", "2s"});
  }
  for (StateCase& state_case : all) {
    begin(state_case);
    state_case.finish_job();
  }
  for (StateCase& state_case : all) {
    CAPTURE(state_case.state.name);
    CHECK_MESSAGE(state_case.rlock->wait() == Exit{0}, state_case.rlock->err());
    const std::string said = state_case.rlock->err();
    CHECK_MESSAGE(has(said, "cannot release k: ") == !state_case.state.renewable, said);
    CHECK_MESSAGE((has(said, state_case.state.says) || state_case.state.renewable), said);
    state_case.state.end(state_case.fixture);
  }
  for (StateCase& state_case : all) {
    wait_until([&] { return !state_case.exists("k"); }, "it is free when its ttl is over", 2 * ttl);
    check_nothing_left(state_case);
  }
}

TEST_CASE("states: what cannot be released is released as soon as it can")
{
  auto all = state_cases();
  all.remove_if(
      [](const StateCase& state_case) { return state_case.state.code == 77; });  // a missing right is no reason to wait
  for (StateCase& state_case : all) {
    state_case.hold({});
  }
  for (StateCase& state_case : all) {
    CAPTURE(state_case.state.name);
    begin(state_case);
    state_case.finish_job();
    std::this_thread::sleep_for(200ms);  // some attempts
    state_case.state.end(state_case.fixture);
    CHECK_MESSAGE(state_case.rlock->wait() == Exit{0}, state_case.rlock->err());
    CHECK_FALSE(state_case.cannot("release"));
    CHECK_FALSE(state_case.exists("k"));
  }
}

TEST_CASE("states: a waiter asks again until the state has passed, and gives up where time does not help")
{
  auto all = state_cases();
  for (StateCase& state_case : all) {
    state_case.fixture.must_succeed({"HSET", "k", "somebody:1", "1"});
    state_case.fixture.must_succeed({"PEXPIRE", "k", "600000"});
    // The first waiter behind a foreign holder, which has no record, would find the deleted lock by itself.
    state_case.fixture.must_succeed({"HSET", "rlock:holder:{k}", "somebody:1", "host=h"});
    state_case.fixture.must_succeed({"PEXPIRE", "rlock:holder:{k}", "600000"});
    state_case.rlock.emplace(rlock_argv(state_case.words({"-v", "--", "true"})));
    wait_until([&] { return state_case.exists("rlock:queue:{k}"); }, "it waits");
    wait_until(
        [&] {
          return state_case.fixture.command({"PUBSUB", "CHANNELS", "rlock:owner:*"}).elements.size() == 1;
        },
        "it listens");
  }
  for (StateCase& state_case : all) {
    CAPTURE(state_case.state.name);
    state_case.fixture.must_succeed({"DEL", "k", "rlock:holder:{k}"});  // without a message
    begin(state_case);
    state_case.fixture.cut_connections();
    std::this_thread::sleep_for(200ms);  // some attempts
    if (state_case.state.code == 77) {
      CHECK_MESSAGE(state_case.rlock->wait() == Exit{77}, state_case.rlock->err());
      CHECK_MESSAGE(has(state_case.rlock->err(), state_case.state.says), state_case.rlock->err());
    } else {
      CHECK_MESSAGE((state_case.rlock->running() || state_case.state.renewable), state_case.rlock->err());
    }
    state_case.state.end(state_case.fixture);
    if (state_case.state.code != 77) {
      CHECK_MESSAGE(state_case.rlock->wait() == Exit{0}, state_case.rlock->err());
    }
    check_nothing_left(state_case);
  }
}
