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

bool kept_earlier(const LockSession& a, const LockSession& b) { return a.kept_at() < b.kept_at(); }

}  // namespace

LockSet::LockSet(const RunRequest& request, const RunContext& context, const std::string& path)
    : prepared_job(request, context, path, [this, &request, &context](Instant started) {
        return release_for_runner(request, context, sessions, started);
      })
{
  const Owner owner = Owner::fresh(context.rng, ::getpid());
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
    sessions.emplace_back(request, context, std::move(any_of), owner);
    return;
  }
  sessions.reserve(request.names.size());
  for (const LockName& name : request.names) {
    sessions.emplace_back(request, context, std::vector{spec_of(name)}, owner);
  }
}

std::vector<HeldLock> LockSet::locks() const
{
  std::vector<HeldLock> locks;
  for (const LockSession& session : sessions) {
    locks.push_back({.name = session.name(), .hold = session.hold(), .shard = session.shard()});
  }
  return locks;
}

const LockSession& LockSet::first_to_end() const
{
  return *std::min_element(sessions.begin(), sessions.end(), kept_earlier);
}

std::vector<Instant> LockSet::leases() const
{
  std::vector<Instant> ends;
  for (const LockSession& session : sessions) {
    ends.push_back(session.valid_until());
  }
  return ends;
}

Instant LockSet::watch_from() const { return first_to_end().watch_from(); }

Instant LockSet::taken_at() const
{
  return std::max_element(sessions.begin(), sessions.end(), kept_earlier)->kept_at();
}

}  // namespace rlock
