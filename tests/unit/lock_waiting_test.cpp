// SPDX-License-Identifier: Apache-2.0
// One caller's way to any of several locks, on a store that does as the test says.
#include "lock/waiting.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

using namespace rlock;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;

// What the server would know of one lock.
struct Lock {
  bool is_free = false;
  bool is_ours = false;
  bool has_us_in_line = false;
  std::uint64_t before_us = 0;
  std::uint64_t ticket = 0;  // ours
  Hint said;
};

struct World {
  std::vector<Lock> locks;
  Words calls;                      // "look 0", "stand 0" (in line), "check 0", "leave 0", "listen"
  std::function<void()> with_call;  // does what happens at the same time as the last of these
  int fail_at = 0;                  // the call that fails, from 1; 0: none
  bool takes_effect = false;        // though it fails
  bool had_spoken = false;          // the server, before the call failed
  bool cuts_ears = false;
  int readable = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

  explicit World(std::size_t count) : locks(count) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() { ::close(readable); }

  void hand_over(std::size_t which)
  {
    if (std::exchange(locks[which].has_us_in_line, false)) {
      locks[which].is_ours = true;
      say(which, {.look_in = 0ms});
    }
  }
  void say(std::size_t which, const Hint& hint)
  {
    locks[which].said = hint;
    ::eventfd_write(readable, 1);
  }
  void cut_ears()
  {
    cuts_ears = true;
    ::eventfd_write(readable, 1);
  }

  // "taken: 1; lines: 0 2"
  [[nodiscard]] std::string show() const
  {
    std::string taken, lines;
    for (std::size_t i = 0; i < locks.size(); ++i) {
      taken += locks[i].is_ours ? " " + std::to_string(i) : "";
      lines += locks[i].has_us_in_line ? " " + std::to_string(i) : "";
    }
    return "taken:" + taken + "; lines:" + lines;
  }
  [[nodiscard]] std::string story() const
  {
    std::string text;
    for (const std::string& call : calls) {
      text += (text.empty() ? "" : ", ") + call;
    }
    return text;
  }
  [[nodiscard]] std::ptrdiff_t count(const std::string& call) const
  {
    return std::count_if(calls.begin(), calls.end(), [&](const std::string& one) { return one.starts_with(call); });
  }
};

class ScriptedListener final : public Listener {
 public:
  ScriptedListener(World& world, std::size_t locks) : m_world(world), m_locks(locks) {}
  [[nodiscard]] int fd() const override { return m_world.readable; }
  Result<Hints> heard(const Clock&) override
  {
    eventfd_t count = 0;
    ::eventfd_read(m_world.readable, &count);
    if (std::exchange(m_world.cuts_ears, false)) {
      return Error{Fault::unreachable, "cut"};
    }
    Hints hints;
    for (std::size_t which = 0; which < m_locks; ++which) {
      hints.push_back(std::exchange(m_world.locks[which].said, Hint{}));
    }
    return hints;
  }
  Result<Done> hear_releases(std::size_t, const Limit&) override { return Done{}; }
  Result<Done> hear_takings(std::size_t, const Limit&) override { return Done{}; }

 private:
  World& m_world;
  std::size_t m_locks;
};

class ScriptedStore final : public LockStore {
 public:
  explicit ScriptedStore(World& world) : m_world(world) {}

