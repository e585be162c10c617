// SPDX-License-Identifier: Apache-2.0
// Rules about what may make a server forget a lock, or refuse one.
#include "base/duration.h"
#include "base/text.h"
#include "doctor/verdict.h"

namespace rlock::doctor {
namespace {

bool keeps_a_log(const Facts& facts) { return facts.info->number("aof_enabled").value_or(0) == 1; }

}  // namespace

// A lock is what has a ttl: the first to go.
Verdict eviction(const Facts& facts, Millis)
{
  const auto policy = facts.info->text("maxmemory_policy");
  const auto most = facts.info->number("maxmemory");
  if (!policy || !most) {
    return untold();
  }
  if (*policy == "noeviction") {
    return ok(*policy);
  }
  return *most == 0 ? ok(printable(*policy) + ", but no limit")
                    : fail(printable(*policy) + ": locks are among the first keys that it throws away",
                           "set maxmemory-policy noeviction, or use a server of its own for locks");
}

Verdict evicted(const Facts& facts, Millis)
{
  const auto keys = facts.info->number("evicted_keys");
  if (!keys) {
    return untold();
  }
  return *keys == 0 ? ok("none since it began")
                    : warn(std::to_string(*keys) + " keys since it began; locks may have been among them",
                           "set maxmemory-policy noeviction");
}

Verdict memory(const Facts& facts, Millis)
{
  const auto used = facts.info->number("used_memory");
  const auto most = facts.info->number("maxmemory");
  if (!used || !most) {
    return untold();
  }
  if (*most == 0) {
    return ok("no limit");
  }
  const std::int64_t percent = *used * 100 / *most;
  const std::string found = std::to_string(percent) + "% of maxmemory";
  const std::string advice = "raise maxmemory: when it is full no lock can be taken";
  if (percent >= 100) {
    return fail(found, advice);
  }
  return percent >= 80 ? warn(found, advice) : ok(found);
}

Verdict persistence(const Facts& facts, Millis)
{
  if (!facts.info->number("aof_enabled")) {
    return untold();
  }
  const std::string advice = "set appendonly yes, with appendfsync everysec or always";
  if (keeps_a_log(facts)) {
    const std::string sync = facts.config->text("appendfsync").value_or("");
    return sync == "no" ? warn("appendonly, but the system says when it is written", advice)
                        : ok("appendonly" + (sync.empty() ? "" : ", " + printable(sync)));
  }
  const bool snapshots = !facts.config->text("save").value_or("").empty();
  return warn(snapshots ? "snapshots alone: a crash forgets the locks of the last minutes"
                        : "none: a restart forgets every lock",
              advice);
}

Verdict disk(const Facts& facts, Millis)
{
  const auto log = facts.info->text("aof_last_write_status");
  const auto snapshot = facts.info->text("rdb_last_bgsave_status");
  if (!log && !snapshot) {
    return untold();
  }
  const std::string advice = "see its log and the disk; while it cannot save it refuses to write (MISCONF)";
  if (log && *log != "ok") {
    return fail("the append-only file cannot be written", advice);
  }
  return snapshot && *snapshot != "ok" ? warn("the last snapshot failed", advice) : ok("what it saves is saved");
}

Verdict restart(const Facts& facts, Millis ttl)
{
  const auto seconds = facts.info->number("uptime_in_seconds");
  if (!seconds) {
    return untold();
  }
  const Millis up = std::chrono::seconds(*seconds);
  const std::string found = "it has run for " + show_roughly(up);
  return up < ttl && !keeps_a_log(facts)
             ? warn(found + ": locks from before may be forgotten, and their jobs still run",
                    "wait for " + show(ttl) + " after a restart")
             : ok(found);
}

Verdict replicas(const Facts& facts, Millis)
{
  const auto count = facts.info->number("connected_slaves");
  if (!count) {
    return untold();
  }
  return *count == 0 ? ok("none that could take over without a lock")
                     : warn(std::to_string(*count) + ": one that takes over may not have heard of a lock",
                            "run --sync N waits for replicas; let the resource compare RLOCK_FENCE");
}

Verdict min_replicas(const Facts& facts, Millis)
{
  const auto wanted = facts.config->number("min-replicas-to-write");
  if (!wanted) {
    return untold();
  }
  if (*wanted == 0) {
    return ok("none are asked for");
  }
  const std::int64_t good = facts.info->number("min_slaves_good_slaves").value_or(0);
  const std::string found = std::to_string(good) + " of " + std::to_string(*wanted) + " that it asks for";
  const std::string advice = "have one replica more than min-replicas-to-write: with less it refuses to write";
  if (good < *wanted) {
    return fail(found, advice);
  }
  return good == *wanted ? warn(found + ": none to spare", advice) : ok(found);
}

}  // namespace rlock::doctor
