// SPDX-License-Identifier: Apache-2.0
#include "store/open.h"

#include "server/cluster.h"
#include "server/direct.h"
#include "server/local.h"
#include "server/sentinel.h"
#include "store/quorum/quorum_store.h"
#include "store/redis/redis_store.h"

#include <system_error>
#include <utility>

#include <unistd.h>

namespace rlock {
namespace {

Result<std::unique_ptr<RedisStore>> open_one(const ServerSpec& server, Endpoint endpoint, const Clock& clock,
                                             StopToken stop)
{
  auto transport = open_transport(server, std::move(endpoint), clock, stop);
  return transport ? Result(std::make_unique<RedisStore>(*std::move(transport)))
                   : Result<std::unique_ptr<RedisStore>>(transport.error());
}

Result<std::unique_ptr<LockStore>> open_quorum(const ServerSpec& server, const Clock& clock, StopToken stop)
{
  std::vector<QuorumServer> servers;
  for (const Endpoint& endpoint : server.endpoints) {
    auto store = open_one(server, endpoint, clock, stop);
    if (!store) {
      return store.error();
    }
    RedisStore* const one = store->get();
    servers.push_back({.shown = endpoint.shown(), .store = *std::move(store), .marker = nullptr});
    if (server.restart_guard) {
      servers.back().marker = [one](const MarkerNews& news, const CallLimits& limit) {
        return one->marker(news, limit);
      };
    }
  }
  const QuorumPolicy policy{.rule = server.quorum, .restart_guard = server.restart_guard_for};
  try {
    return std::unique_ptr<LockStore>(
        std::make_unique<QuorumStore>(std::move(servers), policy, clock, std::make_unique<SystemRng>()));
  } catch (const std::system_error& refused) {
    return Error{ErrorCode::os, "cannot ask several servers at once: " + refused.code().message()};
  }
}

Result<std::unique_ptr<Transport>> open_local(const ServerSpec& server, const Clock& clock, StopToken stop)
{
  auto place = local_place(server.runtime_directory, server.local_name, ::geteuid());
  if (!place) {
    return place.error();
  }
  auto transport = std::make_unique<Local>(*std::move(place), clock);
  const auto started = transport->connect({.deadline = clock.now() + server.timeout, .stop = stop});
  return started ? Result(std::unique_ptr<Transport>(std::move(transport)))
                 : Result<std::unique_ptr<Transport>>(started.error());
}

}  // namespace

std::string ServerSpec::shown() const
{
  std::string all;
  for (const Endpoint& endpoint : endpoints) {
    all += (all.empty() ? "" : " ") + endpoint.shown();
  }
  return all;
}

Result<std::unique_ptr<Transport>> open_transport(const ServerSpec& server, Endpoint endpoint, const Clock& clock,
                                                  StopToken stop)
{
  if (endpoint.kind == Endpoint::Kind::local) {
    return open_local(server, clock, stop);
  }
  if (endpoint.kind == Endpoint::Kind::sentinel) {
    return std::unique_ptr<Transport>(std::make_unique<Sentinel>(endpoint, clock));
  }
  if (endpoint.kind == Endpoint::Kind::cluster) {
    return std::unique_ptr<Transport>(std::make_unique<Cluster>(std::move(endpoint), clock));
  }
  return std::unique_ptr<Transport>(std::make_unique<Direct>(std::move(endpoint), clock));
}

Result<std::unique_ptr<LockStore>> open_store(const ServerSpec& server, const Clock& clock, StopToken stop)
{
  if (server.endpoints.size() > 1) {
    return open_quorum(server, clock, stop);
  }
  auto store = open_one(server, server.endpoints.front(), clock, stop);
  return store ? Result(std::unique_ptr<LockStore>(*std::move(store)))
               : Result<std::unique_ptr<LockStore>>(store.error());
}

}  // namespace rlock