  Result<Attempt> acquire(const LockSpec& spec, const Owner&, const Manner& manner, const Limit& limit) override
  {
    const std::size_t which = number(spec.name);
    Lock& lock = m_world.locks[which];
    return call<Attempt>(manner.queues ? "stand" : "look", which, limit, [&]() -> Attempt {
      if (lock.is_free || lock.is_ours) {
        lock.is_free = false;
        lock.is_ours = true;
        return Granted{.fence = 1, .count = 1};
      }
      lock.has_us_in_line = lock.has_us_in_line || manner.queues;
      lock.ticket = manner.ticket != 0 ? manner.ticket : 1'000'000;
      return Busy{.ttl = 60s,
                  .holder = Holder{Owner::of("o:1"), 1, HolderInfo{}},
                  .place = lock.before_us,
                  .ticket = manner.queues ? lock.ticket : 0};
    });
  }
  Result<bool> is_queued(const LockSpec& spec, const Owner&, const Limit& limit) override
  {
    const std::size_t which = number(spec.name);
    return call<bool>("check", which, limit, [&] { return m_world.locks[which].has_us_in_line; });
  }
  Result<Release> release(const LockSpec& spec, const Hold&, const Parting&, const Limit& limit) override
  {
    const std::size_t which = number(spec.name);
    Lock& lock = m_world.locks[which];
    return call<Release>("leave", which, limit, [&]() -> Release {
      lock.has_us_in_line = false;
      if (std::exchange(lock.is_ours, false)) {
        return Released{};  // and it passes on: not free
      }
      return Left{};
    });
  }
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner&, const Limit& limit) override
  {
    return call<std::unique_ptr<Listener>>("listen", specs.size(), limit,
                                           [&] { return std::make_unique<ScriptedListener>(m_world, specs.size()); });
  }
  void forget() override {}

  Result<Renewal> renew(const LockSpec&, const Owner&, const Limit&) override { return unasked(); }
  Result<LockState> inspect(const LockName&, const Limit&) override { return unasked(); }
  Result<std::vector<LockState>> list(std::string_view, const PerAnswer&) override { return unasked(); }
  Result<bool> raise_fence(const LockSpec&, const Owner&, std::uint64_t, const Limit&) override { return unasked(); }
  Result<Reentry> reenter(const LockSpec&, const Hold&, const Limit&) override { return unasked(); }
  Result<bool> forget_success(const LockName&, const Limit&) override { return unasked(); }
  Result<ForceAnswer> force(ForceStep, const ForceCall&, const Limit&) override { return unasked(); }

 private:
  static std::size_t number(const LockName& name) { return std::stoul(name.text().substr(2)); }  // "k:3"
  static Error unasked() { return {Fault::internal, "nobody asks that"}; }

  template <typename T, typename Effect>
  Result<T> call(const std::string& what, std::size_t which, const Limit& limit, Effect effect)
  {
    if (limit.stop.requested()) {
      return Error{Fault::interrupted, "stopped"};
    }
    m_world.calls.push_back(what + " " + std::to_string(which));
    const bool fails = static_cast<int>(m_world.calls.size()) == m_world.fail_at;
    std::optional<T> answer;
    if (!fails || m_world.takes_effect) {
      answer.emplace(effect());
    }
    if (m_world.with_call) {
      m_world.with_call();
    }
    if (fails) {
      return Error{.fault = Fault::unreachable, .text = "lost", .was_there = m_world.had_spoken};
    }
    return *std::move(answer);
  }

  World& m_world;
};

// Whoever rests is called once; then something happens.
class Bell final : public Onlooker {
 public:
  explicit Bell(std::function<void()> event) : m_event(std::move(event)) {}
  void refused(const Busy& busy) override { m_places.push_back(busy.place); }
  [[nodiscard]] Instant due() const override { return m_event ? Instant{} : far_future; }
  void tick() override { std::exchange(m_event, nullptr)(); }
  void next_in_line() override {}
  [[nodiscard]] const std::vector<std::uint64_t>& places() const { return m_places; }

 private:
  std::function<void()> m_event;
  std::vector<std::uint64_t> m_places;
};

// Where the round begins is the test's choice.
class FixedRng final : public Rng {
 public:
  explicit FixedRng(std::uint64_t value) : m_value(value) {}
  std::uint64_t next() override { return m_value; }

 private:
  std::uint64_t m_value;
};

std::vector<LockSpec> specs_for(const World& world)
{
  std::vector<LockSpec> specs;
  for (std::size_t i = 0; i < world.locks.size(); ++i) {
    specs.push_back(
        {.name = *LockName::parse("k:" + std::to_string(i)), .mode = {}, .ttl = 30s, .who = {}, .once = {}});
  }
  return specs;
}

constexpr WaitPolicy for_ever{.until = std::nullopt, .patient = true, .server_timeout = 5s};
constexpr WaitPolicy not_at_all{.until = Instant{}, .patient = false, .server_timeout = 5s};

// "took 2", "busy", "interrupted" or the error, and what the server knows of us when all is over.
std::string outcome_of(World& world, const WaitPolicy& policy, Onlooker& onlooker, std::uint64_t first = 0,
                       Stop stop = Stop::never())
{
  ScriptedStore store(world);
  const BootClock clock;
  FixedRng rng(first);
  const auto specs = specs_for(world);
  const auto outcome = wait_and_acquire(store, specs, Owner::of("us:1"), policy, clock, rng, stop, onlooker);
  std::string text = !outcome                                        ? outcome.error().text
                     : std::holds_alternative<TimedOut>(*outcome)    ? "busy"
                     : std::holds_alternative<Interrupted>(*outcome) ? "interrupted"
                                                                     : "took ";
  if (text == "took ") {
    const Taken& taken = std::get<Taken>(*outcome);
    text += std::to_string(taken.which) + (taken.listener ? ", listening" : "");
  }
  return text + "; " + world.show();
}

