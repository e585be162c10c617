// SPDX-License-Identifier: Apache-2.0
#include "cli/sync.h"

#include "cli/options/limits.h"

namespace rlock::cli {
namespace {

constexpr NumberRule sync_rule{"--sync", 0, 1000, "1"};

}  // namespace

void add_sync_option(Options& options, Text& raw)
{
  options.text("--sync", raw, "N",
               "acquired only once N replicas have the lock, else given back; renewals do not wait "
               "for them (0)");
}

Result<unsigned> resolve_sync(const Text& raw, const ServerSpec& server)
{
  if (!raw) {
    return 0U;
  }
  const Result<int> replicas = resolve_number(*raw, sync_rule);
  if (!replicas) {
    return replicas.error();
  }
  if (*replicas > 0 && server.endpoints.size() > 1) {
    return usage("--sync is for the replicas of one server; several servers have none (leave out --sync)");
  }
  return static_cast<unsigned>(*replicas);
}

}  // namespace rlock::cli
