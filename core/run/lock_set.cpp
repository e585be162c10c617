// SPDX-License-Identifier: Apache-2.0
#include "run/lock_set.h"

#include "base/secrets.h"
#include "run/identity.h"
#include "run/orphaned_locks.h"
#include "run/replicas.h"

#include <algorithm>
#include <iterator>

#include <unistd.h>

namespace rlock {
namespace {

HolderInfo who_asks(const RunRequest& request)
{
  return {.host = host_name(),
          .pid = ::getpid(),
          .user = user_name(),
          .command = shown_command(request.argv),
          .label = request.label,
          .since_ms = wall_clock_ms(),
          .lease = request.ttl,
          .automatic = request.automatic};
}

bool kept_earlier(const Holding& a, const Holding& b) { return a.kept_at() < b.kept_at(); }

}  // namespace

Tenure::Tenure(const RunRequest& request, const World& world, const std::string& path)
    : preparation(request, world, path, [this, &request, &world](Instant started) {
        return release_for_runner(request, world, holdings, started);
      })
{
  const Owner owner = Owner::fresh(world.rng, ::getpid());
  const HolderInfo who = who_asks(request);
  const Sync sync = sync_of(request.sync, request.ttl, request.server.timeout);
  const auto spec_of = [&](const LockName& name) {
    return LockSpec{.name = name,
                    .mode = request.mode,
                    .ttl = request.ttl,
                    .who = who,
                    .once = request.once,
                    .sync = sync,
                    .again = request.again};
  };
  if (!request.shards.empty()) {
    std::vector<LockSpec> any_of;
    std::transform(request.shards.begin(), request.shards.end(), std::back_inserter(any_of), spec_of);
    holdings.emplace_back(request, world, std::move(any_of), owner);
    return;
  }
  holdings.reserve(request.names.size());
  for (const LockName& name : request.names) {
    holdings.emplace_back(request, world, std::vector{spec_of(name)}, owner);
  }
}

std::vector<HeldLock> Tenure::locks() const
{
  std::vector<HeldLock> locks;
  for (const Holding& holding : holdings) {
    locks.push_back({.name = holding.name(), .hold = holding.hold(), .shard = holding.shard()});
  }
  return locks;
}

const Holding& Tenure::first_to_end() const
{
  return *std::min_element(holdings.begin(), holdings.end(), kept_earlier);
}

std::vector<Instant> Tenure::leases() const
{
  std::vector<Instant> ends;
  for (const Holding& holding : holdings) {
    ends.push_back(holding.valid_until());
  }
  return ends;
}

Instant Tenure::watch_from() const { return first_to_end().watch_from(); }

Instant Tenure::taken_at() const { return std::max_element(holdings.begin(), holdings.end(), kept_earlier)->kept_at(); }

}  // namespace rlock