std::string outcome_of(World& world, const WaitPolicy& policy, std::function<void()> event = nullptr)
{
  Bell bell(std::move(event));
  return outcome_of(world, policy, bell);
}

}  // namespace

TEST_CASE("waiting for one: in line at once, one listener, one check, and the word that it is ours")
{
  World world(1);
  CHECK(outcome_of(world, for_ever, [&] { world.hand_over(0); }) == "took 0, listening; taken: 0; lines:");
  CHECK(world.story() == "stand 0, listen 1, check 0, stand 0");
}

TEST_CASE("waiting for any: a free one is taken without standing in a line")
{
  for (const WaitPolicy& policy : {for_ever, not_at_all}) {
    World world(4);
    world.locks[1].is_free = true;
    Bell bell(nullptr);
    CHECK(outcome_of(world, policy, bell, 3) == "took 1; taken: 1; lines:");
    CHECK(world.story() == "look 3, look 0, look 1");
  }
}

TEST_CASE("waiting for any: chance says where the round begins")
{
  for (std::size_t first = 0; first < 4; ++first) {
    World world(4);
    for (Lock& lock : world.locks) {
      lock.is_free = true;
    }
    Bell bell(nullptr);
    CHECK(outcome_of(world, for_ever, bell, first + 8).starts_with("took " + std::to_string(first)));
    CHECK(world.calls.size() == 1);
  }
}

TEST_CASE("waiting for any: all are busy: in every line, the first that comes is taken, the others are left")
{
  World world(4);
  Bell bell([&] {
    CHECK(world.show() == "taken:; lines: 0 1 2 3");
    world.hand_over(2);
  });
  CHECK(outcome_of(world, for_ever, bell, 1) == "took 2; taken: 2; lines:");
  CHECK(world.story() ==
        "look 1, look 2, look 3, look 0, listen 4, stand 1, stand 2, stand 3, stand 0, stand 2, leave 1, leave 3, "
        "leave 0");
}

TEST_CASE("waiting for any: where somebody waits already, all are busy: no use to look at the others first")
{
  World world(4);
  world.locks[1].before_us = 1;
  Bell bell([&] { world.hand_over(2); });
  CHECK(outcome_of(world, for_ever, bell, 1) == "took 2; taken: 2; lines:");
  CHECK(world.story() == "look 1, listen 4, stand 2, stand 3, stand 0, stand 1, stand 2, leave 1, leave 3, leave 0");
}

