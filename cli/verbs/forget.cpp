// SPDX-License-Identifier: Apache-2.0
// rlock forget: forgets the success that rlock once remembers.
#include "cli/options/one_lock.h"
#include "cli/options/output_format.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"
#include "lock/abilities.h"

namespace rlock::cli {
namespace {

struct RawForget {
  RawOneLock lock;
  bool json = false;
};

constexpr std::array<std::string_view, 1> examples{"rlock forget -k migrate:v42"};

constexpr std::array exits{
    ExitLine{ExitCode::ok, "forgotten: the next rlock once runs its command"},
    ExitLine{ExitCode::no, "there was no success to forget"},
};

Result<RunEnd> execute(const RawForget& raw, const Call& call)
{
  const Result<OneLock> lock = open_lock(raw.lock, call);
  if (!lock) {
    return lock.error();
  }
  OnceMemory* const memory = lock->opened.store->once_memory();
  if (memory == nullptr) {
    return not_offered(forget_verb.name, lock->opened.server);
  }
  const Result<bool> forgotten = memory->forget_success(lock->name, lock->opened.limit());
  if (!forgotten) {
    return forgotten.error();
  }
  if (raw.json) {
    print(forget_json(lock->name, *forgotten));
  }
  return ended(*forgotten ? ExitCode::ok : ExitCode::no);
}

void add_forget_options(Options& options, RawForget& raw)
{
  add_key_options(options, raw.lock.keys);
  add_json_option(options, raw.json);
  add_server_options(options, raw.lock.server);
}

}  // namespace

const Verb forget_verb{
    .name = "forget",
    .summary = "forget that a command has succeeded, so that once runs it again",
    .synopsis = "[OPTION...] [-k] KEY",
    .examples = examples,
    .own_exits = exits,
    .common_exits = asking_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawForget, add_forget_options, execute>,
};

}  // namespace rlock::cli
