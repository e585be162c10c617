// SPDX-License-Identifier: Apache-2.0
// rlock bench: measures how fast locks are on this server.
#include "doctor/bench.h"
#include "base/defaults.h"
#include "cli/options/lock.h"
#include "cli/options/output.h"
#include "cli/options/server.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/dispatch.h"
#include "process/signals.h"

#include <array>
#include <cstdio>

namespace rlock::cli {
namespace {

struct RawBench {
  RawKeys keys;
  RawServer server;
  Millis time = default_bench_time;
  unsigned connections = 4;
  bool json = false;
};

std::string shown(Micros time)
{
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f ms", static_cast<double>(time.count()) / 1000);
  return text.data();
}

std::string bars(const Distribution& times)
{
  constexpr std::size_t widest = 40;
  std::string text;
  for (const Bucket& bucket : times.histogram) {
    const std::size_t width = (bucket.count * widest + times.count - 1) / times.count;
    std::array<char, 48> head{};
    std::snprintf(head.data(), head.size(), "    <= %12s  %8zu  ", shown(bucket.most).c_str(), bucket.count);
    text += head.data() + std::string(width, '#') + "\n";
  }
  return text;
}

std::string shown(std::string_view what, const Distribution& times)
{
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(), "%-10s p50 %s   p90 %s   p99 %s   max %s\n", what.data(),
                shown(times.p50).c_str(), shown(times.p90).c_str(), shown(times.p99).c_str(), shown(times.max).c_str());
  return line.data() + bars(times);
}

void print_result(const BenchResult& result, const BenchPlan& plan, bool json)
{
  const auto print_times = [json](std::string_view what, const Distribution& times) {
    print(json ? distribution_json(what, times) : shown(what, times));
  };
  print_times("acquire", result.acquire);
  print_times("release", result.release);
  if (result.hand_over) {
    print_times("hand_over", *result.hand_over);
  }
  if (json) {
    print(pairs_json(result.pairs_per_second, plan.connections));
    return;
  }
  std::array<char, 96> line{};
  std::snprintf(line.data(), line.size(), "%-10s %.0f a second over %u connections\n", "pairs", result.pairs_per_second,
                plan.connections);
  print(line.data());
}

// After a signal, bench deletes its locks before it ends.
Result<RunEnd> execute(const RawBench& raw, const Call& call)
{
  ASSIGN_OR_RETURN(auto server, resolve_server(raw.server, call.environment));
  const BenchPlan plan{
      .server = std::move(server), .prefix = raw.keys.prefix, .connections = raw.connections, .time = raw.time};
  call.signals.block();
  const BootClock clock;
  const Result<BenchResult> result = bench(plan, clock, call.signals.stop());
  if (const auto arrived = call.signals.take()) {
    return RunEnd{DieOf{arrived->number}};
  }
  if (!result) {
    return result.error();
  }
  print_result(*result, plan, raw.json);
  return ended(ExitCode::ok);
}

constexpr OptionRow<RawBench> bench_rows[] = {
    {{.names = "--for",
      .value = "DUR",
      .help = {"how long each of the three measurements takes", default_bench_time},
      .range = Durations{Millis{10}, std::chrono::hours{1}, "5s"}},
     set<&RawBench::time>},
    {{.names = "--connections",
      .value = "N",
      .help = "number of connections that take and release at the same time, each its own lock (4)",
      .range = Numbers{1, 1000, "4"}},
     set<&RawBench::connections>},
};

void add_bench_options(OptionTable& options, RawBench& raw)
{
  options.add(bench_rows, raw);
  options.add(prefix_row, raw.keys);
  options.add(json_lines_row, raw.json);
  add_server_options(options, raw.server);
}

}  // namespace

const Verb bench_verb{
    .name = "bench",
    .summary = "measure how fast locks are on this server",
    .synopsis = "[OPTION...]",
    .examples = {"rlock bench -S redis://db1", "rlock bench --for 10s --connections 32 --json"},
    .own_exits = {{ExitCode::ok, "the measurements are printed"}},
    .operands = Operands::none,
    .add_options = bound<RawBench, add_bench_options, execute>,
};

}  // namespace rlock::cli
