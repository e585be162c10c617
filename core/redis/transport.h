// SPDX-License-Identifier: Apache-2.0
// Sends a request to the right server. Which server that is may change at any time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/defaults.h"
#include "base/result.h"
#include "redis/codec.h"
#include "redis/connection.h"
#include "redis/subscription.h"
#include "redis/url.h"

namespace rlock {

struct Request {
  std::string route_key;
  std::vector<std::string> words;
};

// The words last as long as the strings.
std::vector<std::string_view> views(std::span<const std::string> words);

// Threads: not thread-safe; may be handed from one thread to another between calls.
class Transport {
 public:
  virtual ~Transport() = default;

  // Sends one request and returns its reply by the deadline. In a cluster, `route_key` decides the server. An error reply becomes
  // an Error (redis/codec.h); only NOSCRIPT stays a reply, for run_script. After ErrorCode::unreachable or interrupted the request
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

  // The next call connects again. A caller that got no answer calls this.
  virtual void drop_connection() = 0;
};

// A Transport over one connection to one server: connects at the first call, and again after a failure. The subclasses Local and
// Sentinel look for their server before each connection.

class Direct : public Transport {
 public:
  // `clock` must outlive the transport.
  Direct(Endpoint endpoint, const Clock& clock);

  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv, const CallLimits& limit) final;
  Result<Reply> follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                          const CallLimits& limit) final;
  // After a failed request the replies to the later requests are unknown: each of them is an Error.
  std::vector<Result<Reply>> call_each(std::span<const Request> requests, const CallLimits& limit) final;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;
  void drop_connection() final;

  // Connects, unless there is a connection. If this fails, nothing but the handshake has been sent.
  virtual Result<Done> connect(const CallLimits& limit);

 protected:
  // Whether an answer that took so long still counts. False: the next call connects again.
  virtual bool believes(Instant::duration took, const CallLimits& limit);
  Result<Done> connect_to(Endpoint endpoint, const CallLimits& limit);
  [[nodiscard]] bool is_connected() const { return m_connection.has_value(); }
  [[nodiscard]] const Endpoint& server() const { return m_server; }  // the server of the present or last connection
  [[nodiscard]] const Clock& clock() const { return m_clock; }

 private:
  Result<Reply> checked(Result<Reply> reply) const;
  Result<Reply> exchange(std::span<const std::string_view> argv, const CallLimits& limit);
  Result<Done> check_answer(Instant sent, const CallLimits& limit);

  Endpoint m_server;
  const Clock& m_clock;
  std::optional<Connection> m_connection;
};

// Opens the Transport to the endpoint of a Redis URL.

// How to find and start the private server of `local:`.
struct LocalServerOptions {
  Millis timeout;                 // the time limit for its start
  std::string runtime_directory;  // XDG_RUNTIME_DIR
  std::string name;               // RLOCK_LOCAL_NAME
  std::string idle;               // RLOCK_LOCAL_IDLE
  std::string any_lock;           // LocalSpec::any_lock
  bool starts = true;             // false: a server that does not run is unreachable
};

// Opens the transport. Starts the private server of `local:` if LocalServerOptions::starts; connects to no other server.
// Ownership: the caller owns the transport; `clock` must outlive it.
// Errors: those of local_server; ErrorCode::config: the endpoint belongs to another engine.
Result<std::unique_ptr<Transport>> open_transport(const Endpoint& endpoint, const LocalServerOptions& local,
                                                  const Clock& clock, StopToken stop);

}  // namespace rlock
