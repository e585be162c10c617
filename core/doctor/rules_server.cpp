// SPDX-License-Identifier: Apache-2.0
// Rules about this host.
#include "base/defaults.h"
#include "base/duration.h"
#include "base/text.h"
#include "doctor/rules.h"

namespace rlock {
namespace {

using doctor::Diagnosis;

Diagnosis kernel(const HostFacts& facts)
{
  if (facts.missing.empty()) {
    return doctor::ok("pidfd_open, PR_SET_PDEATHSIG, CLOCK_BOOTTIME and /proc are there");
  }
  std::string all = joined(facts.missing, ", ");
  return doctor::warn("missing: " + all,
                      "run on Linux 5.3 or later, with /proc, and let the container's seccomp profile allow these");
}

Diagnosis child_signal(const HostFacts& facts)
{
  return facts.child_signal_ignored
             ? doctor::warn("rlock's caller ignores SIGCHLD, and so do jobs: they do not see how their children end",
                            "start rlock with SIGCHLD as it is by default")
             : doctor::ok("SIGCHLD is as it is by default");
}

constexpr std::pair<std::string_view, Diagnosis (*)(const HostFacts&)> host_rules[] = {{"host", kernel},
                                                                                       {"sigchld", child_signal}};

}  // namespace

std::vector<Finding> check_host(const HostFacts& facts)
{
  std::vector<Finding> findings;
  for (const auto& [name, rule] : host_rules) {
    findings.push_back(doctor::finding_of(name, rule(facts)));
  }
  return findings;
}

}  // namespace rlock

namespace rlock::doctor {

// Rules about the limits of a server that a client of a lock may meet.
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

namespace rlock::doctor {

// Rules about what may make a server forget or refuse a lock.
namespace {

bool keeps_a_log(const Facts& facts) { return facts.info->number("aof_enabled").value_or(0) == 1; }

// A lock has a ttl, so most policies evict it among the first keys.
Diagnosis eviction(const Facts& facts, Millis)
{
  const auto policy = facts.info->text("maxmemory_policy");
  const auto most = facts.info->number("maxmemory");
  if (!policy || !most) {
    return not_told();
  }
  if (*policy == "noeviction") {
    return ok(*policy);
  }
  return *most == 0 ? ok(printable(*policy) + ", but no limit")
                    : fail(printable(*policy) + ": locks are among the first keys that it evicts",
                           "set maxmemory-policy noeviction, or use a server of its own for locks");
}

Diagnosis evicted(const Facts& facts, Millis)
{
  const auto keys = facts.info->number("evicted_keys");
  if (!keys) {
    return not_told();
  }
  return *keys == 0 ? ok("none since it started")
                    : warn(std::to_string(*keys) + " keys since it started; locks may have been among them",
                           "set maxmemory-policy noeviction");
}

Diagnosis memory(const Facts& facts, Millis)
{
  const auto used = facts.info->number("used_memory");
  const auto most = facts.info->number("maxmemory");
  if (!used || !most) {
    return not_told();
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

Diagnosis persistence(const Facts& facts, Millis)
{
  if (!facts.info->number("aof_enabled")) {
    return not_told();
  }
  const std::string advice = "set appendonly yes, with appendfsync everysec or always";
  if (keeps_a_log(facts)) {
    const std::string sync = facts.config->text("appendfsync").value_or("");
    return sync == "no" ? warn("appendonly, but the operating system decides when it is written", advice)
                        : ok("appendonly" + (sync.empty() ? "" : ", " + printable(sync)));
  }
  const bool snapshots = !facts.config->text("save").value_or("").empty();
  return warn(snapshots ? "snapshots alone: a crash forgets the locks of the last minutes"
                        : "none: a restart forgets every lock",
              advice);
}

Diagnosis disk(const Facts& facts, Millis)
{
  const auto log = facts.info->text("aof_last_write_status");
  const auto snapshot = facts.info->text("rdb_last_bgsave_status");
  if (!log && !snapshot) {
    return not_told();
  }
  const std::string advice = "see its log and the disk; it refuses to write while it cannot save (MISCONF)";
  if (log && *log != "ok") {
    return fail("the append-only file cannot be written", advice);
  }
  return snapshot && *snapshot != "ok" ? warn("the last snapshot failed", advice) : ok("its files are written");
}

Diagnosis restart(const Facts& facts, Millis ttl)
{
  const auto seconds = facts.info->number("uptime_in_seconds");
  if (!seconds) {
    return not_told();
  }
  const Millis up = std::chrono::seconds(*seconds);
  const std::string found = "it has run for " + show_roughly(up);
  return up < ttl && !keeps_a_log(facts)
             ? warn(found + ": locks from before may be forgotten, and their jobs still run",
                    "wait for " + show(ttl) + " after a restart")
             : ok(found);
}

Diagnosis replicas(const Facts& facts, Millis)
{
  const auto count = facts.info->number("connected_slaves");
  if (!count) {
    return not_told();
  }
  return *count == 0 ? ok("none")
                     : warn(std::to_string(*count) + ": a replica that takes over may not have heard of a lock",
                            "run --sync N waits for replicas; let the resource compare RLOCK_FENCE");
}

Diagnosis min_replicas(const Facts& facts, Millis)
{
  const auto wanted = facts.config->number("min-replicas-to-write");
  if (!wanted) {
    return not_told();
  }
  if (*wanted == 0) {
    return ok("none are required");
  }
  const std::int64_t good = facts.info->number("min_slaves_good_slaves").value_or(0);
  const std::string found = std::to_string(good) + " of " + std::to_string(*wanted) + " that the server requires";
  const std::string advice = "have one replica more than min-replicas-to-write: with fewer the server refuses to write";
  if (good < *wanted) {
    return fail(found, advice);
  }
  return good == *wanted ? warn(found + ": none to spare", advice) : ok(found);
}

constexpr Check memory_rules[] = {
    {"eviction", answers, Needs::info, eviction}, {"evicted", answers, Needs::info, evicted},
    {"memory", answers, Needs::info, memory},     {"persistence", answers, Needs::config, persistence},
    {"disk", answers, Needs::info, disk},         {"restart", answers, Needs::info, restart},
    {"replicas", answers, Needs::info, replicas}, {"min-replicas", answers, Needs::config, min_replicas},
};

}  // namespace

std::span<const Check> memory_checks() { return memory_rules; }

}  // namespace rlock::doctor
