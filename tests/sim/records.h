// SPDX-License-Identifier: Apache-2.0
// A store of records in the simulated world: what a database is for the record engine. Reads and commits travel over the same links
// as the requests to the simulated Redis server, so a commit may arrive late or twice as late as its client has patience for, and
// its answer may be lost. The record is that of the simulated server's keys, so the rules and the faults see and change the same
// data in both worlds.
#pragma once

#include "sim/network.h"
#include "store/record/record_backend.h"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace rlock::sim {

// Deliberate mistakes of an engine or a store.
enum class RecordMistake {
  none,
  time_after_state,     // the time of a read is later than its state
  no_comparison,        // a commit replaces any version
  version_comes_back,   // a version is used again
  remembered_decision,  // every decision is made on a remembered state
  loses_messages,       // a commit delivers no message
};

// One connection to the store: of a backend, or of a message source.
struct RecordConnection {
  const Process* owner;
  int client;
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
  Records(World& world, Network& network, Server& server, std::uint64_t seed, RecordMistake mistake);
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

 private:
  friend class SimulatedBackend;
  friend class SimulatedSource;
  friend class SimulatedHost;
  using Connection = std::shared_ptr<RecordConnection>;

  Connection connect();
  void close(const Connection& connection);
  void send(const Connection& connection, std::function<void()> arrive);
  void deliver(const Connection& connection, std::function<void()> arrive);
  template <typename Answer>
  Result<Answer> ask(Connection& connection, std::function<Answer()> at_store, const Clock& clock,
                     const CallLimits& limit);

  record::Snapshot state();
  struct Commitment {
    record::Version version;
    std::string bytes;
    record::LogChange log;
    std::vector<Message> messages;
    record::Snapshot read;  // on which it was decided
    Words request;          // as it would have been sent to Redis
    int client;
  };
  record::Commit commit(const Commitment& wanted);
  void begin_to_listen(const Connection& connection, const std::vector<std::string>& channels);
  void note_answer(int client, const Words& request, const Value& answer);
  [[nodiscard]] std::vector<std::string> listeners() const;

  World& m_world;
  Network& m_network;
  Server& m_server;
  SeededRng m_rng;
  RecordMistake m_mistake;
  std::vector<Connection> m_connections;
  std::vector<std::string> m_listened_at_read;  // while the rules look at a commit
  int m_conflicts = 0;
};

}  // namespace rlock::sim
