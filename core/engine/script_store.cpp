// SPDX-License-Identifier: Apache-2.0
#include "engine/script_store.h"

#include <algorithm>
#include <array>
#include <vector>
#include "base/duration.h"
#include "base/text.h"
#include "engine/lock_keys.h"
#include "engine/script_call.h"
#include "engine/script_reply.h"
#include "lua/scripts.h"

namespace rlock {
namespace {

std::string text_of(Millis duration) { return std::to_string(duration.count()); }

// How long, or from when, the success of another caller counts for this caller: Acquire::success_max_age.
std::string shared_for(const LockSpec& spec)
{
  if (spec.again || !spec.once) {
    return "0";
  }
  const auto& period = spec.period;
  return period
             ? std::to_string(period->begin_ms) + " " + std::to_string(period->next_ms) + " " + text_of(period->length)
             : text_of(*spec.once);
}

std::optional<ForceRequest> requested_by(const std::optional<std::string>& requester)
{
  return requester ? std::optional{ForceRequest{*requester}} : std::nullopt;
}

std::optional<ServerTime> time_of(const std::optional<std::uint64_t>& us)
{
  constexpr auto latest = static_cast<std::uint64_t>(latest_time.count());
  return us ? std::optional{ServerTime{static_cast<std::int64_t>(std::min(*us, latest))}} : std::nullopt;
}

calls::WaitMode wait_mode(const LockSpec& spec, const AcquireOptions& options)
{
  using enum calls::WaitMode;
  return !options.queues ? attempt : spec.who.latest ? latest : !spec.who.freeze.empty() ? first : wait;
}

calls::Tail<calls::JoinTerms> terms_of(const LockSpec& spec, const AcquireOptions& options, bool spares_connections)
{
  if (!options.queues || (!spec.max_waiting && spec.who.priority == 0)) {
    return {};
  }
  return calls::JoinTerms{.max_waiting = spec.max_waiting,
                          .listening = spares_connections ? std::optional(listening_waiters) : std::nullopt,
                          .priority = spec.who.priority};
}

Granted granted_by(const answers::Granted& answer, const LeaseTerm& lease)
{
  return {.fence = answer.fence, .count = answer.count, .lease = lease, .agreed = answer.agreed};
}

NotHeld not_held(const answers::Lost& answer)
{
  NotHeld lost{
      .cause = LossCause::gone, .detail = {}, .forced = requested_by(answer.requester), .at = time_of(answer.at)};
  const auto loss = find_word(losses, answer.what);
  if (!loss) {
    lost.cause = LossCause::other_content;
    lost.detail = content_of_key(answer.what);
    return lost;
  }
  switch (*loss) {
    case Loss::none: break;
    case Loss::held:
      lost.cause = LossCause::held;
      lost.detail = describe({.owner = Owner::of(answer.owner), .count = 1, .info = info_of(answer.info)});
      break;
    case Loss::revoked: lost.cause = LossCause::revoked; break;
    case Loss::released: lost.cause = LossCause::hold_released; break;
  }
  return lost;
}

Replaced replaced_by(const answers::Replaced& answer, const LockSpec& spec)
{
  return spec.who.freeze.empty() ? Replaced{.by = info_of(answer.by)}
                                 : Replaced{.by = std::nullopt, .freeze_ended_by = answer.by.value_or("")};
}

// An attempt of a quorum that is taken back was no run.
RunResult result_of(const ReleaseOptions& options)
{
  return options.announced ? options.result : RunResult{.outcome = Outcome::unused};
}

Result<Release> release_of(const VerbRequest& request, const Result<Reply>& reply)
{
  if (!reply) {
    return reply.error();
  }
  if (const auto released = answer_in<answers::Released>(*reply)) {
    return Release{
        Released{.passed_on = released->admitted > 0, .earlier = released->earlier, .untold = released->untold}};
  }
  if (const auto held = answer_in<answers::StillHeld>(*reply)) {
    return Release{StillHeld{held->count}};
  }
  if (is_answer<answers::Left>(*reply)) {
    return Release{Dequeued{}};
  }
  if (const auto lost = answer_in<answers::Lost>(*reply)) {
    return Release{not_held(*lost)};
  }
  return unexpected(request, *reply);
}

}  // namespace

// A server that ends holds by its clock counts the whole ttl from the moment when it ran the script.
LeaseTerm ScriptStore::lease_of(const Owner& owner, Instant sent_at, Millis ttl) const
{
  return m_host->lease_of(owner).value_or(LeaseTerm{.from = sent_at - m_host->time_behind(), .length = ttl});
}

// A waiter with a presence keeps it by asking.
std::optional<Millis> ScriptStore::watch_in(const Owner& owner, const answers::Busy& busy) const
{
  const auto told = busy.watch_in > Millis{0} ? busy.watch_in : std::nullopt;
  const auto lease = m_host->lease_of(owner);
  return lease ? std::min(told.value_or(lease->length), renewal_period(lease->length)) : told;
}

std::string ScriptStore::rights_check() const { return traits().checks_rights ? "" : "unchecked"; }

Result<Done> ScriptStore::await_replicas(const LockSpec& spec, const CallLimits& limit)
{
  return spec.sync.replicas == 0 ? Result(Done{}) : m_host->await_replicas(spec, limit);
}

Result<Attempt> ScriptStore::acquire(const LockSpec& spec, const Owner& owner, const AcquireOptions& options,
                                     const CallLimits& limit)
{
  const Instant sent_at = m_clock.now();
  const VerbRequest request{.lock = spec.name,
                            .kind = spec.kind,
                            .owner = owner,
                            .verb = calls::Acquire{.hold_id = owner.text(),
                                                   .ttl = spec.ttl,
                                                   .info = encode(spec.who),
                                                   .wait_mode = wait_mode(spec, options),
                                                   .ticket = options.ticket,
                                                   .success_max_age = shared_for(spec),
                                                   .rights = rights_check(),
                                                   .terms = terms_of(spec, options, traits().spares_connections)},
                            .beside = spec.beside};
  ASSIGN_OR_RETURN(const auto reply, m_host->run(request, limit));
  if (const auto granted = answer_in<answers::Granted>(reply)) {
    return Attempt{granted_by(*granted, lease_of(owner, sent_at, spec.ttl))};
  }
  if (const auto done = answer_in<answers::Done>(reply)) {
    return Attempt{AlreadyDone{done->ago}};
  }
  if (const auto replaced = answer_in<answers::Replaced>(reply)) {
    return Attempt{Busy{.ttl = {}, .holder = {}, .replaced = replaced_by(*replaced, spec)}};
  }
  const auto busy = answer_in<answers::Busy>(reply);
  if (!busy) {
    return unexpected(request, reply);
  }
  const bool held = !busy->owner.empty();
  return Attempt{Busy{.ttl = busy->ttl,
                      .holder = held ? std::optional{holder_of(*busy)} : std::nullopt,
                      .waiters_ahead = static_cast<std::uint64_t>(busy->place),
                      .ticket = busy->ticket,
                      .silent = held && !kind_of(spec.kind).announces_release && !busy->info,
                      .again_in = busy->again_in > Millis{0} ? busy->again_in : std::nullopt,
                      .watch_in = watch_in(owner, *busy),
                      .at = traits().may_fail_over ? std::nullopt : time_of(busy->at),
                      .tells_end = busy->tells_end,
                      .permits = number_of_permits(spec.kind),
                      .full = static_cast<std::uint64_t>(std::max<std::int64_t>(busy->full, 0))}};
}

Result<ReentryResult> ScriptStore::reenter(const LockSpec& spec, const Hold& hold, const CallLimits& limit)
{
  const Instant sent_at = m_clock.now();
  const VerbRequest request{.lock = spec.name,
                            .kind = spec.kind,
                            .owner = hold.owner,
                            .verb = calls::Acquire{.hold_id = hold.id,
                                                   .ttl = spec.ttl,
                                                   .info = encode(spec.who),
                                                   .wait_mode = calls::WaitMode::again,
                                                   .success_max_age = shared_for(spec),
                                                   .rights = rights_check()}};
  ASSIGN_OR_RETURN(const auto reply, m_host->run(request, limit));
  if (const auto granted = answer_in<answers::Granted>(reply)) {
    return ReentryResult{granted_by(*granted, lease_of(hold.owner, sent_at, spec.ttl))};
  }
  if (const auto done = answer_in<answers::Done>(reply)) {
    return ReentryResult{AlreadyDone{done->ago}};
  }
  if (const auto lost = answer_in<answers::Lost>(reply)) {
    return ReentryResult{not_held(*lost)};
  }
  return unexpected(request, reply);
}

Result<DataAge> ScriptStore::marker(const MarkerNews& news, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto reply,
                   m_host->run(ScriptCall{.script = scripts::marker,
                                          .keys = {std::string(marker_key)},
                                          .args = words_of(calls::Marker{.ttl = news.ttl, .since = news.counts_since})},
                               limit));
  answers::MarkerAge answer;
  if (reply.elements.size() != answer.size) {
    return Error{ErrorCode::internal, "the marker of a server of the quorum cannot be read"};
  }
  read_fields(reply.elements, 0, answer);
  return DataAge{.age = answer.age, .longest_ttl = answer.longest_ttl, .since = answer.since, .sure = answer.sure};
}

