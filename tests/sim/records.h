// SPDX-License-Identifier: Apache-2.0
// A store of records in the simulated world: what a database is for the record engine. Reads and commits travel over the same links
// as the requests to the simulated Redis server, so a commit may arrive late or twice as late as its client has patience for, and
// its answer may be lost. The record is that of the simulated server's keys, so the rules and the faults see and change the same
// data in both worlds. With sessions holds end with the presences of their owners (members.h), and the store has no clock.
#pragma once

#include "base/wait.h"
#include "engine/record_backend.h"
#include "sim/members.h"
#include "sim/network.h"
#include "sim/schedule.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <sys/eventfd.h>

namespace rlock::sim {

// Deliberate mistakes of an engine or a store.
enum class RecordMistake {
  none,
  time_after_state,     // the time of a read is later than its state
  no_comparison,        // a commit replaces any version
  version_comes_back,   // a version is used again
  remembered_decision,  // every decision is made on a remembered state
  loses_messages,       // a commit delivers no message
  // with sessions
  keep_alive_is_proof,      // an answer to a keep-alive counts as a renewal
  any_leader_proves,        // the leader may have changed between the keep-alive and the commit that proves it
  stale_read_proves,        // what follows the keep-alive is a read, which a deposed leader answers with its old state
  presences_before_record,  // which presences there are was asked before the record was read
  presence_after_grant,     // a commit does not need the presence of its owner, which is put after it
};

// One connection to the store: of a backend, or of a message source.
struct RecordConnection {
  const Process* owner;
  int client;
  int member;              // to which it goes; 0 where the store is one server
  Fd event;                // readable: something has arrived, or the connection is cut
  bool is_cut = false;     // nothing arrives any more, in both directions
  bool is_closed = false;  // by the client: what it has sent still arrives
  bool requests_lost = false;
  bool answers_lost = false;
  Nanos last_arrival = 0;   // of a request
  Nanos last_delivery = 0;  // of an answer or message
  std::vector<std::string> channels;
  std::deque<Message> messages;
};

class Records {
 public:
  // All must outlive it.
  Records(World& world, Network& network, Server& server, const Schedule& schedule, RecordMistake mistake);
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  static Records& current();

  // Adds the scheme of URLs whose store is the current one, for the process that opens it. May be called again.
  static void add_engine();
  static constexpr std::string_view scheme = "simulated-records";

  void process_died(const Process& process);
  void cut_connections(int client);  // -1: of all clients
  [[nodiscard]] int conflicts() const { return m_conflicts; }

  // What clients do.
  using Connection = std::shared_ptr<RecordConnection>;
  using ServedAt = std::function<std::optional<Nanos>()>;  // nullopt: never
  // Connects unless there is a connection. False: the store is down.
  bool reach(Connection& connection);
  // One request and its answer. After an error the connection is closed, as record_backend.h demands. `served_at`: as for any request
  // without it.
  template <typename Answer>
  Result<Answer> ask(Connection& connection, std::function<Answer()> at_store, const Clock& clock,
                     const CallLimits& limit, ServedAt served_at = nullptr);
  [[nodiscard]] bool has_sessions() const { return m_members.has_value(); }
  Members& members() { return *m_members; }
  [[nodiscard]] RecordMistake mistake() const { return m_mistake; }
  std::uint64_t draw() { return m_rng.next(); }
  [[nodiscard]] std::int64_t wall_clock_us(int client) const;
  void step_wall_clock(int client, Millis by);

 private:
  friend class SimulatedBackend;
  friend class SimulatedSource;
  friend class SimulatedHost;

  Connection connect();
  void close(const Connection& connection);
  void send(const Connection& connection, std::function<void()> arrive, ServedAt served_at);
  void serve(const std::function<void()>& arrive, const ServedAt& served_at);
  void deliver(const Connection& connection, std::function<void()> arrive, Nanos not_before = 0);
  static Error no_answer() { return {ErrorCode::unreachable, "the simulated store did not answer"}; }

  record::Snapshot state();
  struct Commitment {
    record::Version version;
    std::string bytes;
    record::LogChange log;
    std::vector<Message> messages;
    record::Snapshot read;  // on which it was decided
    Words request;          // as it would have been sent to Redis
    int client;
    std::vector<record::PresenceId> needed;
    std::vector<record::PresenceId> gone = {};  // at that read
  };
  record::Commit commit(const Commitment& wanted);
  record::Commit commit_maybe_twice(const Commitment& wanted);
  void deliver_messages(const std::vector<Message>& messages);
  void begin_to_listen(const Connection& connection, const std::vector<std::string>& channels);
  void note_answer(int client, const Words& request, const Reply& answer);
  [[nodiscard]] std::vector<std::string> listeners() const;

  World& m_world;
  Network& m_network;
  Server& m_server;
  SeededRng m_rng;
  RecordMistake m_mistake;
  std::vector<Connection> m_connections;
  std::optional<Members> m_members;             // with sessions
  std::vector<Nanos> m_wall_ahead;              // how wrong the clock of each client is
  std::vector<std::string> m_listened_at_read;  // while the rules look at a commit
  int m_conflicts = 0;
};

template <typename Answer>
Result<Answer> Records::ask(Connection& connection, std::function<Answer()> at_store, const Clock& clock,
                            const CallLimits& limit, ServedAt served_at)
{
  if (!reach(connection)) {
    return no_answer();
  }
  const auto answer = std::make_shared<std::optional<Answer>>();
  send(
      connection,
      [this, connection, answer, at_store = std::move(at_store)] {
        auto done = std::make_shared<Answer>(at_store());
        deliver(connection, [answer, done] { *answer = std::move(*done); });
      },
      std::move(served_at));
  while (!*answer && !connection->is_cut) {
    const Waited waited = wait_for(connection->event.get(), POLLIN, clock, limit);
    if (waited != Waited::ready) {
      close(connection);
      return waited == Waited::stopped ? interrupted() : no_answer();
    }
    eventfd_t count = 0;
    ::eventfd_read(connection->event.get(), &count);
  }
  return *answer ? Result<Answer>(std::move(**answer)) : Result<Answer>(no_answer());
}

}  // namespace rlock::sim
