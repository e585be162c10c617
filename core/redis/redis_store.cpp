// SPDX-License-Identifier: Apache-2.0
#include "redis/redis_store.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include "base/duration.h"
#include "base/text.h"
#include "engine/lock_keys.h"
#include "redis/acl.h"
#include "redis/scan.h"

namespace rlock {
namespace {

Request by_sha(const ScriptCall& call)
{
  std::vector<std::string> words{"EVALSHA", std::string(call.script.sha1), std::to_string(call.keys.size())};
  words.insert(words.end(), call.keys.begin(), call.keys.end());
  words.insert(words.end(), call.args.begin(), call.args.end());
  return {.route_key = call.keys.empty() ? "" : call.keys.front(), .words = std::move(words)};
}

Result<Reply> run_routed(Transport& transport, std::string_view route_key, const Script& script,
                         std::span<const std::string_view> keys, std::span<const std::string_view> args,
                         const CallLimits& limit)
{
  const std::string key_count = std::to_string(keys.size());
  std::vector<std::string_view> argv{"EVALSHA", script.sha1, key_count};
  argv.insert(argv.end(), keys.begin(), keys.end());
  argv.insert(argv.end(), args.begin(), args.end());

  auto reply = transport.call(route_key, argv, limit);
  if (reply && reply->is_error()) {
    const std::string source = script.source();
    argv[0] = "EVAL";
    argv[1] = source;
    reply = transport.call(route_key, argv, limit);
  }
  if (reply && reply->is_error()) {
    return Error{ErrorCode::unreachable,
                 "the server does not know the script " + std::string(script.name) + " that was just sent to it"};
  }
  return reply;
}

Error naming_channels(std::span<const std::string_view> channels, const Error& error)
{
  if (error.text.find("NOPERM") == std::string::npos) {  // another error, such as a wrong password
    return error;
  }
  std::string request = "SUBSCRIBE";
  for (const std::string_view channel : channels) {
    request += " " + std::string(channel);
  }
  return naming(request, error);
}

std::vector<std::string_view> names_of(std::span<const LockChannel> channels)
{
  std::vector<std::string_view> names;
  for (const LockChannel& each : channels) {
    names.push_back(each.channel);
  }
  return names;
}

class SubscribedSource final : public MessageSource {
 public:
  explicit SubscribedSource(Subscription subscription) : m_subscription(std::move(subscription)) {}

  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    const auto names = names_of(channels);
    const auto added = m_subscription.add(names, limit);
    return added ? added : Result<Done>(naming_channels(names, added.error()));
  }
  Result<std::optional<Message>> next(const CallLimits& limit) override { return m_subscription.next(limit); }
  [[nodiscard]] int fd() const override { return m_subscription.fd(); }

 private:
  Subscription m_subscription;
};

}  // namespace

Result<Reply> run_script(Transport& transport, const Script& script, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, const CallLimits& limit)
{
  return run_routed(transport, keys.empty() ? std::string_view{} : keys.front(), script, keys, args, limit);
}

Result<Reply> run_script_at(Transport& transport, std::string_view route_key, const Script& script,
                            std::span<const std::string_view> args, const CallLimits& limit)
{
  return run_routed(transport, route_key, script, {}, args, limit);
}

std::vector<Result<Reply>> run_scripts(Transport& transport, std::span<const ScriptCall> calls, const CallLimits& limit)
{
  std::vector<Request> requests;
  for (const ScriptCall& call : calls) {
    requests.push_back(by_sha(call));
  }
  std::vector<Result<Reply>> answers = transport.call_each(requests, limit);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (answers[i] && answers[i]->is_error()) {
      answers[i] = run_script(transport, calls[i].script, views(calls[i].keys), views(calls[i].args), limit);
    }
  }
  return answers;
}

Result<Reply> RedisHost::run(const ScriptRequest& request, const CallLimits& limit)
{
  const ScriptCall call = call_of(request, traits().is_cluster);
  const auto reply = run_script(*m_transport, call.script, views(call.keys), views(call.args), limit);
  return reply ? reply : explained(reply.error(), *m_transport, request, limit);
}

