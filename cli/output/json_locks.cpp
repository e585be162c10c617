// SPDX-License-Identifier: Apache-2.0
// The objects of locks: their state, holders, waiters, runs and events.
#include "base/clock.h"
#include "cli/output/json.h"
#include "cli/output/json_fields.h"
#include "lock/kept_runs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rlock::cli {
namespace {

Json fence_or_null(std::uint64_t fence) { return fence == 0 ? Json() : Json(fence); }
Json time_or_null(std::int64_t time_ms)
{
  const auto time = iso_utc(time_ms);
  return time ? Json(*time) : Json();
}

Json known_time(std::int64_t time_ms) { return time_ms == 0 ? Json() : time_or_null(time_ms); }

// Holders, waiters and events.
constexpr Fields<HolderInfo, 6> process_fields{{
    {{"host", "string or null", "host on which rlock runs"}, [](const HolderInfo& info) { return or_null(info.host); }},
    {{"pid", "integer or null",
      "process id on that host: of rlock; for acquire of the process that it watches, or else, as for freeze, of its "
      "caller"},
     [](const HolderInfo& info) { return or_null(info.pid); }},
    {{"user", "string or null", "user as whom rlock runs"}, [](const HolderInfo& info) { return or_null(info.user); }},
    {{"sudo_user", "string or null",
      "the person who acts as that user: SUDO_USER, else the login; null: the user itself"},
     [](const HolderInfo& info) { return or_null(info.sudo_user); }},
    {{"command", "string or null", "the command, with secrets masked, cut when it is long"},
     [](const HolderInfo& info) { return or_null(info.command); }},
    {{"label", "string or null", "the text of --label"}, [](const HolderInfo& info) { return or_null(info.label); }},
}};

// Holders and waiters.
constexpr Fields<HolderInfo, 1> since_fields{{
    {{"since", "time or null", "when the process took the lock or began to wait, by the clock of its host"},
     [](const HolderInfo& info) { return time_or_null(info.since_ms); }},
}};

// Holders, waiters and events.
constexpr Fields<HolderInfo, 1> reason_fields{{
    {{"freeze", "string or null", "of a freeze: why no job may start; null: it is a job"},
     [](const HolderInfo& info) { return or_null(info.freeze); }},
}};

constexpr std::string_view owner_meaning = "the same as token; goes away with the next release";

constexpr Fields<Holder, 3> owner_fields{{
    {{"token", "string", "owner id of the holder; rlock force-unlock takes it with --token"},
     [](const Holder& holder) -> Json { return holder.owner.text(); }},
    {{"owner", "string", owner_meaning}, [](const Holder& holder) -> Json { return holder.owner.text(); }},
    {{"count", "integer", "how many times the holder has entered the lock"},
     [](const Holder& holder) -> Json { return holder.count; }},
}};

constexpr Fields<Holder, 4> lease_of_holder_fields{{
    {{"lease_ms", "integer or null", "length of the lease, from one renewal on"},
     [](const Holder& holder) { return or_null(holder.info ? holder.info->lease.count() : 0); }},
    {{"auto", "boolean or null", "whether rlock renews the lease while the job runs"},
     [](const Holder& holder) { return holder.info ? Json(holder.info->automatic) : Json(); }},
    {{"revoked", "boolean",
      "whether force-unlock has revoked the hold: renewals are refused, and it ends with its ttl"},
     [](const Holder& holder) -> Json { return holder.revoked; }},
    {{"job_over", "boolean or null",
      "whether the job is over, and the lock stays taken for --min-hold or until the next attempt of rlock once"},
     [](const Holder& holder) { return holder.info ? Json(holder.info->over) : Json(); }},
}};

Json holder_json(const Holder& holder)
{
  const HolderInfo info = holder.info.value_or(HolderInfo{});
  Json json = object(holder, owner_fields);
  add(json, info, process_fields);
  add(json, info, since_fields);
  add(json, holder, lease_of_holder_fields);
  add(json, info, reason_fields);
  return json;
}

struct QueuePlace {
  std::size_t place;
  const Waiter& waiter;
};
constexpr Fields<QueuePlace, 5> place_fields{{
    {{"place", "integer", "place in the queue; the waiter at place 1 is next"},
     [](const QueuePlace& each) -> Json { return each.place; }},
    {{"token", "string", "owner id of the waiter; of a client of the store itself its name in the line of the lock"},
     [](const QueuePlace& each) -> Json { return each.waiter.owner.text(); }},
    {{"connected", "boolean",
      "false only in databases and consensus stores: it waits far back without a connection and asks every few "
      "seconds; if it was killed, that is not known yet"},
     [](const QueuePlace& each) -> Json { return each.waiter.is_connected; }},
    {{"priority", "integer", "--priority of the waiter; those with a smaller one stand behind it"},
     [](const QueuePlace& each) -> Json { return each.waiter.info ? each.waiter.info->priority : 0; }},
    {{"starved", "boolean", "whether more than a hundred later callers have joined in front of it by their priority"},
     [](const QueuePlace& each) -> Json { return each.waiter.is_starved(); }},
}};

Json waiting_json(const std::vector<Waiter>& waiting)
{
  std::size_t place = 0;
  return array(waiting, [&](const Waiter& waiter) {
    const HolderInfo info = waiter.info.value_or(HolderInfo{});
    Json json = object(QueuePlace{++place, waiter}, place_fields);
    add(json, info, process_fields);
    add(json, info, since_fields);
    add(json, info, reason_fields);
    return json;
  });
}

constexpr Fields<OnceSuccess, 2> once_fields{{
    {{"at", "time", "when the command succeeded, by the server's clock"},
     [](const OnceSuccess& once) -> Json { return iso_utc(once.at_ms).value_or(""); }},
    {{"for_ms", "integer", "how long the server remembers the success, counted from then"},
     [](const OnceSuccess& once) -> Json { return once.remembered_for.count(); }},
}};

constexpr Fields<PastRun, 10> run_fields{{
    {{"start", "time or null", "when the run began, by the server's clock; of a skipped one, when it came"},
     [](const PastRun& run) { return time_or_null(run.start_ms); }},
    {{"duration_ms", "integer or null", "how long it held the lock; of a skipped one, how long it waited"},
     [](const PastRun& run) { return run.duration ? Json(run.duration->count()) : Json(); }},
    {{"exit_code", "integer or null", "exit code of rlock; 128 + n: signal n killed the job"},
     [](const PastRun& run) { return run.exit_code ? Json(*run.exit_code) : Json(); }},
    {{"outcome", "string or null",
      "succeeded, failed, cancelled, lost, forced, timed_out, replaced (by a newer run with --latest) or skipped; "
      "null: the lock was released without a word about a job; without a duration: it was handed over to a waiter that "
      "has not confirmed that"},
     [](const PastRun& run) { return run.outcome ? Json(outcome_name(run)) : Json(); }},
    {{"fence", "integer or null", "fencing number of the run"},
     [](const PastRun& run) { return fence_or_null(run.fence); }},
    {{"times", "integer",
      "of a run that did not begin: how many alike of the same client in a row this one stands for"},
     [](const PastRun& run) -> Json { return run.times; }},
    {{"waited_ms", "integer", "how long it waited in the queue before it had the lock"},
     [](const PastRun& run) -> Json { return run.waited.count(); }},
    {{"by", "string or null",
      "of a run that did not begin: the holder of the lock at that time; of a replaced one, the newer run"},
     [](const PastRun& run) { return or_null(run.busy_by); }},
    {{"forced_by", "string or null", "the process that asked for the lock last (force-unlock)"},
     [](const PastRun& run) { return or_null(who_and_why(run.forced_by).by); }},
    {{"reason", "string or null", "why, as --reason says"},
     [](const PastRun& run) { return or_null(who_and_why(run.forced_by).reason); }},
}};

// A run, and the lock under which it ran.
struct RunOfLock {
  const LockName& name;
  const PastRun& run;
};
constexpr Fields<RunOfLock, 1> run_key_fields{{
    {{"key", "string", "name of the lock"}, [](const RunOfLock& each) -> Json { return each.name.text(); }},
}};

Json run_object(const LockName& name, const PastRun& run)
{
  Json json = object(RunOfLock{name, run}, run_key_fields);
  add(json, run, run_fields);
  add(json, run.info.value_or(HolderInfo{}), process_fields);
  return json;
}

Json ttl_of(const LockState& state) { return state.held() ? or_null(state.ttl) : Json(0); }

std::string_view format_of(const LockState& state)
{
  return state.beside != NativeFormat::none               ? name_of(state.beside)
         : std::holds_alternative<StringLock>(state.kind) ? "string"
                                                          : "redisson";
}

std::string_view mode_of(const LockKind& kind)
{
  constexpr std::array<std::string_view, std::variant_size_v<LockKind>> modes{"plain", "shared", "exclusive", "permits",
                                                                              "plain"};
  return modes[kind.index()];
}

Json limit_of(const LockState& state)
{
  const auto* permits = std::get_if<Permits>(&state.kind);
  return or_null(permits != nullptr ? std::int64_t{permits->limit} : 0);
}

constexpr JsonField ttl_documented{"ttl_ms", "integer or null",
                                   "time until the lock expires unless it is renewed; 0: the lock is free; null: it "
                                   "never expires by itself, or its end is unknown"};

// A freeze, and the ttl of its lock; nullopt: unknown.
struct ShownFreeze {
  const HolderInfo& info;
  std::optional<Millis> left;
  [[nodiscard]] std::int64_t until_ms() const { return end_of_freeze_ms(info, left, wall_clock_ms()); }
};
constexpr Fields<ShownFreeze, 5> freeze_fields{{
    {{"by", "string or null", "who: ann, or ann as root"},
     [](const ShownFreeze& freeze) { return or_null(user_text(freeze.info)); }},
    {{"host", "string or null", "on which host"}, [](const ShownFreeze& freeze) { return or_null(freeze.info.host); }},
    {{"since", "time or null", "when the freeze took effect"},
     [](const ShownFreeze& freeze) { return time_or_null(freeze.until_ms() - freeze.info.lease.count()); }},
    {{"until", "time or null", "when it ends"},
     [](const ShownFreeze& freeze) { return time_or_null(freeze.until_ms()); }},
    {{"reason", "string or null", "why: the text of --reason"},
     [](const ShownFreeze& freeze) { return or_null(freeze.info.freeze); }},
}};

struct FrozenLock {
  const LockName& name;
  std::optional<ShownFreeze> freeze;
  bool thawed;
};
constexpr Fields<FrozenLock, 3> frozen_lock_fields{{
    {{"key", "string", "name of the lock"}, [](const FrozenLock& lock) -> Json { return lock.name.text(); }},
    {{"frozen", "freeze or null", "the freeze; of thaw, the one that ended; null: the lock is not frozen"},
     [](const FrozenLock& lock) { return lock.freeze ? object(*lock.freeze, freeze_fields) : Json(); }},
    {{"thawed", "boolean", "whether thaw has ended the freeze"},
     [](const FrozenLock& lock) -> Json { return lock.thawed; }},
}};

constexpr Fields<LockState, 17> lock_fields{{
    {{"key", "string", "name of the lock; on Redis it is the key"},
     [](const LockState& state) -> Json { return state.name.text(); }},
    {{"held", "boolean", "whether the lock is held"}, [](const LockState& state) -> Json { return state.held(); }},
    {{"format", "string", "layout on the server, as --format names it"},
     [](const LockState& state) -> Json { return format_of(state); }},
    {{"mode", "string", "how it is held: plain, shared, exclusive or permits"},
     [](const LockState& state) -> Json { return mode_of(state.kind); }},
    {{"limit", "integer or null", "number of permits; null in other modes, or when the server does not know it"},
     limit_of},
    {ttl_documented, ttl_of},
    {{"fence", "integer or null", "the last fencing number that the server gave out for the lock"},
     [](const LockState& state) { return fence_or_null(state.fence); }},
    {{"holders", "array of holder", "the holders; empty when the lock is free"},
     [](const LockState& state) { return array(state.holders, holder_json); }},
    {{"waiting", "array of waiter", "the queue, the next waiter first"},
     [](const LockState& state) { return waiting_json(state.waiting); }},
    {{"last_run", "run or null", "the last run that is over, a skipped one only where no other is known"},
     [](const LockState& state) {
       const PastRun* const run = last_run(state);
       return run != nullptr ? run_object(state.name, *run) : Json();
     }},
    {{"once", "once or null", "the success that rlock once remembers under the key"},
     [](const LockState& state) { return state.once ? object(*state.once, once_fields) : Json(); }},
    {{"every_ms", "integer or null", "how often a run is expected to succeed (--every)"},
     [](const LockState& state) { return or_null(summary_of(state).every); }},
    {{"last_success", "time or null",
      "when the last run that succeeded ended, as far as the server knows; list without --all reads the end of the "
      "event log only"},
     [](const LockState& state) { return known_time(summary_of(state).last_success_ms); }},
    {{"last_failure", "time or null", "when the last run ended that history --failed shows"},
     [](const LockState& state) { return known_time(summary_of(state).last_failure_ms); }},
    {{"skips", "integer", "how many of the runs that the server knows did not begin, because the lock was busy"},
     [](const LockState& state) -> Json { return summary_of(state).skips; }},
    {{"overdue", "boolean or null", "whether no run has succeeded for longer than every_ms; null: without --every"},
     [](const LockState& state) {
       const RunSummary summary = summary_of(state);
       return summary.every ? Json(overdue_since(summary, wall_clock_ms()).has_value()) : Json();
     }},
    {{"frozen", "freeze or null", "the freeze that holds the lock (rlock freeze); null: a job holds it, or it is free"},
     [](const LockState& state) {
       const HolderInfo* const freeze = freeze_of(state);
       return freeze != nullptr ? object(ShownFreeze{*freeze, state.ttl}, freeze_fields) : Json();
     }},
}};

constexpr Fields<ShownPool, 5> pool_fields{{
    {{"key", "string", "KEY: its locks are KEY:NAME"}, [](const ShownPool& shown) -> Json { return shown.pool.key; }},
    {{"size", "integer", "how many locks it has"}, [](const ShownPool& shown) -> Json { return shown.pool.size; }},
    {{"names", "array of string", "their names; empty: they are too long for the record of a holder"},
     [](const ShownPool& shown) {
       return array(shard_names(shown.pool), [](const std::string& name) -> Json { return name; });
     }},
    {{"free", "integer or null", "how many are free; null: not all of its locks were asked for"},
     [](const ShownPool& shown) { return shown.is_counted ? Json(shown.pool.size - shown.held) : Json(); }},
    {{"waiting", "integer or null", "how many callers wait for any of them; null: as with free"},
     [](const ShownPool& shown) { return shown.is_counted ? Json(shown.waiting.size()) : Json(); }},
}};

struct PooledLock {
  const LockState& state;
  const std::vector<ShownPool>& pools;
};

// The pool that has the name of the lock has no lock of that name.
Json pool_json(const PooledLock& lock)
{
  const auto own = pool_of(lock.state);
  const std::string& key = own ? own->key : lock.state.name.text();
  const auto counted = std::ranges::find_if(lock.pools, [&](const ShownPool& each) { return each.pool.key == key; });
  if (counted != lock.pools.end()) {
    return object(*counted, pool_fields);
  }
  return own ? object(ShownPool{.pool = *own, .is_counted = false}, pool_fields) : Json();
}

constexpr Fields<PooledLock, 1> pooled_fields{{
    {{"pool", "pool or null",
      "the locks of --shards of which it is one, or which have its name: then only this field counts; null: it is no "
      "shard"},
     pool_json},
}};

constexpr Fields<LockState, 2> ttl_fields{{
    {{"key", "string", "name of the lock"}, [](const LockState& state) -> Json { return state.name.text(); }},
    {ttl_documented, ttl_of},
}};

struct Lease {
  const LockName& name;
  const Hold& hold;
  std::uint64_t fence;
  std::optional<Millis> ttl;
  const std::optional<Shard>& shard;
};
constexpr Fields<Lease, 6> lease_fields{{
    {{"key", "string", "name of the lock; with --shards, of the one that was taken"},
     [](const Lease& lease) -> Json { return lease.name.text(); }},
    {{"token", "string", "token of the hold, for rlock renew, check and release"},
     [](const Lease& lease) -> Json { return lease.hold.token(); }},
    {{"fence", "integer or null", "fencing number of the hold; null where others may hold the lock, too"},
     [](const Lease& lease) { return fence_or_null(lease.fence); }},
    {{"ttl_ms", "integer or null", "time until the lock expires unless it is renewed; null where it is not known"},
     [](const Lease& lease) { return or_null(lease.ttl); }},
    {{"shard", "integer or null", "number of the shard; null without --shards; check and renew know it by RLOCK_SHARD"},
     [](const Lease& lease) { return lease.shard ? Json(lease.shard->number) : Json(); }},
    {{"shard_name", "string or null", "its name; null without --shards, or when the shards have numbers"},
     [](const Lease& lease) { return or_null(lease.shard ? lease.shard->name : ""); }},
}};

struct ForceOutcome {
  bool broken;
  Json how;
  Json holder;
};
struct ForceOutcomeOf {
  ForceOutcome operator()(const ReleasedByHolder& end) const { return {true, "released", holder_json(end.holder)}; }
  ForceOutcome operator()(const ForceExpired& end) const
  {
    Holder holder = end.holder;
    holder.revoked = end.revoked;
    return {true, "expired", holder_json(holder)};
  }
  ForceOutcome operator()(const Broken& end) const { return {true, "broken", holder_json(end.holder)}; }
  ForceOutcome operator()(const ForceChanged& end) const { return {false, nullptr, holder_json(end.holder)}; }
  ForceOutcome operator()(const StillStopping& end) const { return {false, nullptr, holder_json(end.holder)}; }
  ForceOutcome operator()(const ForceFree&) const { return {false, nullptr, nullptr}; }
};
struct ForcedLock {
  const LockName& name;
  ForceOutcome outcome;
  std::string_view reason;
};
constexpr Fields<ForcedLock, 5> force_fields{{
    {{"key", "string", "name of the lock"}, [](const ForcedLock& lock) -> Json { return lock.name.text(); }},
    {{"broken", "boolean", "whether the lock was taken from its holder"},
     [](const ForcedLock& lock) -> Json { return lock.outcome.broken; }},
    {{"how", "string or null",
      "released: the holder stopped its job and released; expired: renewals were refused until the lease ended; "
      "broken: the lock was deleted, and its job may still run; null: it was not taken; a holder that still stops its "
      "job will release it"},
     [](const ForcedLock& lock) { return lock.outcome.how; }},
    {{"holder", "holder or null", "the holder that lost the lock, or the one that has it; null: it was free"},
     [](const ForcedLock& lock) { return lock.outcome.holder; }},
    {{"reason", "string or null", "the text of --reason"}, [](const ForcedLock& lock) { return or_null(lock.reason); }},
}};

constexpr Fields<ShownEvent, 13> event_fields{{
    {{"key", "string", "name of the lock"}, [](const ShownEvent& shown) -> Json { return shown.name.text(); }},
    {{"time", "time", "when it happened, by the server's clock"},
     [](const ShownEvent& shown) -> Json { return iso_utc(shown.event.time_ms).value_or(""); }},
    {{"event", "string",
      "acquired, released, handed_over, renewed_late, expired, lost, forced, skipped, frozen or thawed"},
     [](const ShownEvent& shown) -> Json { return name_of(shown.event.what); }},
    {{"token", "string", "owner id of the holder that the event is about; of handed_over, of the new holder"},
     [](const ShownEvent& shown) -> Json { return shown.event.owner.text(); }},
    {{"owner", "string", owner_meaning}, [](const ShownEvent& shown) -> Json { return shown.event.owner.text(); }},
    {{"fence", "integer or null", "fencing number of that holder"},
     [](const ShownEvent& shown) { return fence_or_null(shown.event.fence); }},
    {{"by", "string or null",
      "the process that asked for the lock (force-unlock); of lost, the holder since then; of skipped, the holder, or "
      "the newer run that replaced it; of thawed, who ended the freeze, or null: its time was over"},
     [](const ShownEvent& shown) { return or_null(who_and_why(shown.event.by).by); }},
    {{"reason", "string or null", "why that process asked, as --reason of force-unlock says"},
     [](const ShownEvent& shown) { return or_null(who_and_why(shown.event.by).reason); }},
    {{"from", "string or null", "handed_over: owner id of the holder before"},
     [](const ShownEvent& shown) { return or_null(shown.event.from); }},
    {{"left_ms", "integer or null", "renewed_late: how much of the lease was left"},
     [](const ShownEvent& shown) {
       return shown.event.what == LockEvent::What::renewed_late ? Json(shown.event.left.count()) : Json();
     }},
    {{"exit_code", "integer or null", "released, handed_over: exit code of the run that is over"},
     [](const ShownEvent& shown) { return shown.event.exit_code ? Json(*shown.event.exit_code) : Json(); }},
    {{"outcome", "string or null",
      "released, handed_over: as in a run; unused: no job ran under the hold that is over"},
     [](const ShownEvent& shown) { return shown.event.outcome ? Json(name_of(*shown.event.outcome)) : Json(); }},
    {{"times", "integer or null", "skipped: how many such runs of the same client in a row there were"},
     [](const ShownEvent& shown) {
       return shown.event.what == LockEvent::What::skipped ? Json(shown.event.times) : Json();
     }},
}};

struct ForgottenSuccess {
  const LockName& name;
  bool forgotten;
  Forgotten rest;
};
constexpr Fields<ForgottenSuccess, 4> forget_fields{{
    {{"key", "string", "name of the lock"},
     [](const ForgottenSuccess& success) -> Json { return success.name.text(); }},
    {{"forgotten", "boolean", "false: there was no success to forget"},
     [](const ForgottenSuccess& success) -> Json { return success.forgotten; }},
    {{"history", "boolean", "false: there were no events and runs to forget, or the lock is held"},
     [](const ForgottenSuccess& success) -> Json { return success.rest.runs; }},
    {{"permits", "boolean", "false: there was no number of permits to forget, or a permit is held"},
     [](const ForgottenSuccess& success) -> Json { return success.rest.permits; }},
}};

}  // namespace

