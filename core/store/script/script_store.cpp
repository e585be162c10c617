// SPDX-License-Identifier: Apache-2.0
#include "store/script/script_store.h"

#include <algorithm>
#include <array>
#include <vector>
#include "base/duration.h"
#include "base/text.h"
#include "lua/scripts.h"
#include "store/script/lock_keys.h"
#include "store/script/script_reply.h"

namespace rlock {
namespace {

std::string text_of(Millis duration) { return std::to_string(duration.count()); }

// How long, or from when, the success of another caller counts for this caller: SUCCESS_MAX_AGE of lua/verbs/acquire.lua.
std::string shared_for(const LockRequest& spec)
{
  if (spec.again || !spec.once) {
    return "0";
  }
  const auto& period = spec.period;
  return period
             ? std::to_string(period->begin_ms) + " " + std::to_string(period->next_ms) + " " + text_of(period->length)
             : text_of(*spec.once);
}

std::optional<ForceRequest> request_in(const ScriptReply& answer, std::size_t at)
{
  return answer.has(at) ? std::optional{ForceRequest{answer.text(at)}} : std::nullopt;
}

std::optional<ServerTime> time_in(const ScriptReply& answer, std::size_t at)
{
  constexpr auto latest = static_cast<std::uint64_t>(latest_time.count());
  return answer.has(at) ? std::optional{ServerTime{static_cast<std::int64_t>(std::min(answer.number(at), latest))}}
                        : std::nullopt;
}

std::string_view wait_mode(const LockRequest& spec, const AcquireOptions& options)
{
  return !options.queues ? "try" : spec.who.latest ? "latest" : !spec.who.freeze.empty() ? "first" : "wait";
}

// The renew script's argument.
std::string_view purpose_of(const RenewOptions& options)
{
  return options.stopping ? "stopping" : options.confirms ? "confirm" : "";
}

// {'granted', fence, count, agreed}.
Granted granted_in(const ScriptReply& answer, const LeaseTerm& lease)
{
  return {.fence = answer.number(1), .count = answer.integer(2), .lease = lease, .agreed = answer.integer(3) == 1};
}

std::string loss_in(const ScriptReply& answer)
{
  const auto loss = find_word(losses, answer.text(1));
  if (!loss) {
    return "the key now holds " + printable(content_of_key(answer.text(1)));
  }
  switch (*loss) {
    case Loss::none: break;
    case Loss::held:
      return "now held by " + describe({.owner = Owner::of(answer.text(2)), .count = 1, .info = answer.info(3)});
    case Loss::revoked: return "it was revoked, and ends with its ttl";
    case Loss::released: return "it was released, and what is left is another hold of its owner";
  }
  return expired_or_deleted;
}

// {'lost', what, owner, info, operator that requested the release, time}
NotHeld not_held(const ScriptReply& answer)
{
  return {.what = loss_in(answer),
          .forced = request_in(answer, 4),
          .at = time_in(answer, 5),
          .revoked = find_word(losses, answer.text(1)) == Loss::revoked};
}

std::array<std::string_view, 11> argv_of(const LockKeys& keys)
{
  return {keys.lock,    keys.fence,    keys.holder,     keys.force,  keys.events, keys.queue,
          keys.waiters, keys.reserved, keys.fair_queue, keys.second, keys.done};
}

// An attempt of a quorum that is taken back was no run.
RunResult result_of(const ReleaseOptions& options)
{
  return options.announced ? options.result : RunResult{.outcome = Outcome::unused};
}

Result<Release> release_of(const Result<Reply>& reply, const LockRequest& spec)
{
  if (!reply) {
    return reply.error();
  }
  const ScriptReply answer(*reply);
  if (answer.is("released")) {
    return Release{
        Released{.passed_on = answer.integer(1) > 0, .earlier = answer.integer(2) > 0, .untold = answer.text(3)}};
  }
  if (answer.is("still_held")) {
    return Release{StillHeld{answer.integer(1)}};
  }
  if (answer.is("left")) {
    return Release{Dequeued{}};
  }
  if (answer.is("lost")) {
    return Release{not_held(answer)};
  }
  return answer.unexpected(scripts_of(spec.kind).release, spec.name);
}

}  // namespace

// Every script gets the same keys, and the same five arguments before its own.
Result<Reply> ScriptStore::call(const Script& script, const LockName& name, const LockKind& kind, const Owner& owner,
                                std::initializer_list<std::string_view> args, const CallLimits& limit, bool reads_log,
                                NativeFormat beside)
{
  const LockKeys keys(name, kind);
  const std::string requested = requested_mode(kind);
  const auto key_argv = argv_of(keys);
  std::vector<std::string_view> words{owner.text(), keys.channel, keys.owner_channel, requested, among()};
  words.insert(words.end(), args.begin(), args.end());
  return m_host->run({.script = script, .keys = key_argv, .args = words, .reads_log = reads_log, .beside = beside},
                     limit);
}

ScriptCall ScriptStore::call_of(const Script& script, const LockName& name, const LockKind& kind, const Owner& owner,
                                std::initializer_list<std::string> args) const
{
  const LockKeys keys(name, kind);
  const auto words = argv_of(keys);
  ScriptCall call{script,
                  {words.begin(), words.end()},
                  {owner.text(), keys.channel, keys.owner_channel, requested_mode(kind), std::string(among())}};
  call.args.insert(call.args.end(), args.begin(), args.end());
  return call;
}

// A server that ends holds by its clock counts the whole ttl from the moment when it ran the script.
LeaseTerm ScriptStore::lease_of(const Owner& owner, Instant sent_at, Millis ttl) const
{
  return m_host->lease_of(owner).value_or(LeaseTerm{.from = sent_at, .length = ttl});
}

// A waiter with a presence keeps it by asking.
std::optional<Millis> ScriptStore::watch_in(const Owner& owner, const ScriptReply& busy) const
{
  const auto told = busy.integer(9) > 0 ? std::optional{busy.millis(9)} : std::nullopt;
  const auto lease = m_host->lease_of(owner);
  return lease ? std::min(told.value_or(lease->length), renewal_period(lease->length)) : told;
}

std::string_view ScriptStore::rights_check() const { return traits().checks_rights ? "" : "unchecked"; }

std::string_view ScriptStore::among() const { return traits().is_cluster ? "cluster" : ""; }

Result<Done> ScriptStore::await_replicas(const LockRequest& spec, const CallLimits& limit)
{
  return spec.sync.replicas == 0 ? Result(Done{}) : m_host->await_replicas(spec, limit);
}

Result<Attempt> ScriptStore::acquire(const LockRequest& spec, const Owner& owner, const AcquireOptions& options,
                                     const CallLimits& limit)
{
  const Script& script = scripts_of(spec.kind).acquire;
  const Instant sent_at = m_clock.now();
  const auto reply = call(script, spec.name, spec.kind, owner,
                          {owner.text(), text_of(spec.ttl), encode(spec.who), wait_mode(spec, options),
                           std::to_string(options.ticket), shared_for(spec), rights_check()},
                          limit, false, spec.beside);
  if (!reply) {
    return reply.error();
  }
  const ScriptReply answer(*reply);
  if (answer.is("granted")) {
    return Attempt{granted_in(answer, lease_of(owner, sent_at, spec.ttl))};
  }
  if (answer.is("done")) {
    return Attempt{AlreadyDone{answer.millis(1)}};
  }
  if (answer.is("replaced")) {
    return Attempt{Busy{.ttl = {}, .holder = {}, .replaced = Replaced{answer.info(1)}}};
  }
  if (!answer.is("busy")) {
    return answer.unexpected(script, spec.name);
  }
  const bool held = !answer.text(2).empty();
  return Attempt{Busy{.ttl = answer.ttl(1),
                      .holder = held ? std::optional{answer.holder(2)} : std::nullopt,
                      .waiters_ahead = static_cast<std::uint64_t>(answer.integer(5)),
                      .ticket = answer.number(6),
                      .silent = held && !kind_of(spec.kind).announces_release && !answer.has(4),
                      .again_in = answer.integer(7) > 0 ? std::optional{answer.millis(7)} : std::nullopt,
                      .watch_in = watch_in(owner, answer),
                      .at = traits().may_fail_over ? std::nullopt : time_in(answer, 8),
                      .tells_end = answer.integer(10) == 1}};
}

Result<ReentryResult> ScriptStore::reenter(const LockRequest& spec, const Hold& hold, const CallLimits& limit)
{
  const Script& script = scripts_of(spec.kind).acquire;
  const Instant sent_at = m_clock.now();
  const auto reply =
      call(script, spec.name, spec.kind, hold.owner,
           {hold.id, text_of(spec.ttl), encode(spec.who), "again", "0", shared_for(spec), rights_check()}, limit);
  if (!reply) {
    return reply.error();
  }
  const ScriptReply answer(*reply);
  if (answer.is("granted")) {
    return ReentryResult{granted_in(answer, lease_of(hold.owner, sent_at, spec.ttl))};
  }
  if (answer.is("done")) {
    return ReentryResult{AlreadyDone{answer.millis(1)}};
  }
  if (answer.is("lost")) {
    return ReentryResult{not_held(answer)};
  }
  return answer.unexpected(script, spec.name);
}

Result<DataAge> ScriptStore::marker(const MarkerNews& news, const CallLimits& limit)
{
  const std::array<std::string_view, 1> keys{marker_key};
  const std::string ttl = text_of(news.ttl);
  const std::string since = std::to_string(news.counts_since);
  const std::array<std::string_view, 2> args{ttl, since};
  const auto reply = m_host->run({.script = scripts::marker, .keys = keys, .args = args}, limit);
  if (!reply) {
    return reply.error();
  }
  if (reply->elements.size() != 4) {
    return Error{ErrorCode::internal, "the marker of a server of the quorum cannot be read"};
  }
  const ScriptReply answer(*reply);
  return DataAge{.age = answer.millis(0),
                 .longest_ttl = answer.millis(1),
                 .since = reply->elements[2].integer,
                 .sure = reply->elements[3].integer == 1};
}

// The place of a waiter that a message has missed is no whole number (MISSED in lua/lib/waiters.lua).
Result<bool> ScriptStore::is_queued(const LockRequest& spec, const Owner& owner, const CallLimits& limit)
{
  const std::string queue = LockKeys(spec.name, spec.kind).queue;
  const std::array<std::string_view, 3> argv{"ZSCORE", queue, owner.text()};
  const auto reply = m_host->command(spec.name, argv, limit);
  if (!reply) {
    return reply.error();
  }
  return reply->kind != Reply::Kind::nil && reply->text.find('.') == std::string::npos;
}

Result<Renewal> ScriptStore::renew(const LockRequest& spec, const Owner& owner, const RenewOptions& options,
                                   const CallLimits& limit)
{
  return renew_as(spec, owner, "", options, limit);
}

Result<Renewal> ScriptStore::renew_hold(const LockRequest& spec, const Hold& hold, const RenewOptions& options,
                                        const CallLimits& limit)
{
  return renew_as(spec, hold.owner, hold.id, options, limit);
}

// A ttl of 0 changes nothing. The server never shortens a ttl.
Result<Renewal> ScriptStore::renew_as(const LockRequest& spec, const Owner& owner, std::string_view hold,
                                      const RenewOptions& options, const CallLimits& limit)
{
  const Script& script = scripts_of(spec.kind).renew;
  const std::string ttl = text_of(options.only_checks ? Millis{0} : spec.ttl);
  const Instant sent_at = m_clock.now();
  const auto reply = call(script, spec.name, spec.kind, owner, {ttl, hold, purpose_of(options)}, limit);
  if (!reply) {
    return reply.error();
  }
  const ScriptReply answer(*reply);
  if (answer.is("kept")) {
    return Renewal{
        Renewed{.lease = options.only_checks ? std::nullopt : std::optional(lease_of(owner, sent_at, spec.ttl)),
                .forced = request_in(answer, 1),
                .at = time_in(answer, 2)}};
  }
  if (answer.is("lost")) {
    return Renewal{not_held(answer)};
  }
  return answer.unexpected(script, spec.name);
}

Result<bool> ScriptStore::raise_fence(const LockRequest& spec, const Owner& owner, std::uint64_t fence,
                                      const CallLimits& limit)
{
  const Script& script = scripts_of(spec.kind).raise;
  const auto reply = call(script, spec.name, spec.kind, owner, {std::to_string(fence)}, limit);
  if (!reply) {
    return reply.error();
  }
  const ScriptReply answer(*reply);
  if (answer.is("raised") || answer.is("lost")) {
    return answer.is("raised");
  }
  return answer.unexpected(script, spec.name);
}

Result<Release> ScriptStore::release(const LockRequest& spec, const Hold& hold, const ReleaseOptions& options,
                                     const CallLimits& limit)
{
  const auto reply =
      call(scripts_of(spec.kind).release, spec.name, spec.kind, hold.owner,
           {hold.id, std::to_string(options.announced ? m_release_subscriptions->load() : -1), text_of(options.keep),
            text_of(options.succeeded ? spec.once.value_or(Millis{0}) : Millis{0}), encode(result_of(options)),
            spec.who.history ? text_of(*spec.who.history) : "",
            (options.late || options.result.outcome == Outcome::lost) && hold.id == hold.owner.text() ? encode(spec.who)
                                                                                                      : "",
            options.ran > Millis{0} ? text_of(options.ran) : ""},
           limit);
  return release_of(reply, spec);
}

std::vector<Result<Release>> ScriptStore::release_each(std::span<const LockRequest* const> specs, const Owner& owner,
                                                       const CallLimits& limit)
{
  std::vector<ScriptCall> calls;
  const std::string subscriptions = std::to_string(m_release_subscriptions->load());
  for (const LockRequest* spec : specs) {
    calls.push_back(call_of(scripts_of(spec->kind).release, spec->name, spec->kind, owner,
                            {owner.text(), subscriptions, "0", "0", encode(RunResult{.outcome = Outcome::unused})}));
  }
  const auto replies = m_host->run_each(calls, limit);
  std::vector<Result<Release>> answers;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    answers.push_back(release_of(replies[i], *specs[i]));
  }
  return answers;
}

