// SPDX-License-Identifier: Apache-2.0
// The list of kept runs of a hostile server. Input: chunks, each a line with its length and then so many bytes.
#include "cli/output/json.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"
#include "lock/kept_runs.h"

#include <algorithm>

namespace rlock::test {

void fuzz_runs(std::string_view bytes)
{
  std::vector<std::string> chunks;
  for (Input input(bytes); !input.empty();) {
    const auto size = static_cast<std::size_t>(std::clamp<std::int64_t>(input.number(), 0, 1 << 16));
    chunks.emplace_back(input.rest().substr(0, size));
    bytes = input.rest().substr(chunks.back().size());
    input = Input(bytes);
  }
  const LockName name = *LockName::parse("stock");
  const LockHistory read = decode_runs(chunks);
  for (const PastRun& run : read.runs) {
    promise(run.start_ms >= 0 && run.times >= 1 && run.waited >= Millis{0}, "the numbers are plausible");
    promise(run.duration.value_or(Millis{0}) >= Millis{0}, "no run ends before it begins");
    promise(!cli::run_json(name, run).empty(), "a run can be printed");
  }
  const LockHistory again = decode_runs(encode_runs(read.runs, read.complete_since_ms));
  promise(again.runs.size() == read.runs.size(), "what is written is read again");
  for (std::size_t i = 0; i < read.runs.size(); ++i) {
    promise(cli::run_json(name, again.runs[i]) == cli::run_json(name, read.runs[i]), "what is written is read again");
  }
  promise(runs_to_keep(read.runs, read.runs).empty(), "nothing is copied twice");
  promise(compact_history(read, 0, 0).runs.empty(), "the bound holds");
}

}  // namespace rlock::test
