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

struct RunContext {
  std::vector<Lock> locks;
  Words calls;                      // "look 0", "stand 0" (in line), "check 0", "leave 0", "listen"
  std::function<void()> with_call;  // does what happens at the same time as the last of these
  int fail_at = 0;                  // the call that fails, from 1; 0: none
  bool takes_effect = false;        // though it fails
  bool had_spoken = false;          // the server, before the call failed
  bool cuts_ears = false;
  int readable = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

  explicit RunContext(std::size_t count) : locks(count) {}
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;
  ~RunContext() { ::close(readable); }

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
  ScriptedListener(RunContext& context, std::size_t locks) : m_context(context), m_locks(locks) {}
  [[nodiscard]] int fd() const override { return m_context.readable; }
  Result<Hints> heard(const Clock&) override
  {
    eventfd_t count = 0;
    ::eventfd_read(m_context.readable, &count);
    if (std::exchange(m_context.cuts_ears, false)) {
      return Error{ErrorCode::unreachable, "cut"};
    }
    Hints hints;
    for (std::size_t which = 0; which < m_locks; ++which) {
      hints.push_back(std::exchange(m_context.locks[which].said, Hint{}));
    }
    return hints;
  }
  Result<Done> hear_releases(std::size_t, const CallLimits&) override { return Done{}; }
  Result<Done> hear_takings(std::size_t, const CallLimits&) override { return Done{}; }

 private:
  RunContext& m_context;
  std::size_t m_locks;
};

class ScriptedStore final : public LockStore {
 public:
  explicit ScriptedStore(RunContext& context) : m_context(context) {}

  Result<Attempt> acquire(const LockSpec& spec, const Owner&, const AcquireOptions& manner,
                          const CallLimits& limit) override
  {
    const std::size_t which = number(spec.name);
    Lock& lock = m_context.locks[which];
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
                  .waiters_ahead = lock.before_us,
                  .ticket = manner.queues ? lock.ticket : 0};
    });
  }
  Result<bool> is_queued(const LockSpec& spec, const Owner&, const CallLimits& limit) override
  {
    const std::size_t which = number(spec.name);
    return call<bool>("check", which, limit, [&] { return m_context.locks[which].has_us_in_line; });
  }
  Result<Release> release(const LockSpec& spec, const Hold&, const ReleaseOptions&, const CallLimits& limit) override
  {
    const std::size_t which = number(spec.name);
    Lock& lock = m_context.locks[which];
    return call<Release>("leave", which, limit, [&]() -> Release {
      lock.has_us_in_line = false;
      if (std::exchange(lock.is_ours, false)) {
        return Released{};  // and it passes on: not free
      }
      return Dequeued{};
    });
  }
  Result<std::unique_ptr<Listener>> listen(std::span<const LockSpec> specs, const Owner&,
                                           const CallLimits& limit) override
  {
    return call<std::unique_ptr<Listener>>("listen", specs.size(), limit,
                                           [&] { return std::make_unique<ScriptedListener>(m_context, specs.size()); });
  }
  void forget() override {}

  Result<Renewal> renew(const LockSpec&, const Owner&, const CallLimits&) override { return unasked(); }
  Result<LockState> inspect(const LockName&, const CallLimits&) override { return unasked(); }
  Result<ReentryResult> reenter(const LockSpec&, const Hold&, const CallLimits&) override { return unasked(); }

 private:
  static std::size_t number(const LockName& name) { return std::stoul(name.text().substr(2)); }  // "k:3"
  static Error unasked() { return {ErrorCode::internal, "nobody asks that"}; }

  template <typename T, typename Effect>
  Result<T> call(const std::string& what, std::size_t which, const CallLimits& limit, Effect effect)
  {
    if (limit.stop.requested()) {
      return Error{ErrorCode::interrupted, "stopped"};
    }
    m_context.calls.push_back(what + " " + std::to_string(which));
    const bool fails = static_cast<int>(m_context.calls.size()) == m_context.fail_at;
    std::optional<T> answer;
    if (!fails || m_context.takes_effect) {
      answer.emplace(effect());
    }
    if (m_context.with_call) {
      m_context.with_call();
    }
    if (fails) {
      return Error{.code = ErrorCode::unreachable, .text = "lost", .was_there = m_context.had_spoken};
    }
    return *std::move(answer);
  }

  RunContext& m_context;
};

