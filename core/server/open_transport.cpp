// SPDX-License-Identifier: Apache-2.0
#include "server/open_transport.h"

#include "server/cluster.h"
#include "server/direct.h"
#include "server/local.h"
#include "server/sentinel.h"

#include <unistd.h>

namespace rlock {
namespace {

Result<std::unique_ptr<Transport>> open_local(const LocalServerOptions& local, const Clock& clock, StopToken stop)
{
  auto spec = local_spec(local.runtime_directory, local.name, local.idle, ::geteuid());
  if (!spec) {
    return spec.error();
  }
  spec->any_lock = local.any_lock;
  spec->starts = local.starts;
  auto transport = std::make_unique<Local>(*std::move(spec), clock);
  const auto started = transport->connect({.deadline = clock.now() + local.timeout, .stop = stop});
  return started ? Result(std::unique_ptr<Transport>(std::move(transport)))
                 : Result<std::unique_ptr<Transport>>(started.error());
}

}  // namespace

Result<std::unique_ptr<Transport>> open_transport(const Endpoint& endpoint, const LocalServerOptions& local,
                                                  const Clock& clock, StopToken stop)
{
  switch (endpoint.kind) {
    case Endpoint::Kind::local: return open_local(local, clock, stop);
    case Endpoint::Kind::sentinel: return std::unique_ptr<Transport>(std::make_unique<Sentinel>(endpoint, clock));
    case Endpoint::Kind::cluster: return std::unique_ptr<Transport>(std::make_unique<Cluster>(endpoint, clock));
    case Endpoint::Kind::tcp:
    case Endpoint::Kind::unix_socket: return std::unique_ptr<Transport>(std::make_unique<Direct>(endpoint, clock));
    case Endpoint::Kind::other: break;
  }
  return Error{ErrorCode::config, "the server " + endpoint.shown() + " is no Redis server (give one with -S)"};
}

}  // namespace rlock
