// SPDX-License-Identifier: Apache-2.0
// rlock acquire: its options, and the AcquireRequest that is made of them.
#pragma once

#include "cli/options/keys.h"
#include "cli/options/mode.h"
#include "cli/options/server.h"
#include "cli/options/wait_options.h"
#include "run/acquire.h"

#include <span>
#include <string>

namespace rlock::cli {

struct RawAcquire {
  RawKeys keys;
  RawServer server;
  RawWaitOptions wait_options;
  RawMode mode;
  Text shards;
  Text busy_code;
  Text pid;
  Text ttl;
  Text signal;
  Text on_lost;
  Text lease;
  Text sync;
  Text label;
  Text history;
  Text notify;
  bool exports = false;
  bool json = false;
  Text log_format;
  bool quiet = false;
};

void add_acquire_options(Options& options, RawAcquire& raw);

Result<AcquireRequest> resolve_acquire(const RawAcquire& raw, std::span<const std::string> operands,
                                       const Environment& environment);

}  // namespace rlock::cli
