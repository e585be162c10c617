// SPDX-License-Identifier: Apache-2.0
#include "lock/redis_store.h"

#include "base/duration.h"
#include "base/text.h"
#include "lock/answer.h"
#include "lock/kinds.h"

#include <array>
#include <vector>

namespace rlock {
namespace {

std::string text_of(Millis duration) { return std::to_string(duration.count()); }

// The request "owner\nby", if it means `owner`.
std::optional<ForceRequest> request_for(const Owner& owner, const std::string& request)
{
  const auto newline = request.find('\n');
  if (newline == std::string::npos || request.substr(0, newline) != owner.text()) {
    return std::nullopt;
  }
  return ForceRequest{request.substr(newline + 1)};
}

// {'lost', what, owner, info, request}
NotOurs not_ours(const Answer& answer, const Owner& owner)
{
  const std::string kind = answer.text(1);
  NotOurs lost{.what = {}, .forced = request_for(owner, answer.text(4))};
  if (kind == "none") {
    lost.what = "expired or deleted";
  } else if (kind == "held") {
    lost.what = "now held by " +
                describe({.owner = Owner::of(answer.text(2)), .count = 1, .info = answer.info(3)});
  } else {
    lost.what = "the key now holds " + printable(with_article(kind));
  }
  return lost;
}

}  // namespace

// Every script is given the same keys, and the same four words before its own.
Result<Reply> RedisStore::call(const Script& script, const LockName& name, const Mode& mode, const Owner& owner,
                               std::initializer_list<std::string_view> args, const Limit& limit)
{
  const LockKeys keys(name, mode);
  const std::string wish = wish_of(mode);
  const std::array<std::string_view, 11> key_words{keys.lock,       keys.fence,   keys.holder,   keys.force,
                                                   keys.events,     keys.queue,   keys.waiters,  keys.reserved,
                                                   keys.fair_queue, keys.second,  keys.done};
  std::vector<std::string_view> words{owner.text(), keys.channel, keys.owner_channel, wish};
  words.insert(words.end(), args.begin(), args.end());
  return run_script(*m_transport, script, key_words, words, limit);
}

// A lock that was handed to us is confirmed here, and waits for the replicas as well.
Result<Attempt> RedisStore::acquire(const LockSpec& spec, const Owner& owner, const Manner& manner,
                                    const Limit& limit)
{
  auto attempt = try_once(spec, owner, manner, limit);
  if (!attempt || !std::holds_alternative<Granted>(*attempt) || spec.sync.replicas == 0) {
    return attempt;
  }
  const auto replicated = see_it_replicated(spec, limit);
  if (replicated) {
    return attempt;
  }
  [[maybe_unused]] const auto given_back = release(spec, owner, {}, limit);
  return replicated.error();
}

// On the connection of the acquire: WAIT means what was written on its own. If that one is gone the answer is an Error,
// for a Transport does not connect anew within a request.
Result<Done> RedisStore::see_it_replicated(const LockSpec& spec, const Limit& limit)
{
  const std::string wanted = std::to_string(spec.sync.replicas);
  const std::string within = text_of(spec.sync.within);
  const std::array<std::string_view, 3> argv{"WAIT", wanted, within};
  const auto reply = m_transport->call(spec.name.text(), argv, limit);
  if (!reply) {
    return reply.error();
  }
  if (reply->kind == Reply::Kind::integer && reply->integer >= static_cast<std::int64_t>(spec.sync.replicas)) {
    return Done{};
  }
  return Error{Fault::unfit, std::to_string(reply->integer) + " of the " + wanted + " replicas of --sync " + wanted +
                                 " had the lock " + printable(spec.name.text()) + " within " + show(spec.sync.within) +
                                 ": it was given back (raise --server-timeout, or look at the replicas)"};
}

Result<Attempt> RedisStore::try_once(const LockSpec& spec, const Owner& owner, const Manner& manner,
                                     const Limit& limit)
{
  const Script& script = scripts_of(spec.mode).acquire;
  const auto reply = call(script, spec.name, spec.mode, owner,
                          {owner.text(), text_of(spec.ttl), encode(spec.who),
                           manner.queues ? "wait" : "try", std::to_string(manner.ticket),
                           text_of(spec.once.value_or(Millis{0}))},
                          limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("granted")) {
    return Attempt{Granted{.fence = answer.number(1), .count = answer.integer(2)}};
  }
  if (answer.is("done")) {
    return Attempt{AlreadyDone{Millis{answer.integer(1)}}};
  }
  if (!answer.is("busy")) {
    return answer.unexpected(script, spec.name);
  }
  const bool held = !answer.text(2).empty();
  return Attempt{Busy{.ttl = answer.ttl(1),
                      .holder = held ? std::optional{answer.holder(2)} : std::nullopt,
                      .place = static_cast<std::uint64_t>(answer.integer(5)),
                      .ticket = answer.number(6),
                      .silent = held && std::holds_alternative<PlainString>(spec.mode) && !answer.has(4)}};
}

Result<Reentry> RedisStore::reenter(const LockSpec& spec, const Hold& hold, const Limit& limit)
{
  auto entry = reenter_once(spec, hold, limit);
  if (!entry || !std::holds_alternative<Granted>(*entry) || spec.sync.replicas == 0) {
    return entry;
  }
  const auto replicated = see_it_replicated(spec, limit);
  if (replicated) {
    return entry;
  }
  [[maybe_unused]] const auto given_back = release(spec, hold, {}, limit);
  return replicated.error();
}

Result<Reentry> RedisStore::reenter_once(const LockSpec& spec, const Hold& hold, const Limit& limit)
{
  const Script& script = scripts_of(spec.mode).acquire;
  const auto reply = call(script, spec.name, spec.mode, hold.owner,
                          {hold.id, text_of(spec.ttl), encode(spec.who), "again", "0",
                           text_of(spec.once.value_or(Millis{0}))},
                          limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("granted")) {
    return Reentry{Granted{.fence = answer.number(1), .count = answer.integer(2)}};
  }
  if (answer.is("done")) {
    return Reentry{AlreadyDone{Millis{answer.integer(1)}}};
  }
  if (answer.is("lost")) {
    return Reentry{not_ours(answer, hold.owner)};
  }
  return answer.unexpected(script, spec.name);
}

Result<bool> RedisStore::is_queued(const LockSpec& spec, const Owner& owner, const Limit& limit)
{
  const std::string queue = LockKeys(spec.name, spec.mode).queue;
  const std::array<std::string_view, 3> argv{"ZSCORE", queue, owner.text()};
  const auto reply = m_transport->call(spec.name.text(), argv, limit);
  if (!reply) {
    return reply.error();
  }
  return reply->kind != Reply::Kind::nil;
}

Result<Renewal> RedisStore::renew(const LockSpec& spec, const Owner& owner, const Limit& limit)
{
  const Script& script = scripts_of(spec.mode).renew;
  const auto reply = call(script, spec.name, spec.mode, owner, {text_of(spec.ttl)}, limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("kept")) {
    return Renewal{Kept{request_for(owner, answer.text(1))}};
  }
  if (answer.is("lost")) {
    return Renewal{not_ours(answer, owner)};
  }
  return answer.unexpected(script, spec.name);
}

Result<bool> RedisStore::raise_fence(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                                     const Limit& limit)
{
  const Script& script = scripts_of(spec.mode).raise;
  const auto reply = call(script, spec.name, spec.mode, owner, {std::to_string(fence)}, limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("raised") || answer.is("lost")) {
    return answer.is("raised");
  }
  return answer.unexpected(script, spec.name);
}

Result<Release> RedisStore::release(const LockSpec& spec, const Hold& hold, const Parting& parting,
                                     const Limit& limit)
{
  const Script& script = scripts_of(spec.mode).release;
  const auto reply = call(script, spec.name, spec.mode, hold.owner,
                          {hold.id, std::to_string(parting.announced ? m_ears->load() : -1), text_of(parting.keep),
                           text_of(parting.succeeded ? spec.once.value_or(Millis{0}) : Millis{0})}, limit);
  if (!reply) {
    return reply.error();
  }
  const Answer answer(*reply);
  if (answer.is("released")) {
    return Release{Released{}};
  }
  if (answer.is("still_held")) {
    return Release{StillHeld{answer.integer(1)}};
  }
  if (answer.is("left")) {
    return Release{Left{}};
  }
  if (answer.is("lost")) {
    return Release{not_ours(answer, hold.owner)};
  }
  return answer.unexpected(script, spec.name);
}

}  // namespace rlock
