// SPDX-License-Identifier: Apache-2.0
#include "cli/options/concurrency.h"

#include <string>
#include <string_view>
#include <variant>

namespace rlock::cli {
namespace {

Result<Done> check_option(std::string_view option, const RunRequest& request)
{
  const std::string name(option);
  if (request.wait == Millis{0}) {
    return usage(name + " is for runs that wait (leave out --no-wait, or " + name + ")");
  }
  if (request.names.size() > 1 || !request.shards.empty()) {
    return usage(name + " is for one lock (try one -k, without --shards)");
  }
  if (request.server.endpoints.size() > 1) {
    return usage(name + " is for one server: several servers have no queue (try one -S)");
  }
  return Done{};
}

}  // namespace

void add_concurrency_options(Options& options, RawConcurrency& raw)
{
  options.flag(
      "--latest", raw.latest,
      "of the runs that wait with --latest keep only this, the newest, in line; those before it end as if busy");
  options.flag(
      "--cancel-in-progress", raw.cancel_in_progress,
      "ask the holder to stop its job, as force-unlock does, and then run; with --latest: only the newest run");
}

Result<Done> resolve_concurrency(const RawConcurrency& raw, RunRequest& request)
{
  request.latest = raw.latest;
  request.cancel_in_progress = raw.cancel_in_progress;
  if (raw.latest) {
    if (const Result<Done> fits = check_option("--latest", request); !fits) {
      return fits;
    }
  }
  if (raw.cancel_in_progress && std::holds_alternative<Permits>(request.mode)) {
    return usage("--cancel-in-progress is for a lock with one holder, not for --permits (leave one of them out)");
  }
  return raw.cancel_in_progress ? check_option("--cancel-in-progress", request) : Done{};
}

}  // namespace rlock::cli
