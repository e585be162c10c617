// SPDX-License-Identifier: Apache-2.0
#include "runner/force.h"

#include <algorithm>

namespace rlock {
namespace {

constexpr Millis look_every{20};
constexpr Millis remembered_after_grace{30'000};  // so that a holder that comes back late learns by whom

Limit answer_within(const ForceOrder& order, const Clock& clock, Stop stop)
{
  return {.deadline = clock.now() + order.server_timeout, .stop = stop};
}

bool held_by(const LockState& state, const Owner& owner)
{
  return std::any_of(state.holders.begin(), state.holders.end(),
                     [&](const Holder& holder) { return holder.owner == owner; });
}

// True when the holder let go within its grace.
Result<bool> lets_go(LockStore& store, const ForceOrder& order, const Clock& clock, Stop stop)
{
  const Instant over = clock.now() + order.grace;
  for (;;) {
    const auto state = store.inspect(order.name, answer_within(order, clock, stop));
    if (!state) {
      return state.error();
    }
    if (!held_by(*state, order.owner)) {
      return true;
    }
    if (clock.now() >= over) {
      return false;
    }
    if (clock.sleep_until(std::min(clock.now() + look_every, over), stop) == Wake::stopped) {
      return Error{Fault::interrupted, "interrupted"};
    }
  }
}

Result<ForceEnd> break_it(LockStore& store, const ForceOrder& order, const Clock& clock, Stop stop)
{
  const auto broken = store.break_lock(order.name, order.mode, order.owner, order.by, answer_within(order, clock, stop));
  if (!broken) {
    return broken.error();
  }
  if (const auto* done = std::get_if<ForceBroken>(&*broken)) {
    return ForceEnd{Broken{done->holder}};
  }
  if (const auto* changed = std::get_if<ForceChanged>(&*broken)) {
    return ForceEnd{*changed};
  }
  return ForceEnd{ForceFree{}};
}

}  // namespace

Result<ForceEnd> force_unlock(LockStore& store, const ForceOrder& order, const Clock& clock, Stop stop)
{
  if (order.grace <= Millis{0}) {
    return break_it(store, order, clock, stop);
  }
  const auto asked = store.ask(order.name, order.mode, order.owner, order.by, order.grace + remembered_after_grace,
                               answer_within(order, clock, stop));
  if (!asked) {
    return asked.error();
  }
  if (const auto* changed = std::get_if<ForceChanged>(&*asked)) {
    return ForceEnd{*changed};
  }
  if (std::holds_alternative<ForceFree>(*asked)) {
    return ForceEnd{ForceFree{}};
  }

  const Holder& holder = std::get<ForceAsked>(*asked).holder;
  const auto gone = lets_go(store, order, clock, stop);
  if (!gone) {
    return gone.error();
  }
  if (*gone) {
    return ForceEnd{LetGo{holder}};
  }
  auto broken = break_it(store, order, clock, stop);
  const bool just_in_time = broken && !std::holds_alternative<Broken>(*broken);
  return just_in_time ? ForceEnd{LetGo{holder}} : std::move(broken);
}

}  // namespace rlock
