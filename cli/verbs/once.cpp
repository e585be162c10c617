// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/run.h"
#include "cli/verbs/table.h"
#include "run/run.h"

#include <array>

namespace rlock::cli {
namespace {

using namespace std::chrono_literals;

constexpr DurationRule for_rule{"--for", 1ms, std::chrono::hours{10 * 366 * 24}, "1h"};

constexpr std::array<std::string_view, 4> examples{
    "rlock once -k report --for 20h -- ./report.sh",
    "rlock once -k migrate:v42 --for 30d -- ./migrate.sh",
    "rlock once -k cache:front --for 30s -w 5s -- ./rebuild.sh",
    "rlock once -k migrate:v42 --for 30d --again -- ./migrate.sh",
};

constexpr std::array exits{
    ExitLine{"the job's own", "it ran; killed by a signal: rlock dies of the same one"},
    ExitLine{"0", "it ran well, now or within DUR before, here or elsewhere"},
    usage_exit,
    server_exit,
    ExitLine{"70, 71", "internal error; the operating system refused (fork, memory)"},
    ExitLine{"75", "busy (or -E N)"},
    refused_exit,
    config_exit,
    ExitLine{"121", "the lock was lost or taken by force while the job ran"},
    ExitLine{"124", "stopped because its time was over (--max-runtime, a fixed --lease)"},
    ExitLine{"126, 127", "the job cannot be executed, was not found"},
};

struct RawOnce {
  RawRun run;
  Text within;
  bool again = false;
};

Result<RunRequest> resolve_once(const RawOnce& raw, const Call& call)
{
  if (!raw.within) {
    return usage("--for is missing: for how long is a success good? (try --for 1h)");
  }
  const Result<Millis> within = resolve_duration(*raw.within, for_rule);
  if (!within) {
    return within.error();
  }
  auto request = resolve_run(raw.run, call.operands, call.environment);
  if (!request) {
    return request;
  }
  if (request->names.size() > 1) {
    return usage("--key: given for " + std::to_string(request->names.size()) +
                 " locks, but a success is remembered under one (try one -k)");
  }
  if (!kind_of(request->mode).is_always_exclusive) {
    return usage(
        "once is for one at a time: --shared, --exclusive and --permits make no sense with it (try "
        "rlock run)");
  }
  request->once = *within;
  request->again = raw.again;
  return request;
}

VerbAction add_options(Options& options)
{
  auto raw = std::make_shared<RawOnce>();
  options.text("--for", raw->within, "DUR",
               "do not run CMD if it has succeeded under KEY within DUR; who comes while it runs "
               "waits, and shares its "
               "success without running it");
  options.flag("--again", raw->again, "run CMD whether it has succeeded or not; its success is remembered anew");
  add_key_options(options, raw->run.keys);
  add_hidden_mode_options(options, raw->run.mode);
  add_common_run_options(options, raw->run);
  return [raw](const Call& call) { return execute(raw->run, call, resolve_once(*raw, call)); };
}

}  // namespace

const Verb once_verb{
    .name = "once",
    .summary = "run a command unless it has succeeded lately, here or elsewhere",
    .synopsis = "-k KEY --for DUR [OPTION...] [--] CMD [ARG...]",
    .examples = examples,
    .exits = exits,
    .operands = Operands::command,
    .add_options = add_options,
};

}  // namespace rlock::cli
