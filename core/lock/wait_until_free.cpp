// SPDX-License-Identifier: Apache-2.0
#include "lock/wait_until_free.h"

#include "base/defaults.h"

#include <algorithm>
#include <array>
#include <memory>

#include <poll.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis after_failure{500};
constexpr Millis being_taken{50};  // between looks at a free lock for which somebody stands in line
constexpr Millis least_answer_time{40};

// A lock that goes from job to job is not free in between.
bool is_free(const LockState& state) { return state.has_room() && state.waiting.empty(); }

// How long nothing happens that would not be said.
Millis rest_after(const LockState& state)
{
  if (state.has_room()) {
    return being_taken;
  }
  return state.ttl ? std::min(look_again_after, *state.ttl + Millis{1}) : look_again_after;
}

struct Watching {
  LockStore& store;
  const LockName& name;
  const Owner ears;  // nobody speaks to it, but listening needs a name
  Millis server_timeout;
  std::optional<Instant> until;
  const Clock& clock;
  StopToken stop;
  std::unique_ptr<Listener> listener;
  bool server_was_there = false;

  // The first answer gets its full time whatever the patience; later ones no longer than that.
  [[nodiscard]] CallLimits limit() const
  {
    const Instant now = clock.now();
    const Instant full = now + server_timeout;
    const bool bounded = until && server_was_there;
    return {.deadline = bounded ? std::clamp(*until, std::min(now + least_answer_time, full), full) : full,
            .stop = stop};
  }

  // A connection that was cut while we slept says nothing about the lock: the second try tells.
  Result<LockState> look()
  {
    auto state = store.inspect(name, limit());
    if (!state && is_passing(state.error().code) && server_was_there) {
      state = store.inspect(name, limit());
    }
    server_was_there = server_was_there || state;
    return state;
  }

  // False where it could not be had; then we look more often.
  bool listen(const Mode& mode)
  {
    if (!kind_of(mode).announces_release) {
      return false;
    }
    if (!listener) {
      const LockSpec sought{.name = name, .mode = mode, .ttl = {}, .who = {}, .once = {}};
      auto opened = store.listen({&sought, 1}, ears, limit());
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

Result<WaitResult> wait_until_free(LockStore& store, const LockName& name, std::optional<Instant> until,
                                   Millis server_timeout, const Clock& clock, Rng& rng, StopToken stop)
{
  Watching watching{.store = store,
                    .name = name,
                    .ears = Owner::fresh(rng, ::getpid()),
                    .server_timeout = server_timeout,
                    .until = until,
                    .clock = clock,
                    .stop = stop,
                    .listener = nullptr};
  for (;;) {
    const bool had_ears = watching.listener != nullptr;
    const auto state = watching.look();
    if (state && is_free(*state)) {
      return WaitResult::free;
    }
    if (stop.requested()) {
      return WaitResult::interrupted;
    }
    if (!state && (!is_passing(state.error().code) || !watching.server_was_there)) {
      return state.error();
    }
    if (until && clock.now() >= *until) {
      return state ? Result(WaitResult::time_over) : Result<WaitResult>(state.error());
    }
    const bool hears = state && watching.listen(state->mode);
    if (hears && !had_ears) {
      continue;  // it may have become free before we listened
    }
    const Millis undisturbed = state ? rest_after(*state) : look_again_after;
    const Instant end = clock.now() + std::min(hears ? look_again_after : after_failure, undisturbed);
    watching.rest(until ? std::min(end, *until) : end);
  }
}

}  // namespace rlock