// Whoever rests is called once; then something happens.
class Bell final : public WaitObserver {
 public:
  explicit Bell(std::function<void()> event) : m_event(std::move(event)) {}
  void refused(const Busy& busy) override { m_places.push_back(busy.waiters_ahead); }
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

std::vector<LockSpec> specs_for(const RunContext& context)
{
  std::vector<LockSpec> specs;
  for (std::size_t i = 0; i < context.locks.size(); ++i) {
    specs.push_back(
        {.name = *LockName::parse("k:" + std::to_string(i)), .mode = {}, .ttl = 30s, .who = {}, .once = {}});
  }
  return specs;
}

constexpr WaitPolicy for_ever{.until = std::nullopt, .waits = true, .server_timeout = 5s};
constexpr WaitPolicy not_at_all{.until = Instant{}, .waits = false, .server_timeout = 5s};

// "took 2", "busy", "interrupted" or the error, and what the server knows of us when all is over.
std::string outcome_of(RunContext& context, const WaitPolicy& policy, WaitObserver& onlooker, std::uint64_t first = 0,
                       StopToken stop = StopToken::never())
{
  ScriptedStore store(context);
  const BootClock clock;
  FixedRng rng(first);
  const auto specs = specs_for(context);
  const auto outcome = wait_and_acquire(store, specs, Owner::of("us:1"), policy, clock, rng, stop, onlooker);
  std::string text = !outcome                                        ? outcome.error().text
                     : std::holds_alternative<TimedOut>(*outcome)    ? "busy"
                     : std::holds_alternative<Interrupted>(*outcome) ? "interrupted"
                                                                     : "took ";
  if (text == "took ") {
    const Taken& taken = std::get<Taken>(*outcome);
    text += std::to_string(taken.which) + (taken.listener ? ", listening" : "");
  }
  return text + "; " + context.show();
}

std::string outcome_of(RunContext& context, const WaitPolicy& policy, std::function<void()> event = nullptr)
{
  Bell bell(std::move(event));
  return outcome_of(context, policy, bell);
}

}  // namespace

TEST_CASE("waiting for one: in line at once, one listener, one check, and the word that it is ours")
{
  RunContext context(1);
  CHECK(outcome_of(context, for_ever, [&] { context.hand_over(0); }) == "took 0, listening; taken: 0; lines:");
  CHECK(context.story() == "stand 0, listen 1, check 0, stand 0");
}

TEST_CASE("waiting for any: a free one is taken without standing in a line")
{
  for (const WaitPolicy& policy : {for_ever, not_at_all}) {
    RunContext context(4);
    context.locks[1].is_free = true;
    Bell bell(nullptr);
    CHECK(outcome_of(context, policy, bell, 3) == "took 1; taken: 1; lines:");
    CHECK(context.story() == "look 3, look 0, look 1");
  }
}

TEST_CASE("waiting for any: chance says where the round begins")
{
  for (std::size_t first = 0; first < 4; ++first) {
    RunContext context(4);
    for (Lock& lock : context.locks) {
      lock.is_free = true;
    }
    Bell bell(nullptr);
    CHECK(outcome_of(context, for_ever, bell, first + 8).starts_with("took " + std::to_string(first)));
    CHECK(context.calls.size() == 1);
  }
}

TEST_CASE("waiting for any: all are busy: in every line, the first that comes is taken, the others are left")
{
  RunContext context(4);
  Bell bell([&] {
    CHECK(context.show() == "taken:; lines: 0 1 2 3");
    context.hand_over(2);
  });
  CHECK(outcome_of(context, for_ever, bell, 1) == "took 2; taken: 2; lines:");
  CHECK(context.story() ==
        "look 1, look 2, look 3, look 0, listen 4, stand 1, stand 2, stand 3, stand 0, stand 2, leave 1, leave 3, "
        "leave 0");
}

TEST_CASE("waiting for any: where somebody waits already, all are busy: no use to look at the others first")
{
  RunContext context(4);
  context.locks[1].before_us = 1;
  Bell bell([&] { context.hand_over(2); });
  CHECK(outcome_of(context, for_ever, bell, 1) == "took 2; taken: 2; lines:");
  CHECK(context.story() == "look 1, listen 4, stand 2, stand 3, stand 0, stand 1, stand 2, leave 1, leave 3, leave 0");
}

