// SPDX-License-Identifier: Apache-2.0
#include "lock/reentry.h"

#include "lock/lease_budget.h"
#include "lock/reach_server.h"
#include "lock/store.h"

#include <algorithm>

#include <unistd.h>

namespace rlock {
namespace {

constexpr int most_tries = 3;  // if each grant comes too late

void give_back(LockStore& store, const LockSpec& spec, const Hold& hold, Millis server_timeout, const Clock& clock)
{
  const CallLimits limit{.deadline = clock.now() + std::min(give_back_timeout, server_timeout),
                         .stop = StopToken::never()};
  [[maybe_unused]] const auto released = store.release(spec, hold, {.result = {.outcome = Outcome::unused}}, limit);
}

Result<ReentryOutcome> failed(const Error& error)
{
  return error.code == ErrorCode::interrupted ? Result<ReentryOutcome>(Interrupted{}) : Result<ReentryOutcome>(error);
}

template <typename AnyOutcome>
EnterOutcome enter_outcome_of(AnyOutcome outcome, const Hold& hold)
{
  if (auto* taken = std::get_if<Taken>(&outcome)) {
    return Entered{.hold = hold, .taken = std::move(*taken)};
  }
  if (const auto* done = std::get_if<AlreadyDone>(&outcome)) {
    return *done;
  }
  if constexpr (std::is_same_v<AnyOutcome, WaitOutcome>) {
    if (const auto* timed_out = std::get_if<TimedOut>(&outcome)) {
      return *timed_out;
    }
  }
  return Interrupted{};
}

}  // namespace

// The half-lease rule holds here too; a repeated request adds no second hold.
Result<ReentryOutcome> reenter_lock(LockStore& store, const LockSpec& spec, const Hold& hold, Millis server_timeout,
                                    const Clock& clock, StopToken stop)
{
  for (int i = 0; i < most_tries; ++i) {
    const Instant sent_at = clock.now();
    const auto answer = store.reenter(spec, hold, {.deadline = sent_at + server_timeout, .stop = stop});
    if (!answer) {
      give_back(store, spec, hold, server_timeout, clock);
      return failed(answer.error());
    }
    if (const auto* lost = std::get_if<NotHeld>(&*answer)) {
      return ReentryOutcome{*lost};
    }
    if (const auto* done = std::get_if<AlreadyDone>(&*answer)) {
      return ReentryOutcome{*done};
    }
    const auto replicated = store.await_replicas(spec, {.deadline = sent_at + server_timeout, .stop = stop});
    if (!replicated) {
      give_back(store, spec, hold, server_timeout, clock);
      return failed(replicated.error());
    }
    const auto& granted = std::get<Granted>(*answer);
    if (LeaseBudget(granted.lease).may_begin(clock.now())) {
      return ReentryOutcome{
          Taken{.which = 0, .owner = hold.owner, .grant = granted, .is_claim = false, .listener = nullptr}};
    }
  }
  give_back(store, spec, hold, server_timeout, clock);
  return too_slow();
}

Result<EnterOutcome> enter(LockStore& store, std::span<const LockSpec> specs, const Owner& fresh,
                           std::span<const Ancestor> ancestors, const WaitPolicy& policy, const Clock& clock, Rng& rng,
                           StopToken stop, WaitObserver& observer)
{
  for (const Ancestor& ancestor : ancestors) {
    std::optional<Hold> nested;  // a fresh one for each attempt
    auto reentered = reach_server(policy, clock, rng, stop, observer, [&] {
      nested = Hold::nested_in(ancestor.owner, rng, ::getpid());
      return reenter_lock(store, specs[ancestor.which], *nested, policy.server_timeout, clock, stop);
    });
    if (!reentered) {
      return reentered.error().code == ErrorCode::interrupted ? Result<EnterOutcome>(Interrupted{}) : reentered.error();
    }
    if (auto* taken = std::get_if<Taken>(&*reentered)) {
      taken->which = ancestor.which;
    }
    if (!std::holds_alternative<NotHeld>(*reentered)) {
      return enter_outcome_of(*std::move(reentered), *nested);
    }
  }
  ASSIGN_OR_RETURN(auto outcome, wait_and_acquire(store, specs, fresh, policy, clock, rng, stop, observer));
  const auto* taken = std::get_if<Taken>(&outcome);
  const Hold hold(taken != nullptr ? taken->owner : fresh);
  return enter_outcome_of(std::move(outcome), hold);
}

}  // namespace rlock