std::vector<JsonObject> lock_objects()
{
  return {
      {"lock", "one lock", {"status", "list", "watch"}, documented(lock_fields, pooled_fields)},
      {"pool", "the locks of --shards", {}, documented(pool_fields)},
      {"holder",
       "one holder of a lock",
       {},
       documented(owner_fields, process_fields, since_fields, lease_of_holder_fields, reason_fields)},
      {"waiter", "one process that waits", {}, documented(place_fields, process_fields, since_fields, reason_fields)},
      {"run", "one run that is over", {"history"}, documented(run_key_fields, run_fields, process_fields)},
      {"once", "a success that rlock once remembers", {}, documented(once_fields)},
      {"freeze", "why no job starts under a lock", {}, documented(freeze_fields)},
      {"frozen lock", "one lock that was frozen or thawed", {"freeze", "thaw"}, documented(frozen_lock_fields)},
      {"ttl", "how long a lock still lasts", {"ttl"}, documented(ttl_fields)},
      {"lease", "a lock that the caller holds", {"acquire", "renew", "check"}, documented(lease_fields)},
      {"forced lock", "how force-unlock ended for one holder", {"force-unlock"}, documented(force_fields)},
      {"event", "one event of a lock", {"events"}, documented(event_fields, process_fields, reason_fields)},
      {"forgotten success", "what forget did", {"forget"}, documented(forget_fields)},
  };
}

