// SPDX-License-Identifier: Apache-2.0
#include "lock/freedom.h"

#include <algorithm>
#include <array>
#include <memory>

#include <poll.h>
#include <unistd.h>

namespace rlock {
namespace {

constexpr Millis longest_rest{10'000};
constexpr Millis after_failure{500};

struct Watching {
  LockStore& store;
  const LockName& name;
  const Owner ears;  // nobody speaks to it, but listening needs a name
  Millis server_timeout;
  const Clock& clock;
  Stop stop;
  std::unique_ptr<Listener> listener;

  [[nodiscard]] Limit limit() const { return {.deadline = clock.now() + server_timeout, .stop = stop}; }

  // False where it could not be had; then we look more often.
  bool listen()
  {
    if (!listener) {
      auto opened = store.listen(name, ears, limit());
      if (!opened || !(*opened)->hear_releases(limit())) {
        return false;
      }
      listener = *std::move(opened);
    }
    return true;
  }

  void rest(Instant end)
  {
    std::array<pollfd, 2> waits{
        pollfd{.fd = stop.fd(), .events = POLLIN, .revents = 0},
        pollfd{.fd = listener ? listener->fd() : -1, .events = POLLIN, .revents = 0}};
    ::poll(waits.data(), waits.size(), poll_timeout(clock.now(), end));
    if (waits[1].revents != 0 && !listener->heard(clock)) {
      listener.reset();
    }
  }
};

bool may_pass(Fault fault) { return fault == Fault::unreachable || fault == Fault::unfit; }

}  // namespace

Result<Freedom> wait_until_free(LockStore& store, const LockName& name, std::optional<Instant> until,
                                Millis server_timeout, const Clock& clock, Rng& rng, Stop stop)
{
  Watching watching{store, name, Owner::fresh(rng, ::getpid()), server_timeout, clock, stop, nullptr};
  bool was_there = false;
  for (;;) {
    const bool had_ears = watching.listener != nullptr;
    const auto state = store.inspect(name, watching.limit());
    if (state && !state->held()) {
      return Freedom::free;
    }
    if (stop.requested()) {
      return Freedom::interrupted;
    }
    if (!state && (!may_pass(state.error().fault) || !was_there)) {
      return state.error();
    }
    if (until && clock.now() >= *until) {
      return state ? Result(Freedom::time_over) : Result<Freedom>(state.error());
    }
    was_there = true;
    const bool hears = state && watching.listen();
    if (hears && !had_ears) {
      continue;  // it may have become free before we listened
    }
    const Millis ttl = state && state->ttl ? *state->ttl + Millis{1} : longest_rest;
    const Instant end = clock.now() + std::min(hears ? longest_rest : after_failure, ttl);
    watching.rest(until ? std::min(end, *until) : end);
  }
}

}  // namespace rlock