// The place of a waiter that a message has missed is no whole number (MISSED in lua/lib/waiters.lua).
Result<bool> ScriptStore::is_queued(const LockSpec& spec, const Owner& owner, const CallLimits& limit)
{
  const std::string queue = LockKeys(spec.name, spec.kind).queue;
  const std::array<std::string_view, 3> argv{"ZSCORE", queue, owner.text()};
  ASSIGN_OR_RETURN(const auto reply, m_host->command(spec.name, argv, limit));
  return reply.kind != Reply::Kind::nil && reply.text.find('.') == std::string::npos;
}

Result<Renewal> ScriptStore::renew(const LockSpec& spec, const Owner& owner, const RenewOptions& options,
                                   const CallLimits& limit)
{
  return renew_as({.spec = spec, .owner = owner, .options = options}, "", limit);
}

Result<Renewal> ScriptStore::renew_hold(const LockSpec& spec, const Hold& hold, const RenewOptions& options,
                                        const CallLimits& limit)
{
  return renew_as({.spec = spec, .owner = hold.owner, .options = options}, hold.id, limit);
}

namespace {

// A ttl of 0 changes nothing. The server never shortens a ttl.
VerbRequest request_for(const RenewalCall& call, std::string_view hold)
{
  using enum calls::Purpose;
  return {.lock = call.spec.name,
          .kind = call.spec.kind,
          .owner = call.owner,
          .verb = calls::Renew{.ttl = call.options.only_checks ? Millis{0} : call.spec.ttl,
                               .hold_id = std::string(hold),
                               .purpose = call.options.stopping   ? stopping
                                          : call.options.confirms ? confirm
                                                                  : none}};
}

}  // namespace

