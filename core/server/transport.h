// SPDX-License-Identifier: Apache-2.0
// A request to the right server, whichever that is at the moment.
#pragma once

#include "base/result.h"
#include "base/stop.h"
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

  // One request, one reply, over by the limit. `route_key` says which server in a cluster. Error
  // replies become Errors by `wire/errors.h`, all but NOSCRIPT: that one comes back as a reply, for
  // run_script to answer, and only who sends EVALSHA can meet it. After ErrorCode::unreachable or
  // interrupted the request may have happened.
  virtual Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                             const CallLimits& limit) = 0;

  // A request about what the last call has written, on the connection on which it did: WAIT means no other. Where that is gone
  // the answer is ErrorCode::unreachable.
  virtual Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                                  const CallLimits& limit) = 0;

  // Several requests, their answers in the same order. They cost one round trip where all go to one server, and are
  // called one by one where a transport does not say otherwise.
  virtual std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit);

  // Listens to each channel at the server where the keys are that have the same {tag} in their names.
  virtual Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) = 0;

  // A route key for each of the servers that share the keys among them: one, but in a cluster.
  virtual Result<std::vector<std::string>> routes(const CallLimits& limit);
  [[nodiscard]] virtual bool is_cluster() const { return false; }

  // Drops what connection there is; the next call starts anew. For an answer that did not come.
  virtual void forget() = 0;
};

// EVALSHA, and EVAL once where the server does not know the script. `keys` are KEYS, `args` ARGV.
Result<Reply> run_script(Transport& transport, const Script& script, std::span<const std::string_view> keys,
                         std::span<const std::string_view> args, const CallLimits& limit);

// The same of a script without KEYS, at the server of `route_key`.
Result<Reply> run_script_at(Transport& transport, std::string_view route_key, const Script& script,
                            std::span<const std::string_view> args, const CallLimits& limit);

// run_script for several at once.
struct ScriptCall {
  const Script& script;
  std::vector<std::string> keys;
  std::vector<std::string> args;
};
std::vector<Result<Reply>> run_scripts(Transport& transport, std::span<const ScriptCall> calls,
                                       const CallLimits& limit);

}  // namespace rlock
