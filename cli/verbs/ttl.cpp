// SPDX-License-Identifier: Apache-2.0
// rlock ttl: prints the ttl of a lock in milliseconds, for scripts.
#include "cli/options/one_lock.h"
#include "cli/options/output_format.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"

namespace rlock::cli {
namespace {

struct RawTtl {
  RawOneLock lock;
  bool json = false;
};

constexpr std::array<std::string_view, 1> examples{"rlock ttl -k stock"};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "held; -1 means that the lock never expires (null in JSON)"},
    ExitLine{ExitCode::no, "free, and 0 is printed"},
};

// As PTTL of redis-cli prints it, but 0 for a free lock.
std::string ttl_text(const LockState& state)
{
  if (!state.held()) {
    return "0\n";
  }
  return state.ttl ? std::to_string(state.ttl->count()) + "\n" : "-1\n";
}

Result<RunEnd> execute(const RawTtl& raw, const Call& call)
{
  const Result<OneLock> lock = open_lock(raw.lock, call);
  if (!lock) {
    return lock.error();
  }
  const Result<LockState> state = lock->opened.store->inspect(lock->name, lock->opened.limit());
  if (!state) {
    return state.error();
  }
  print(raw.json ? ttl_json(*state) : ttl_text(*state));
  return ended(state->held() ? ExitCode::ok : ExitCode::no);
}

void add_ttl_options(Options& options, RawTtl& raw)
{
  add_key_options(options, raw.lock.keys);
  add_json_option(options, raw.json);
  add_server_options(options, raw.lock.server);
}

}  // namespace

const Verb ttl_verb{
    .name = "ttl",
    .summary = "print how many milliseconds a lock still has",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawTtl, add_ttl_options, execute>,
};

}  // namespace rlock::cli
