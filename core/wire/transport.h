// SPDX-License-Identifier: Apache-2.0
// A request to the right server, whichever that is at the moment.
#pragma once

#include "base/result.h"
#include "base/stop.h"
#include "wire/reply.h"
#include "wire/script.h"
#include "wire/subscription.h"

#include <span>
#include <string_view>

namespace rlock {

// Not thread-safe; may be handed from one thread to another between calls.
class Transport {
 public:
  virtual ~Transport() = default;

  // One request, one reply, over by the limit. `route_key` says which server in a cluster. Error
  // replies become Errors by `wire/errors.h`, all but NOSCRIPT: that one comes back as a reply, for
  // run_script to answer, and only who sends EVALSHA can meet it. After Fault::unreachable or
  // interrupted the request may have happened.
  virtual Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                             const Limit& limit) = 0;

  // A connection that listens, at the server that `route_key` belongs to.
  virtual Result<Subscription> subscribe(std::string_view route_key,
                                         std::span<const std::string_view> channels,
                                         const Limit& limit) = 0;

  // Drops what connection there is; the next call starts anew. For an answer that did not come.
  virtual void forget() = 0;
};

// EVALSHA, and EVAL once where the server does not know the script. `keys` are KEYS, `args` ARGV.
Result<Reply> run_script(Transport& transport, const Script& script,
                         std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, const Limit& limit);

}  // namespace rlock
