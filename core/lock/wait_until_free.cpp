// SPDX-License-Identifier: Apache-2.0
#include "lock/wait_until_free.h"

#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <memory>
#include "base/defaults.h"
#include "lock/reach_server.h"
#include "lock/store.h"

namespace rlock {
namespace {

constexpr Millis after_failure{500};
constexpr Millis hand_over_pause{50};  // while a free lock has waiters
constexpr Millis foreign_pause{
    1000};  // a foreign holder may announce no release, as a fair lock of Redisson or ShedLock

// A lock that is handed from waiter to waiter is not free in between.
bool is_free(const LockState& state)
{
  return state.has_room() && std::ranges::none_of(state.waiting, &Waiter::is_connected);
}

// How long the lock stays as it is unless the store publishes a release.
Millis rest_after(const LockState& state)
{
  if (state.has_room()) {
    return hand_over_pause;
  }
  const bool is_foreign = std::ranges::any_of(state.holders, [](const Holder& holder) { return !holder.info; });
  const Millis longest = is_foreign ? foreign_pause : look_again_after;
  return state.ttl ? std::min(longest, *state.ttl + Millis{1}) : longest;
}

struct FreeWatch {
  LockStore& store;
  const LockName& name;
  const Owner subscriber;  // no client sends to it, but listen() needs an owner
  const WaitPolicy& policy;
  const Clock& clock;
  StopToken stop;
  std::unique_ptr<Listener> listener;
  bool server_has_answered = false;

  [[nodiscard]] CallLimits limit() const
  {
    const Instant now = clock.now();
    const bool bounded = server_has_answered && !waits_for_server(policy, now);
    return {.deadline = answer_deadline(now, policy.server_timeout, bounded ? policy.until : std::nullopt),
            .stop = stop};
  }

  // A connection that was cut during a pause tells nothing about the lock, so a second request follows.
  Result<LockState> look()
  {
    auto state = store.inspect(name, limit());
    if (!state && is_passing(state.error().code) && server_has_answered) {
      state = store.inspect(name, limit());
    }
    server_has_answered = server_has_answered || state;
    return state;
  }

  // False: not possible; then the caller has to poll.
  bool listen(const LockKind& kind)
  {
    if (!kind_of(kind).announces_release) {
      return false;
    }
    if (!listener) {
      const LockSpec sought{.name = name, .kind = kind, .ttl = {}, .who = {}, .once = {}};
      auto opened = store.listen({&sought, 1}, subscriber, limit());
      if (!opened || !(*opened)->hear_releases(0, limit())) {
        return false;
      }
      listener = *std::move(opened);
    }
    return true;
  }

  void rest(Instant end)
  {
    std::array<pollfd, 2> waits{pollfd{.fd = stop.fd(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = listener ? listener->fd() : -1, .events = POLLIN, .revents = 0}};
    ::poll(waits.data(), waits.size(), poll_timeout(clock.now(), end));
    if (waits[1].revents != 0 && !listener->heard(clock)) {
      listener.reset();
    }
  }
};

}  // namespace

Result<WaitResult> wait_until_free(LockStore& store, const LockName& name, const WaitPolicy& policy, const Clock& clock,
                                   Rng& rng, StopToken stop, ServerObserver& observer)
{
  const std::optional<Instant>& until = policy.until;
  FreeWatch watch{.store = store,
                  .name = name,
                  .subscriber = Owner::fresh(rng, ::getpid()),
                  .policy = policy,
                  .clock = clock,
                  .stop = stop,
                  .listener = nullptr};
  for (;;) {
    const bool was_listening = watch.listener != nullptr;
    const auto state = reach_server(policy, clock, rng, stop, observer, [&] { return watch.look(); });
    if (state && is_free(*state)) {
      return WaitResult::free;
    }
    if (stop.requested()) {
      return WaitResult::interrupted;
    }
    if (!state && (!is_passing(state.error().code) || !watch.server_has_answered)) {
      return state.error();
    }
    if (until && clock.now() >= *until) {
      return state ? Result(WaitResult::time_over) : Result<WaitResult>(state.error());
    }
    const bool is_listening = state && watch.listen(state->kind);
    if (is_listening && !was_listening) {
      continue;  // the lock may have become free before the subscription
    }
    const Millis undisturbed = state ? rest_after(*state) : look_again_after;
    const Instant end = clock.now() + std::min(is_listening ? look_again_after : after_failure, undisturbed);
    watch.rest(until ? std::min(end, *until) : end);
  }
}

}  // namespace rlock