Result<Renewal> ScriptStore::renew_as(const RenewalCall& call, std::string_view hold, const CallLimits& limit)
{
  const Instant sent_at = m_clock.now();
  const VerbRequest request = request_for(call, hold);
  return renewal_in(request, m_host->run(request, limit), call, sent_at);
}

std::vector<Result<Renewal>> ScriptStore::renew_each(std::span<const RenewalCall> calls, const CallLimits& limit)
{
  if (calls.size() == 1 || !m_host->runs_together()) {
    return LockStore::renew_each(calls, limit);
  }
  std::vector<ScriptRequest> requests;
  requests.reserve(calls.size());
  for (const RenewalCall& call : calls) {
    requests.emplace_back(request_for(call, ""));
  }
  const Instant sent_at = m_clock.now();
  const auto replies = m_host->run_each(requests, limit);
  std::vector<Result<Renewal>> answers;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    answers.push_back(renewal_in(std::get<VerbRequest>(requests[i]), replies[i], calls[i], sent_at));
  }
  return answers;
}

// A clock in coarse steps would seem to jump, so its time is not told.
Result<Renewal> ScriptStore::renewal_in(const VerbRequest& request, const Result<Reply>& reply, const RenewalCall& call,
                                        Instant sent_at) const
{
  const auto& [spec, owner, options] = call;
  if (!reply) {
    return reply.error();
  }
  if (const auto kept = answer_in<answers::Kept>(*reply)) {
    return Renewal{
        Renewed{.lease = options.only_checks ? std::nullopt : std::optional(lease_of(owner, sent_at, spec.ttl)),
                .forced = requested_by(kept->requester),
                .at = m_host->time_behind() > Millis{0} ? std::nullopt : time_of(kept->at)}};
  }
  if (const auto lost = answer_in<answers::Lost>(*reply)) {
    return Renewal{not_held(*lost)};
  }
  return unexpected(request, *reply);
}