std::string status_json(const LockState& state, const std::vector<ShownPool>& pools)
{
  Json json = object(state, lock_fields);
  add(json, PooledLock{state, pools}, pooled_fields);
  return one_line(json);
}

std::string freeze_json(const LockName& name, const std::optional<HolderInfo>& freeze, std::optional<Millis> left,
                        bool thawed)
{
  const auto shown = freeze ? std::optional(ShownFreeze{*freeze, left}) : std::nullopt;
  return line_of(FrozenLock{.name = name, .freeze = shown, .thawed = thawed}, frozen_lock_fields);
}

std::string run_json(const LockName& name, const PastRun& run) { return one_line(run_object(name, run)); }

std::string ttl_json(const LockState& state) { return line_of(state, ttl_fields); }

std::string lease_json(const LockName& name, const Hold& hold, std::uint64_t fence, std::optional<Millis> ttl,
                       const std::optional<Shard>& shard)
{
  return line_of(Lease{.name = name, .hold = hold, .fence = fence, .ttl = ttl, .shard = shard}, lease_fields);
}

std::string force_json(const LockName& name, const ForceEnd& end, std::string_view reason)
{
  return line_of(ForcedLock{.name = name, .outcome = std::visit(ForceOutcomeOf{}, end), .reason = reason},
                 force_fields);
}

std::string event_json(const ShownEvent& shown)
{
  Json json = object(shown, event_fields);
  const HolderInfo info = shown.event.info.value_or(HolderInfo{});
  add(json, info, process_fields);
  add(json, info, reason_fields);
  return one_line(json);
}

std::string forget_json(const LockName& name, bool forgotten, const Forgotten& rest)
{
  return line_of(ForgottenSuccess{.name = name, .forgotten = forgotten, .rest = rest}, forget_fields);
}

}  // namespace rlock::cli
