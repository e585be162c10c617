// SPDX-License-Identifier: Apache-2.0
// Sends a request to the right server. Which server that is may change at any time.
#pragma once

#include "base/call_limits.h"
#include "base/result.h"
#include "net/reply.h"
#include "server/script.h"
#include "server/subscription.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock {

struct Request {
  std::string route_key;
  std::vector<std::string> words;
};

// Threads: not thread-safe; may be handed from one thread to another between calls.
class Transport {
 public:
  virtual ~Transport() = default;

  // Sends one request and returns its reply by the deadline. In a cluster, `route_key` decides the server. An error reply becomes
  // an Error (net/errors.h); only NOSCRIPT stays a reply, for run_script. After ErrorCode::unreachable or interrupted the request
  // may have happened.
  virtual Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                             const CallLimits& limit) = 0;

  // Sends a request on the connection of the last call. WAIT needs that, because it counts the writes of its connection.
  // ErrorCode::unreachable: that connection is gone.
  virtual Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                                  const CallLimits& limit) = 0;

  // Sends several requests and returns the answers in the same order. The default sends them one by one; a transport that
  // overrides this takes one round trip.
  virtual std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit);

  // Listens to each channel on the server that has the keys with the same {tag}.
  virtual Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) = 0;

  // A route key for each server that has a part of the keys: one, except in a cluster.
  virtual Result<std::vector<std::string>> routes(const CallLimits& limit);
  [[nodiscard]] virtual bool is_cluster() const { return false; }
  // Whether another server may take over. Then requests may go without an answer for longer than a short lease lasts.
  [[nodiscard]] virtual bool may_fail_over() const { return is_cluster(); }

  // Drops the connection; the next call connects again. A caller that got no answer calls this.
  virtual void forget() = 0;
};

// Runs a script by EVALSHA, or by EVAL if the server does not know the script. `keys`: KEYS. `args`: ARGV.
Result<Reply> run_script(Transport& transport, const Script& script, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, const CallLimits& limit);

// The same for a script without KEYS, on the server of `route_key`.
Result<Reply> run_script_at(Transport& transport, std::string_view route_key, const Script& script,
                            std::span<const std::string_view> args, const CallLimits& limit);

// One call of run_scripts.
struct ScriptCall {
  const Script& script;
  std::vector<std::string> keys;
  std::vector<std::string> args;
};
std::vector<Result<Reply>> run_scripts(Transport& transport, std::span<const ScriptCall> calls,
                                       const CallLimits& limit);

}  // namespace rlock
