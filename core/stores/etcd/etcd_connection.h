// SPDX-License-Identifier: Apache-2.0
// Requests to an etcd cluster, on one connection to one of its members. Private to stores/etcd.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/result.h"
#include "stores/etcd/etcd_messages.h"
#include "stores/etcd/etcd_url.h"
#include "stores/etcd/grpc_channel.h"

namespace rlock::etcd {

// Not thread-safe; may be handed from one thread to another between calls. `clock` must outlive it.
//
// Connects at the first request, to the members in random order, and logs in; a member that has failed comes last. A request that a
// member refuses because it knows no leader goes to the next member.
// Errors: unreachable: the request may have happened, and the connection is dropped; server_not_ready: etcd has no space or is too
// old; refused: user, password, right or client certificate; config: no libnghttp2, a bad file for TLS; interrupted.
class Connection {
 public:
  Connection(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

  // Linearizable, as is a transaction without a Put and a Delete.
  Result<RangeAnswer> range(const Range& range, const CallLimits& limit);
  Result<TxnAnswer> txn(const Txn& txn, const CallLimits& limit);

  // What etcd says of a lease that is not there: LeaseAnswer::ttl is 0.
  // The id is of the caller's choice and not 0; etcd may give a longer time than `ttl`, which is in seconds.
  Result<LeaseAnswer> grant(std::int64_t id, std::int64_t ttl, const CallLimits& limit);
  Result<LeaseAnswer> keep_alive(std::int64_t id, const CallLimits& limit);
  Result<LeaseAnswer> time_to_live(std::int64_t id, const CallLimits& limit);
  // Ends the lease, and deletes its keys.
  Result<Done> revoke(std::int64_t id, const CallLimits& limit);
  // The same, if there is a connection, without waiting for the answer. Does nothing in a child of the process that connected.
  void revoke_ahead(std::int64_t id);

  Result<StatusAnswer> status(const CallLimits& limit);
  Result<std::vector<Member>> members(const CallLimits& limit);

  // Tells each Put in the range after the return; a watch lasts as long as the connection. The id must not be in use.
  Result<Done> watch(const Range& range, std::int64_t id, const CallLimits& limit)
  {
    return watch(range, id, 0, Watched::puts, limit);
  }
  // The same for what happens from the revision on. 0: after the return.
  Result<Done> watch(const Range& range, std::int64_t id, std::int64_t revision, Watched what, const CallLimits& limit);
  // Nothing waits for the answer. Does nothing in a child of the process that connected.
  void cancel_watch(std::int64_t id, const CallLimits& limit);
  // The next events of one watch; nullopt: none by the deadline. Unreachable: the member has ended the watch.
  Result<std::optional<WatchAnswer>> next_events(const CallLimits& limit);
  // Whether next_events() returns without waiting.
  [[nodiscard]] bool has_events() const;

  // Why the server refused the last request; ok: it did not.
  [[nodiscard]] const GrpcStatus& refusal() const { return m_refusal; }
  [[nodiscard]] bool is_too_large() const;  // the last request, for this server
  // The last request was about a lease that is not there.
  [[nodiscard]] bool is_lease_gone() const { return m_refusal.code == GrpcCode::not_found; }
  // Another number: another connection. 0: none yet.
  [[nodiscard]] std::uint64_t generation() const { return m_generation; }
  [[nodiscard]] bool is_connected() const { return m_channel != nullptr; }
  [[nodiscard]] int fd() const { return m_channel ? m_channel->fd() : -1; }
  [[nodiscard]] const ConnectionSpec& spec() const { return m_spec; }
  // The member, or the URL.
  [[nodiscard]] const std::string& where() const { return m_channel ? m_channel->where() : m_spec.url; }
  void drop();

 private:
  Result<Done> connect(const CallLimits& limit);
  Result<Done> connect_to(std::size_t member, const CallLimits& limit);
  Result<Done> log_in(const CallLimits& limit);
  Result<std::string> request(std::string_view method, std::string_view message, const CallLimits& limit);
  template <typename Answer>
  Result<Answer> ask(std::string_view method, std::string_view message,
                     std::optional<Answer> (*decode)(std::string_view), const CallLimits& limit);
  Result<LeaseAnswer> lease_answer(const Result<LeaseAnswer>& answer) const;
  Result<GrpcChannel::Stream> stream(GrpcChannel::Stream& stream, std::string_view method, const CallLimits& limit);
  // The next message of the stream; no message in time is an error.
  Result<std::string> receive(GrpcChannel::Stream stream, Instant start, const CallLimits& limit);
  Error lost(const Error& why);
  Error refused(const GrpcStatus& status);
  Error nonsense();

  ConnectionSpec m_spec;
  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  std::unique_ptr<GrpcChannel> m_channel;
  std::uint64_t m_generation = 0;
  pid_t m_process = 0;                    // that connected
  std::size_t m_member = 0;               // of the connection
  std::optional<std::size_t> m_failed;    // the member that failed last
  GrpcChannel::Stream m_keep_alives = 0;  // 0: not started
  GrpcChannel::Stream m_watches = 0;      // 0: not started
  std::vector<WatchAnswer> m_events;      // that came while a watch was created
  GrpcStatus m_refusal;
};

}  // namespace rlock::etcd