TEST_CASE("waiting for any: no two of our tickets are alike, so that not the same waiter is first in every line")
{
  RunContext context(4);
  outcome_of(context, for_ever, [&] { context.hand_over(2); });
  std::set<std::uint64_t> tickets;
  for (const Lock& lock : context.locks) {
    tickets.insert(lock.ticket);
  }
  CHECK(tickets.size() == 4);
  CHECK(*tickets.rbegin() - *tickets.begin() < 20'000);  // microseconds
}

TEST_CASE("waiting for any: two are handed over at once: one is kept, one passes on")
{
  RunContext context(3);
  const std::string outcome = outcome_of(context, for_ever, [&] {
    context.hand_over(0);
    context.hand_over(2);
    CHECK(context.show() == "taken: 0 2; lines: 1");
  });
  const bool has_zero = outcome == "took 0; taken: 0; lines:";
  const bool has_two = outcome == "took 2; taken: 2; lines:";
  CHECK_MESSAGE((has_zero || has_two), outcome);
  CHECK(context.count(has_zero ? "leave 2" : "leave 0") == 1);
}

TEST_CASE("waiting for any: what is handed over while we take or leave another passes on, whenever it comes")
{
  RunContext untouched(4);
  outcome_of(untouched, for_ever, [&] { untouched.hand_over(2); });
  const std::size_t calls = untouched.calls.size();
  REQUIRE(calls > 10);
  for (std::size_t moment = 1; moment <= calls; ++moment) {
    CAPTURE(moment);
    RunContext context(4);
    context.with_call = [&] {
      if (context.calls.size() == moment) {
        context.hand_over(0);
        context.hand_over(3);
      }
    };
    const std::string outcome = outcome_of(context, for_ever, [&] { context.hand_over(2); });
    const std::string which = outcome.substr(5, 1);
    CHECK(outcome == "took " + which + "; taken: " + which + "; lines:");
  }
}

TEST_CASE("waiting for any: one that is refused after all leaves us in line for the others")
{
  RunContext context(3);
  int rests = 0;
  context.with_call = [&] {
    if (context.calls.back() == "stand 1" && ++rests == 2) {
      context.hand_over(2);
    }
  };
  CHECK(outcome_of(context, for_ever, [&] { context.say(1, {.look_in = 0ms}); }) == "took 2; taken: 2; lines:");
}

TEST_CASE("waiting for any: when time is over, or by a signal, all lines are left")
{
  RunContext patient(3);
  const BootClock clock;
  CHECK(outcome_of(patient, {.until = clock.now() + 20ms, .waits = true, .server_timeout = 5s}) ==
        "busy; taken:; lines:");
  CHECK(patient.count("leave") == 3);

  RunContext stopped(3);
  StopSource stop;
  Bell bell([&] { stop.request(); });
  CHECK(outcome_of(stopped, for_ever, bell, 0, stop.token()) == "interrupted; taken:; lines:");
  CHECK(stopped.count("leave") == 3);
}

TEST_CASE("waiting for any: without patience each is looked at once, and no line is entered or left")
{
  RunContext context(3);
  CHECK(outcome_of(context, not_at_all) == "busy; taken:; lines:");
  CHECK(context.story() == "look 0, look 1, look 2");
}

TEST_CASE("waiting for any: the user is told of where we are nearest")
{
  RunContext context(3);
  context.locks[0].before_us = 7;
  context.locks[1].before_us = 9;
  context.locks[2].before_us = 3;
  Bell bell([&] { context.hand_over(1); });
  outcome_of(context, for_ever, bell, 1);
  CHECK(bell.places() == std::vector<std::uint64_t>{9, 3});  // looked at 1, in line for 2, and no nearer after that
}

TEST_CASE("waiting for any: who was cut off asks everywhere, in case it was forgotten or passed")
{
  RunContext context(3);
  CHECK(outcome_of(context, for_ever, [&] {
          context.locks[0].has_us_in_line = false;
          context.locks[1] = {.is_ours = true};
          context.cut_ears();
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
      RunContext context(3);
      context.fail_at = at;
      context.takes_effect = takes_effect;
      const std::string outcome = outcome_of(context, for_ever, [&] { context.hand_over(1); });
      failed = static_cast<int>(context.calls.size()) >= at;
      const bool never_left =
          failed && !takes_effect && context.calls[static_cast<std::size_t>(at - 1)].starts_with("leave");
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
    RunContext context(1);
    context.fail_at = 1;
    context.had_spoken = true;
    context.takes_effect = takes_effect;
    CHECK(outcome_of(context, for_ever, [&] { context.hand_over(0); }) == "took 0, listening; taken: 0; lines:");
  }
  RunContext impatient(1);
  impatient.fail_at = 1;
  impatient.had_spoken = true;
  CHECK(outcome_of(impatient, not_at_all) == "lost; taken:; lines:");
}

TEST_CASE("waiting for any: a lock that was granted without our hearing of it is let go")
{
  RunContext context(3);
  context.locks[0].is_free = true;
  context.fail_at = 1;
  context.takes_effect = true;
  CHECK(outcome_of(context, for_ever) == "lost; taken:; lines:");

  RunContext later(3);
  later.locks[1].is_free = true;
  later.fail_at = 2;
  later.takes_effect = true;
  CHECK(outcome_of(later, not_at_all) == "lost; taken:; lines:");
}
