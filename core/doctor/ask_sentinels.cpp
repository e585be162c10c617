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

Result<Done> check_quorum_reply(const Result<Reply>& reply, const std::string& where)
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

SentinelView ask(const Endpoint& group, const HostPort& at, const CallLimits& limit, const Clock& clock)
{
  const std::string& name = group.sentinels.master;
  SentinelView view{.where = show(at), .master = {}};
  auto sentinel = Connection::open(sentinel_at(group, at), clock, limit);
  if (!sentinel) {
    view.answered = sentinel.error();
    return view;
  }
  const auto named =
      sentinel->call(std::array<std::string_view, 3>{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name}, limit);
  if (!named || named->is_error()) {
    view.answered = named ? error_from_reply(named->text, view.where) : named.error();
    return view;
  }
  view.master = master_address_in(*named);
  if (view.master) {
    view.can_fail_over = check_quorum_reply(
        sentinel->call(std::array<std::string_view, 3>{"SENTINEL", "CKQUORUM", name}, limit), view.where);
  }
  return view;
}

// Each once.
std::vector<HostPort> masters_named_by(const std::vector<SentinelView>& views)
{
  std::vector<HostPort> masters;
  for (const SentinelView& each : views) {
    if (each.master && std::find(masters.begin(), masters.end(), *each.master) == masters.end()) {
      masters.push_back(*each.master);
    }
  }
  return masters;
}

}  // namespace

SentinelFacts ask_sentinels(const Endpoint& group, Millis timeout, const Clock& clock)
{
  auto views =
      parallel_query(group.sentinels.hosts, clock, within(timeout, clock),
                     [&](const HostPort& at, const CallLimits& limit) { return ask(group, at, limit, clock); });
  const auto connect = [&](const HostPort& at, const CallLimits& limit) {
    const auto connection = Connection::open(server_at(group, at), clock, limit);
    return NamedMaster{at, connection ? Result<Done>(Done{}) : connection.error()};
  };
  auto masters = parallel_query(masters_named_by(views), clock, within(timeout, clock), connect);
  return {.views = std::move(views), .masters = std::move(masters)};
}

}  // namespace rlock::doctor