std::vector<Result<Reply>> RedisHost::run_each(std::span<const ScriptRequest> requests, const CallLimits& limit)
{
  std::vector<ScriptCall> calls;
  for (const ScriptRequest& request : requests) {
    calls.push_back(call_of(request, traits().is_cluster));
  }
  auto replies = run_scripts(*m_transport, calls, limit);
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i]) {
      replies[i] = explained(replies[i].error(), *m_transport, requests[i], limit);
    }
  }
  return replies;
}

Result<Reply> RedisHost::command(const LockName& lock, std::span<const std::string_view> argv, const CallLimits& limit)
{
  return m_transport->call(lock.text(), argv, limit);
}

std::vector<Result<std::vector<std::string>>> RedisHost::logs(std::span<const LockName> locks, const CallLimits& limit)
{
  std::vector<Request> requests;
  for (const LockName& lock : locks) {
    requests.push_back({.route_key = lock.text(), .words = {"LRANGE", LockKeys(lock).events, "0", "-1"}});
  }
  auto replies = m_transport->call_each(requests, limit);
  std::vector<Result<std::vector<std::string>>> logs;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i]) {
      const Error& error = replies[i].error();
      logs.emplace_back(is_about_keys(error) ? naming(requests[i].words[1], error) : error);
    } else if (replies[i]->kind != Reply::Kind::array) {
      logs.emplace_back(Error{ErrorCode::internal, "the answer to LRANGE is invalid"});
    } else {
      std::vector<std::string> entries;
      for (Reply& entry : replies[i]->elements) {
        entries.push_back(std::move(entry.text));
      }
      logs.emplace_back(std::move(entries));
    }
  }
  return logs;
}

Result<std::unique_ptr<MessageSource>> RedisHost::subscribe(std::span<const LockChannel> channels,
                                                            const CallLimits& limit)
{
  const auto heard = names_of(channels);
  auto subscription = m_transport->subscribe(heard, limit);
  if (!subscription) {
    return naming_channels(heard, subscription.error());
  }
  return std::unique_ptr<MessageSource>(std::make_unique<SubscribedSource>(*std::move(subscription)));
}

Result<std::vector<std::string>> RedisHost::find_locks(std::string_view glob, const PerAnswer& limits)
{
  return rlock::find_locks(*m_transport, glob, limits);
}

Result<std::vector<std::string>> RedisHost::find_logs(std::string_view glob, const PerAnswer& limits)
{
  return locks_beside(*m_transport, "events", glob, "list", limits);
}

Result<std::vector<std::string>> RedisHost::find_remembered(std::string_view glob, const PerAnswer& limits)
{
  std::vector<std::string> locks;
  for (const auto& [part, type] :
       {std::pair{"events", "list"}, std::pair{"runs", "list"}, std::pair{"done", "string"}}) {
    ASSIGN_OR_RETURN(const auto found, locks_beside(*m_transport, part, glob, type, limits));
    locks.insert(locks.end(), found.begin(), found.end());
  }
  std::ranges::sort(locks);
  locks.erase(std::unique(locks.begin(), locks.end()), locks.end());
  return locks;
}

// Uses the connection of the acquire, because WAIT counts the writes of its connection.
Result<Done> RedisHost::await_replicas(const LockSpec& spec, const CallLimits& limit)
{
  const std::string wanted = std::to_string(spec.sync.replicas);
  const std::string within = std::to_string(spec.sync.within.count());
  const std::array<std::string_view, 3> argv{"WAIT", wanted, within};
  ASSIGN_OR_RETURN(const auto reply, m_transport->follow_up(spec.name.text(), argv, limit));
  if (reply.kind == Reply::Kind::integer && reply.integer >= static_cast<std::int64_t>(spec.sync.replicas)) {
    return Done{};
  }
  return Error{ErrorCode::server_not_ready,
               std::to_string(reply.integer) + " of the " + wanted + " replicas of --sync " + wanted +
                   " had the lock " + printable(spec.name.text()) + " within " + show(spec.sync.within) +
                   ": it was given back (raise --server-timeout, or look at the replicas)"};
}

}  // namespace rlock
