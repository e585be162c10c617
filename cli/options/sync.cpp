// SPDX-License-Identifier: Apache-2.0
#include "cli/options/sync.h"

namespace rlock::cli {
namespace {

constexpr NumberRule sync_rule{"--sync", 0, 1000, "1"};

}  // namespace

void add_sync_option(Options& options, Text& raw)
{
  options.text("--sync", raw, "N",
               "the lock counts as acquired only when N replicas have it; else rlock gives it back. Renewals "
               "do not wait for replicas (0)");
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
