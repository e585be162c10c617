// SPDX-License-Identifier: Apache-2.0
// Rules about the limits of a server that a client of a lock may meet.
#include "base/defaults.h"
#include "base/duration.h"
#include "doctor/check.h"

namespace rlock::doctor {
namespace {

Diagnosis connections(const Facts& facts, Millis)
{
  const auto now = facts.info->number("connected_clients");
  const auto most = facts.info->number("maxclients");
  const auto rejected = facts.info->number("rejected_connections").value_or(0);
  if (!now) {
    return not_told();
  }
  const std::string found = std::to_string(*now) + (most ? " of " + std::to_string(*most) : "");
  const std::string advice = "raise maxclients: each waiter has two connections";
  if (most && *now * 5 >= *most * 4) {
    return warn(found, advice);
  }
  return rejected > 0 ? warn(found + ", and " + std::to_string(rejected) + " were refused since it started", advice)
                      : ok(found);
}

Diagnosis idle_timeout(const Facts& facts, Millis ttl)
{
  const auto seconds = facts.config->number("timeout");
  if (!seconds) {
    return not_told();
  }
  if (*seconds == 0) {
    return ok("none");
  }
  const Millis idle = std::chrono::seconds(*seconds);
  return idle > renewal_period(ttl) ? ok(show(idle))
                                    : warn(show(idle) + ": the server closes connections between two renewals",
                                           "set timeout 0, or more than " + show(renewal_period(ttl)));
}

Diagnosis slow_scripts(const Facts& facts, Millis ttl)
{
  const auto ms = facts.config->text("busy-reply-threshold") ? facts.config->number("busy-reply-threshold")
                                                             : facts.config->number("lua-time-limit");
  if (!ms) {
    return not_told();
  }
  return *ms > 0 && Millis(*ms) < renewal_period(ttl)
             ? ok("the server reports a slow script after " + show(Millis(*ms)))
             : warn(*ms <= 0 ? "the server never reports a slow script"
                             : "the server reports a slow script only after " + show(Millis(*ms)),
                    "set busy-reply-threshold below " + show(renewal_period(ttl)));
}

constexpr Check limit_rules[] = {
    {"connections", answers, Needs::info, connections},
    {"idle-timeout", answers, Needs::config, idle_timeout},
    {"slow-scripts", answers, Needs::config, slow_scripts},
};

}  // namespace

std::span<const Check> limit_checks() { return limit_rules; }

}  // namespace rlock::doctor