std::vector<Result<Reply>> ScriptHost::run_each(std::span<const ScriptCall> calls, const CallLimits& limit)
{
  std::vector<Result<Reply>> answers;
  for (const ScriptCall& call : calls) {
    const std::vector<std::string_view> keys(call.keys.begin(), call.keys.end());
    const std::vector<std::string_view> args(call.args.begin(), call.args.end());
    answers.push_back(run({.script = call.script, .keys = keys, .args = args, .reads_log = call.reads_log}, limit));
  }
  return answers;
}

namespace {

const KindScripts plain{scripts::plain_acquire, scripts::plain_renew, scripts::plain_release, scripts::plain_inspect,
                        scripts::plain_force,   scripts::plain_raise, scripts::plain_skip};
const KindScripts rw{scripts::rw_acquire, scripts::rw_renew, scripts::rw_release, scripts::rw_inspect,
                     scripts::rw_force,   scripts::rw_raise, scripts::rw_skip};
const KindScripts permits{scripts::permits_acquire, scripts::permits_renew, scripts::permits_release,
                          scripts::permits_inspect, scripts::permits_force, scripts::permits_raise,
                          scripts::permits_skip};
const KindScripts string{scripts::string_acquire, scripts::string_renew, scripts::string_release,
                         scripts::string_inspect, scripts::string_force, scripts::string_raise,
                         scripts::string_skip};

// The rows, in the order of LockKind's alternatives.
const std::array<ScriptedKind, std::variant_size_v<LockKind>> rows{{
    {plain, "", "", "redisson_lock__channel:"},
    {rw, reader_mode, "-rw", "redisson_rwlock:"},
    {rw, writer_mode, "-rw", "redisson_rwlock:"},
    {permits, "", "-permits", "redisson_sc:"},
    {string, "", "-string", ""},
}};

}  // namespace

const ScriptedKind& scripted_kind(const LockKind& kind) { return rows[kind.index()]; }

std::string requested_mode(const LockKind& kind)
{
  const auto* wanted = std::get_if<Permits>(&kind);
  return wanted != nullptr ? std::to_string(wanted->limit) : std::string(scripted_kind(kind).requested_mode);
}

}  // namespace rlock
