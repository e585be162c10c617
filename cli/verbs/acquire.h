// SPDX-License-Identifier: Apache-2.0
// rlock acquire: what was typed, and what it means.
#pragma once

#include "cli/options/keys.h"
#include "cli/options/mode.h"
#include "cli/options/server.h"
#include "cli/options/wait_options.h"
#include "run/acquire.h"

#include <span>
#include <string>

namespace rlock::cli {

struct TypedAcquire {
  TypedKeys keys;
  TypedServer server;
  TypedPatience patience;
  TypedMode mode;
  Text shards;
  Text busy_code;
  Text pid;
  Text ttl;
  Text signal;
  Text on_lost;
  Text lease;
  Text sync;
  Text label;
  bool exports = false;
  bool json = false;
  Text log_format;
  bool quiet = false;
};

void describe_acquire(Options& options, TypedAcquire& typed);

Result<AcquireRequest> meant_acquire(const TypedAcquire& typed, std::span<const std::string> operands,
                                     const Environment& environment);

}  // namespace rlock::cli
