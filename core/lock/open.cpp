// SPDX-License-Identifier: Apache-2.0
#include "lock/open.h"

#include "lock/redis_store.h"
#include "wire/direct.h"
#include "wire/local_server.h"

#include <unistd.h>

namespace rlock {

Result<std::unique_ptr<LockStore>> open_store(const ServerSpec& server, const Clock& clock, Stop stop)
{
  Endpoint endpoint = server.endpoint;
  if (endpoint.kind == Endpoint::Kind::local) {
    const Limit limit{.deadline = clock.now() + server.timeout, .stop = stop};
    auto started = local_server(local_server_directories(server.runtime_directory, ::geteuid()), clock, limit);
    if (!started) {
      return started.error();
    }
    endpoint = *std::move(started);
  }
  return std::unique_ptr<LockStore>(
      std::make_unique<RedisStore>(std::make_unique<Direct>(std::move(endpoint), clock)));
}

}  // namespace rlock