TEST_CASE("waiting for any: no two of our tickets are alike, so that not the same waiter is first in every line")
{
  World world(4);
  outcome_of(world, for_ever, [&] { world.hand_over(2); });
  std::set<std::uint64_t> tickets;
  for (const Lock& lock : world.locks) {
    tickets.insert(lock.ticket);
  }
  CHECK(tickets.size() == 4);
  CHECK(*tickets.rbegin() - *tickets.begin() < 20'000);  // microseconds
}

TEST_CASE("waiting for any: two are handed over at once: one is kept, one passes on")
{
  World world(3);
  const std::string outcome = outcome_of(world, for_ever, [&] {
    world.hand_over(0);
    world.hand_over(2);
    CHECK(world.show() == "taken: 0 2; lines: 1");
  });
  const bool has_zero = outcome == "took 0; taken: 0; lines:";
  const bool has_two = outcome == "took 2; taken: 2; lines:";
  CHECK_MESSAGE((has_zero || has_two), outcome);
  CHECK(world.count(has_zero ? "leave 2" : "leave 0") == 1);
}

TEST_CASE("waiting for any: what is handed over while we take or leave another passes on, whenever it comes")
{
  World untouched(4);
  outcome_of(untouched, for_ever, [&] { untouched.hand_over(2); });
  const std::size_t calls = untouched.calls.size();
  REQUIRE(calls > 10);
  for (std::size_t moment = 1; moment <= calls; ++moment) {
    CAPTURE(moment);
    World world(4);
    world.with_call = [&] {
      if (world.calls.size() == moment) {
        world.hand_over(0);
        world.hand_over(3);
      }
    };
    const std::string outcome = outcome_of(world, for_ever, [&] { world.hand_over(2); });
    const std::string which = outcome.substr(5, 1);
    CHECK(outcome == "took " + which + "; taken: " + which + "; lines:");
  }
}

TEST_CASE("waiting for any: one that is refused after all leaves us in line for the others")
{
  World world(3);
  int rests = 0;
  world.with_call = [&] {
    if (world.calls.back() == "stand 1" && ++rests == 2) {
      world.hand_over(2);
    }
  };
  CHECK(outcome_of(world, for_ever, [&] { world.say(1, {.look_in = 0ms}); }) == "took 2; taken: 2; lines:");
}

TEST_CASE("waiting for any: when time is over, or by a signal, all lines are left")
{
  World patient(3);
  const BootClock clock;
  CHECK(outcome_of(patient, {.until = clock.now() + 20ms, .patient = true, .server_timeout = 5s}) ==
        "busy; taken:; lines:");
  CHECK(patient.count("leave") == 3);

  World stopped(3);
  StopSource stop;
  Bell bell([&] { stop.request(); });
  CHECK(outcome_of(stopped, for_ever, bell, 0, stop.token()) == "interrupted; taken:; lines:");
  CHECK(stopped.count("leave") == 3);
}

TEST_CASE("waiting for any: without patience each is looked at once, and no line is entered or left")
{
  World world(3);
  CHECK(outcome_of(world, not_at_all) == "busy; taken:; lines:");
  CHECK(world.story() == "look 0, look 1, look 2");
}

TEST_CASE("waiting for any: the user is told of where we are nearest")
{
  World world(3);
  world.locks[0].before_us = 7;
  world.locks[1].before_us = 9;
  world.locks[2].before_us = 3;
  Bell bell([&] { world.hand_over(1); });
  outcome_of(world, for_ever, bell, 1);
  CHECK(bell.places() == std::vector<std::uint64_t>{9, 3});  // looked at 1, in line for 2, and no nearer after that
}

TEST_CASE("waiting for any: who was cut off asks everywhere, in case it was forgotten or passed")
{
  World world(3);
  CHECK(outcome_of(world, for_ever, [&] {
          world.locks[0].has_us_in_line = false;
          world.locks[1] = {.is_ours = true};
          world.cut_ears();
        }) == "took 1; taken: 1; lines:");
}

// A call that fails has happened or not; we cannot know. Whichever it was: one lock is ours in the end, and no line
// holds us but one whose leaving never reached the server: nobody listens there, so that it passes us by.
TEST_CASE("waiting for any: whichever call fails, none is lost and never are two taken")
{
  for (const bool takes_effect : {false, true}) {
    bool failed = true;
    for (int at = 2; failed; ++at) {
      CAPTURE(at);
      CAPTURE(takes_effect);
      World world(3);
      world.fail_at = at;
      world.takes_effect = takes_effect;
      const std::string outcome = outcome_of(world, for_ever, [&] { world.hand_over(1); });
      failed = static_cast<int>(world.calls.size()) >= at;
      const bool never_left =
          failed && !takes_effect && world.calls[static_cast<std::size_t>(at - 1)].starts_with("leave");
      if (never_left) {
        CHECK(outcome.starts_with("took 1; taken: 1; lines:"));
      } else {
        CHECK(outcome == "took 1; taken: 1; lines:");
      }
    }
  }
}

TEST_CASE("waiting for one: who is cut off before the first answer asks again, if the server had spoken")
{
  for (const bool takes_effect : {false, true}) {
    World world(1);
    world.fail_at = 1;
    world.had_spoken = true;
    world.takes_effect = takes_effect;
    CHECK(outcome_of(world, for_ever, [&] { world.hand_over(0); }) == "took 0, listening; taken: 0; lines:");
  }
  World impatient(1);
  impatient.fail_at = 1;
  impatient.had_spoken = true;
  CHECK(outcome_of(impatient, not_at_all) == "lost; taken:; lines:");
}

TEST_CASE("waiting for any: a lock that was granted without our hearing of it is let go")
{
  World world(3);
  world.locks[0].is_free = true;
  world.fail_at = 1;
  world.takes_effect = true;
  CHECK(outcome_of(world, for_ever) == "lost; taken:; lines:");

  World later(3);
  later.locks[1].is_free = true;
  later.fail_at = 2;
  later.takes_effect = true;
  CHECK(outcome_of(later, not_at_all) == "lost; taken:; lines:");
}
