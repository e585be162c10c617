// SPDX-License-Identifier: Apache-2.0
#include "runner/force.h"

#include <algorithm>
#include <variant>

namespace rlock {
namespace {

constexpr Millis look_every{20};
constexpr Millis remembered_after_grace{30'000};  // so that a holder that comes back late learns by whom

Limit answer_within(const ForceOrder& order, const Clock& clock, Stop stop)
{
  return {.deadline = clock.now() + order.server_timeout, .stop = stop};
}

// True when the holder let go within its grace. Asked as if it renewed its lock by nothing: of many holders inspect does
// not show all. No answer is no news: of a quorum, some may have it still when others have it no more.
Result<bool> lets_go(LockStore& store, const ForceOrder& order, const Clock& clock, Stop stop)
{
  const Instant over = clock.now() + order.grace;
  const LockSpec spec{.name = order.name, .mode = order.mode, .ttl = Millis{0}, .who = {}, .once = {}};
  for (;;) {
    const auto held = store.renew(spec, order.owner, answer_within(order, clock, stop));
    if (!held && !is_passing(held.error().fault)) {
      return held.error();
    }
    if (held && std::holds_alternative<NotOurs>(*held)) {
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
