// SPDX-License-Identifier: Apache-2.0
// A request to the right server. Which server that is may change at any time.
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

// Not thread-safe; may be handed from one thread to another between calls.
class Transport {
 public:
  virtual ~Transport() = default;

  // Sends one request and returns its reply by the deadline. `route_key` decides the server in a cluster. Error replies
  // become Errors (net/errors.h), except NOSCRIPT, which is returned as a reply to run_script. After
  // ErrorCode::unreachable or interrupted the request may have happened.
  virtual Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                             const CallLimits& limit) = 0;

  // A request on the connection of the last call, for WAIT, which is about the writes of its own connection.
  // ErrorCode::unreachable: that connection is gone.
  virtual Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                                  const CallLimits& limit) = 0;

  // Sends several requests and returns the answers in the same order. They take one round trip if the transport
  // overrides this; by default they are called one by one.
  virtual std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit);

  // Listens to each channel at the server of the keys with the same {tag}.
  virtual Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) = 0;

  // A route key for each server that has a part of the keys: one, except in a cluster.
  virtual Result<std::vector<std::string>> routes(const CallLimits& limit);
  [[nodiscard]] virtual bool is_cluster() const { return false; }
  // Whether another server may take over. Then requests may get no answer for longer than a short lease lasts.
  [[nodiscard]] virtual bool may_fail_over() const { return is_cluster(); }

  // Drops the connection; the next call connects again. For a caller that got no answer.
  virtual void forget() = 0;
};

// Calls EVALSHA, and EVAL if the server does not know the script. `keys` are KEYS, `args` ARGV.
Result<Reply> run_script(Transport& transport, const Script& script, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, const CallLimits& limit);

// The same for a script without KEYS, at the server of `route_key`.
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
