// SPDX-License-Identifier: Apache-2.0
// A session with a ZooKeeper ensemble: one connection to one of its members at a time, and the proof that the session lives. Private
// to stores/zookeeper.
//
// A session is alive as long as the leader hears of it. A member that is cut off from its leader still answers pings for a while, so an
// answered ping proves nothing; prove() does.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "base/defaults.h"
#include "base/result.h"
#include "net/byte_stream.h"
#include "stores/zookeeper/messages.h"
#include "stores/zookeeper/zookeeper_url.h"

namespace rlock::zookeeper {

// The ensemble keeps the session, and its ephemeral nodes, from `from` for at least `length`.
struct SessionTerm {
  Instant from;
  Millis length{0};
};

// Not thread-safe; may move between threads. The destructor leaves the session, which ends with its term: see close().
class Client {
 public:
  // Connects at the first request. `session_timeout`: what is asked for; the ensemble has limits of its own. `clock` must outlive it.
  Client(ConnectionSpec spec, Millis session_timeout, const Clock& clock, std::unique_ptr<Rng> rng);

  // Sends the operations in one write, behind what connects where there is no connection, and returns their answers in the same
  // order. Where the old session has expired, a new one begins: session_number() changes, and its ephemeral nodes are gone.
  //   unreachable       no member answered by the deadline: the operations may have happened
  //   config            a request is too long: the server hangs up at each try
  //   refused           a certificate, or the authentication
  Result<std::vector<Answer>> ask(std::span<const Operation> operations, const CallLimits& limit);
  Result<Answer> ask(const Operation& operation, const CallLimits& limit);
  // Sends an operation without waiting for its answer. Does nothing where there is no connection.
  void send_ahead(const Operation& operation);

  // Proves that the session lives: attaches it on a new connection, where the leader counts it from anew, and then commits `change`, a change
  // of an ephemeral node of the session, which only a leader with a majority does. The old connection is closed. The term moves if
  // the answer is ok. nullopt: the session has ended, or its term is over. An Error says nothing about it.
  //
  // Why the term counts from before the attachment: the member of the new connection closes it when it loses its leader, so the leader that
  // counted the session from anew is the one that committed. A majority was in its epoch after that, so each later leader begins with the
  // whole timeout later.
  Result<std::optional<Answer>> prove(const Operation& change, const CallLimits& limit);

  // Of the last proof, or of the beginning of the session. length 0: there is no session.
  [[nodiscard]] const SessionTerm& term() const { return m_term; }
  [[nodiscard]] std::int64_t session_id() const { return m_session.id; }
  [[nodiscard]] std::uint64_t session_number() const { return m_session_number; }
  // Changes with each connection. The watches of an earlier connection are gone.
  [[nodiscard]] std::uint64_t connection_number() const { return m_connection_number; }

  // What the sessions ask for that begin from now on.
  void ask_for(Millis session_timeout) { m_timeout = session_timeout; }
  [[nodiscard]] Millis asked_for() const { return m_timeout; }
  // Reads what has arrived. False: there is no connection, or the server has closed it.
  [[nodiscard]] bool is_connected();

  // The next event of a watch on this connection; nullopt: none by the deadline. Error: the connection is lost.
  Result<std::optional<WatchEvent>> next_event(const CallLimits& limit);
  [[nodiscard]] bool has_event() const { return !m_events.empty(); }

  void drop();  // the connection; the session lives on until its term ends
  // Ends the session: its ephemeral nodes are gone when it returns Done.
  Result<Done> close(const CallLimits& limit);
  // The same without waiting; where there is no connection, the session ends with its term. A new one begins with the next request.
  void close_ahead();

  [[nodiscard]] int fd() const { return m_link ? m_link->stream.fd() : -1; }
  [[nodiscard]] const ConnectionSpec& spec() const { return m_spec; }
  // The member that is connected, else the URL.
  [[nodiscard]] std::string where() const { return m_link ? m_link->stream.where() : m_spec.url; }

 private:
  // A connection, and the bytes that have arrived and are no whole frame yet.
  struct Link {
    ByteStream stream;
    std::string bytes;
    auto feed()
    {
      return [this](std::string_view received) { bytes += received; };
    }
  };

  Result<Link> open_link(const Endpoint& member, const CallLimits& limit) const;
  Result<std::optional<std::string>> next_frame(Link& link, const CallLimits& limit) const;
  Result<std::string> awaited_frame(Link& link, const CallLimits& limit) const;
  Result<std::vector<Answer>> answers(Link& link, std::span<const Operation> operations, const CallLimits& limit);
  Result<std::vector<Answer>> attach_and_ask(const Endpoint& member, Link link, std::span<const Operation> operations,
                                             const CallLimits& limit);
  Result<std::vector<Answer>> ask_members(std::span<const Operation> operations, const CallLimits& limit);
  Result<std::vector<Answer>> ask_connected(std::span<const Operation> operations, const CallLimits& limit);
  Result<std::vector<Answer>> ask_behind_short(std::span<const Operation> operations, std::size_t size,
                                               const CallLimits& limit);
  std::string frames_of(std::span<const Operation> operations);
  bool keep_event(const Received& received);
  void forget_session();
  void give_up_old_session();
  [[nodiscard]] Error nonsense(const Link& link) const;

  ConnectionSpec m_spec;
  Millis m_timeout;
  const Clock* m_clock;
  std::unique_ptr<Rng> m_rng;
  std::optional<Link> m_link;
  Session m_session;
  SessionTerm m_term;
  SessionTerm m_attached;  // what the last attachment becomes with a proof
  std::uint64_t m_session_number = 0;
  std::uint64_t m_connection_number = 0;
  std::int32_t m_last_number = 0;  // of a request
  std::int64_t m_last_zxid = 0;    // that this client has seen; a member that is behind it refuses the connection
  std::deque<WatchEvent> m_events;
};

// The Error for an answer that says no.
Error error_of(Code code, const std::string& where);

}  // namespace rlock::zookeeper
