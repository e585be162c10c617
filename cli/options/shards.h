// SPDX-License-Identifier: Apache-2.0
// --shards: a pool of locks of which the caller needs any one, KEY:0 to KEY:N-1 or KEY:NAME for each name.
#pragma once

#include "base/result.h"
#include "cli/options/option_table.h"
#include "run/request.h"

#include <string>
#include <vector>

namespace rlock::cli {

// One of the two is set when the option was given.
struct RawShards {
  int count = 0;
  std::vector<std::string> names = {};
};

// Reads "N", "NAME,NAME,…" or "@FILE". A number with a comma behind it ("3,") is a name. A file has one name a line; "#" begins a
// comment. ErrorCode::usage: the value names no pool; ErrorCode::config: the file cannot be read, or names none.
Result<Done> read_shards(const Given& given, RawShards& shards);

// The locks of the pool of `request.name()`, as RunRequest::shards and RunRequest::shard_names. Errors: those of LockName::parse and
// check_can_be_taken; ErrorCode::usage: there are several keys.
Result<Done> resolve_shards(const RawShards& shards, RunRequest& request);

// `found`: where the caller finds which lock was taken.
constexpr OptionRow<RawShards> shards_row(const char* found, const Others& needs = {})
{
  return {{.names = "--shards",
           .value = "N|NAME,...|@FILE",
           .help = {"take any free lock of KEY:0 to KEY:N-1, or of KEY:NAME for each NAME (3, is one name); @FILE has "
                    "one name a line, and # begins a comment",
                    found},
           .range = Numbers{1, static_cast<int>(most_shards), "5"},
           .needs = needs},
          read_shards};
}

}  // namespace rlock::cli
