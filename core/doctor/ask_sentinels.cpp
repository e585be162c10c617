// SPDX-License-Identifier: Apache-2.0
#include "doctor/ask_group.h"

#include "base/parallel_query.h"
#include "base/text.h"
#include "net/connection.h"
#include "net/errors.h"
#include "server/group.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rlock::doctor {
namespace {

CallLimits within(Millis timeout, const Clock& clock) { return {clock.now() + timeout, StopToken::never()}; }

Result<Done> fail_over_in(const Result<Reply>& reply, const std::string& where)
{
  if (!reply) {
    return reply.error();
  }
  if (!reply->is_error()) {
    return Done{};
  }
  const bool no_quorum = reply->text.starts_with("NOQUORUM");
  return no_quorum ? Error{ErrorCode::unfit, printable(reply->text)} : error_from_reply(reply->text, where);
}

SentinelSaid ask(const Endpoint& group, const HostPort& at, const CallLimits& limit, const Clock& clock)
{
  const std::string& name = group.sentinels.master;
  SentinelSaid said{.where = show(at), .master = {}};
  auto sentinel = Connection::open(sentinel_at(group, at), clock, limit);
  if (!sentinel) {
    said.heard = sentinel.error();
    return said;
  }
  const auto named =
      sentinel->call(std::array<std::string_view, 3>{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name}, limit);
  if (!named || named->is_error()) {
    said.heard = named ? error_from_reply(named->text, said.where) : named.error();
    return said;
  }
  said.master = named_in(*named);
  if (said.master) {
    said.fail_over =
        fail_over_in(sentinel->call(std::array<std::string_view, 3>{"SENTINEL", "CKQUORUM", name}, limit), said.where);
  }
  return said;
}

// Each once.
std::vector<HostPort> named_by(const std::vector<SentinelSaid>& said)
{
  std::vector<HostPort> masters;
  for (const SentinelSaid& each : said) {
    if (each.master && std::find(masters.begin(), masters.end(), *each.master) == masters.end()) {
      masters.push_back(*each.master);
    }
  }
  return masters;
}

}  // namespace

SentinelFacts ask_sentinels(const Endpoint& group, Millis timeout, const Clock& clock)
{
  auto said = parallel_query(group.sentinels.hosts, clock, within(timeout, clock),
                             [&](const HostPort& at, const CallLimits& limit) { return ask(group, at, limit, clock); });
  const auto meet = [&](const HostPort& at, const CallLimits& limit) {
    const auto met = Connection::open(server_at(group, at), clock, limit);
    return NamedMaster{at, met ? Result<Done>(Done{}) : met.error()};
  };
  auto masters = parallel_query(named_by(said), clock, within(timeout, clock), meet);
  return {.said = std::move(said), .masters = std::move(masters)};
}

}  // namespace rlock::doctor