Result<bool> ScriptStore::raise_fence(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                                      const CallLimits& limit)
{
  const VerbRequest request{.lock = spec.name, .kind = spec.kind, .owner = owner, .verb = calls::Raise{.fence = fence}};
  ASSIGN_OR_RETURN(const auto reply, m_host->run(request, limit));
  const bool is_raised = is_answer<answers::Raised>(reply);
  return is_raised || is_answer<answers::Lost>(reply) ? Result(is_raised) : unexpected(request, reply);
}

Result<Release> ScriptStore::release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& options,
                                     const CallLimits& limit)
{
  const bool tells_info = (options.late || options.result.outcome == Outcome::lost) && !hold.is_nested();
  const VerbRequest request{
      .lock = spec.name,
      .kind = spec.kind,
      .owner = hold.owner,
      .verb = calls::Release{
          .hold_id = hold.id,
          .own_subscribers = options.announced ? m_release_subscriptions->of(spec.name.text()) : calls::no_hand_over,
          .min_hold = options.keep,
          .remember_success = options.succeeded ? spec.once.value_or(Millis{0}) : Millis{0},
          .result = encode(result_of(options)),
          .run = calls::ReleasedRun{.history = spec.who.history,
                                    .info = tells_info ? encode(spec.who) : "",
                                    .ran = options.ran > Millis{0} ? std::optional(options.ran) : std::nullopt}}};
  return release_of(request, m_host->run(request, limit));
}

std::vector<Result<Release>> ScriptStore::release_each(std::span<const LockSpec* const> specs, const Owner& owner,
                                                       const CallLimits& limit)
{
  std::vector<ScriptRequest> requests;
  requests.reserve(specs.size());
  for (const LockSpec* spec : specs) {
    requests.emplace_back(
        VerbRequest{.lock = spec->name,
                    .kind = spec->kind,
                    .owner = owner,
                    .verb = calls::Release{.hold_id = owner.text(),
                                           .own_subscribers = m_release_subscriptions->of(spec->name.text()),
                                           .result = encode(RunResult{.outcome = Outcome::unused})}});
  }
  const auto replies = m_host->run_each(requests, limit);
  std::vector<Result<Release>> answers;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    answers.push_back(release_of(std::get<VerbRequest>(requests[i]), replies[i]));
  }
  return answers;
}

std::vector<Result<Reply>> ScriptHost::run_each(std::span<const ScriptRequest> requests, const CallLimits& limit)
{
  std::vector<Result<Reply>> replies;
  for (const ScriptRequest& request : requests) {
    replies.push_back(run(request, limit));
  }
  return replies;
}

}  // namespace rlock
