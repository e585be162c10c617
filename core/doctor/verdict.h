// SPDX-License-Identifier: Apache-2.0
// How the rules speak. Private to doctor.
#pragma once

#include "doctor/facts.h"
#include "doctor/finding.h"

#include <string>
#include <utility>

namespace rlock::doctor {

// A Finding without the name of its check.
struct Verdict {
  Health status;
  std::string found;
  std::string advice;
};

inline Verdict ok(std::string found) { return {Health::ok, std::move(found), {}}; }
inline Verdict warn(std::string found, std::string advice)
{
  return {Health::warn, std::move(found), std::move(advice)};
}
inline Verdict fail(std::string found, std::string advice)
{
  return {Health::fail, std::move(found), std::move(advice)};
}
inline Verdict not_permitted(std::string_view what)
{
  return {Health::unknown, "not permitted", "ask somebody who may " + std::string(what)};
}
inline Verdict untold() { return {Health::unknown, "the server does not tell", {}}; }

// A rule is asked only when what it needs has been told: facts.info, or facts.config and facts.info.
using Rule = Verdict (*)(const Facts&, Millis ttl);

// What a client meets.
Verdict access(const Facts& facts, Millis ttl);
Verdict round_trip(const Facts& facts, Millis ttl);
Verdict clock(const Facts& facts, Millis ttl);
Verdict lock(const Facts& facts, Millis ttl);
Verdict messages(const Facts& facts, Millis ttl);
Verdict eavesdroppers(const Facts& facts, Millis ttl);
Verdict version(const Facts& facts, Millis ttl);
Verdict role(const Facts& facts, Millis ttl);
Verdict loading(const Facts& facts, Millis ttl);
Verdict connections(const Facts& facts, Millis ttl);
Verdict idle_timeout(const Facts& facts, Millis ttl);
Verdict slow_scripts(const Facts& facts, Millis ttl);

// Who leads to it, or shares its keys. Asked only where there are such.
Verdict certificate(const Facts& facts, Millis ttl);
Verdict sentinels(const Facts& facts, Millis ttl);
Verdict fail_over(const Facts& facts, Millis ttl);
Verdict master(const Facts& facts, Millis ttl);
Verdict cluster(const Facts& facts, Millis ttl);
Verdict spares(const Facts& facts, Millis ttl);
Verdict coverage(const Facts& facts, Millis ttl);
Verdict shard_pubsub(const Facts& facts, Millis ttl);

// What may make it forget a lock.
Verdict eviction(const Facts& facts, Millis ttl);
Verdict evicted(const Facts& facts, Millis ttl);
Verdict memory(const Facts& facts, Millis ttl);
Verdict persistence(const Facts& facts, Millis ttl);
Verdict disk(const Facts& facts, Millis ttl);
Verdict restart(const Facts& facts, Millis ttl);
Verdict replicas(const Facts& facts, Millis ttl);
Verdict min_replicas(const Facts& facts, Millis ttl);

}  // namespace rlock::doctor
