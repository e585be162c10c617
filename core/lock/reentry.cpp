// SPDX-License-Identifier: Apache-2.0
#include "lock/reentry.h"

#include "lock/validity.h"

#include <algorithm>
#include <vector>

#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis release_options{500};  // how long taking it back may take when the server does not answer
constexpr int tries = 3;                // of a grant that was long on its way

void take_back(LockStore& store, const LockSpec& spec, const Hold& hold, Millis server_timeout, const Clock& clock)
{
  const CallLimits limit{.deadline = clock.now() + std::min(release_options, server_timeout),
                         .stop = StopToken::never()};
  [[maybe_unused]] const auto released = store.release(spec, hold, {}, limit);
}

Result<Nesting> failed(const Error& error)
{
  return error.code == ErrorCode::interrupted ? Result<Nesting>(Interrupted{}) : Result<Nesting>(error);
}

template <typename Outcome>
Entry entry_of(Outcome outcome, const Hold& hold)
{
  if (auto* taken = std::get_if<Taken>(&outcome)) {
    return Entered{.hold = hold, .taken = std::move(*taken)};
  }
  if (const auto* done = std::get_if<AlreadyDone>(&outcome)) {
    return *done;
  }
  if constexpr (std::is_same_v<Outcome, WaitOutcome>) {
    if (const auto* timed_out = std::get_if<TimedOut>(&outcome)) {
      return *timed_out;
    }
  }
  return Interrupted{};
}

}  // namespace

// As for a lock that was waited for, a grant must leave more than half the lease; asked again it counts no second time.
Result<Nesting> take_again(LockStore& store, const LockSpec& spec, const Hold& hold, Millis server_timeout,
                           const Clock& clock, StopToken stop)
{
  for (int i = 0; i < tries; ++i) {
    const Instant sent_at = clock.now();
    const auto answer = store.reenter(spec, hold, {.deadline = sent_at + server_timeout, .stop = stop});
    if (!answer) {
      take_back(store, spec, hold, server_timeout, clock);
      return failed(answer.error());
    }
    if (const auto* lost = std::get_if<NotHeld>(&*answer)) {
      return Nesting{*lost};
    }
    if (const auto* done = std::get_if<AlreadyDone>(&*answer)) {
      return Nesting{*done};
    }
    const auto replicated = store.await_replicas(spec, {.deadline = sent_at + server_timeout, .stop = stop});
    if (!replicated) {
      take_back(store, spec, hold, server_timeout, clock);
      return failed(replicated.error());
    }
    if (leaves_enough(sent_at, spec.ttl, clock.now())) {
      return Nesting{Taken{.which = 0,
                           .owner = hold.owner,
                           .grant = std::get<Granted>(*answer),
                           .sent_at = sent_at,
                           .listener = nullptr}};
    }
  }
  take_back(store, spec, hold, server_timeout, clock);
  return too_slow();
}

Result<Entry> enter(LockStore& store, std::span<const LockSpec> specs, const Owner& fresh,
                    std::span<const Ancestor> ancestors, const WaitPolicy& policy, const Clock& clock, Rng& rng,
                    StopToken stop, WaitObserver& onlooker)
{
  for (const Ancestor& ancestor : ancestors) {
    const Hold nested = Hold::nested_in(ancestor.owner, rng, ::getpid());
    auto nesting = take_again(store, specs[ancestor.which], nested, policy.server_timeout, clock, stop);
    if (!nesting) {
      return nesting.error();
    }
    if (auto* taken = std::get_if<Taken>(&*nesting)) {
      taken->which = ancestor.which;
    }
    if (!std::holds_alternative<NotHeld>(*nesting)) {
      return entry_of(*std::move(nesting), nested);
    }
  }
  auto outcome = wait_and_acquire(store, specs, fresh, policy, clock, rng, stop, onlooker);
  if (!outcome) {
    return outcome.error();
  }
  const auto* taken = std::get_if<Taken>(&*outcome);
  const Hold hold(taken != nullptr ? taken->owner : fresh);
  return entry_of(*std::move(outcome), hold);
}

Result<Entry> enter(LockStore& store, const LockSpec& spec, const Owner& fresh, std::span<const Owner> ancestors,
                    const WaitPolicy& policy, const Clock& clock, Rng& rng, StopToken stop, WaitObserver& onlooker)
{
  std::vector<Ancestor> all;
  for (const Owner& ancestor : ancestors) {
    all.push_back({.which = 0, .owner = ancestor});
  }
  return enter(store, std::span(&spec, 1), fresh, all, policy, clock, rng, stop, onlooker);
}

}  // namespace rlock
