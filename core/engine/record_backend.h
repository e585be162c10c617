// SPDX-License-Identifier: Apache-2.0
// What a store must offer to keep locks whose scripts run in the client: one small record for each lock, with a version. An
// adapter for a store implements a Backend and decides nothing.
//
// Every call is one request to the store (a single statement or transaction; nothing is held over a round trip) and ends at its
// deadline at the latest. An Error means "unknown": the request may have happened. After an Error the adapter drops its
// connection, so that no late answer is taken for that of the next request; the next call connects again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "base/defaults.h"
#include "base/reply.h"
#include "base/result.h"
#include "engine/native_line.h"
#include "engine/presence.h"
#include "engine/script_host.h"
#include "lock/names.h"

namespace rlock::record {

// Opaque; compared by the store. Empty: there is no record. A version must never come back for a name: not after the record was
// deleted and made again, and not after a fail-over to a server that had not got the last writes. Else a commit that is delivered
// late could replace another state than the one on which it was decided. So a version is a random id that the client draws for
// each write, or a revision on which all servers agree; never a counter of one server.
using Version = std::string;

// Who holds the lock, for `list` and for people who look at the store. Written with the record. Where another program shares the table
// of locks, the face is all that it knows.
struct Face {
  std::string holder;          // empty: free
  std::int64_t until_us = 0;   // by the store's clock; 0: free, or the hold does not end by time
  std::int64_t forget_us = 0;  // from then on the record is of no use and may be deleted; 0: never
};

struct Snapshot {
  Version version;
  std::string bytes;  // of the record; empty: there is none
  // The store's clock, in microseconds since 1970, at a moment after the client sent the request and not after the moment of
  // which the record is the state. A lease that begins at this time ends no earlier than its client believes, and a lease that is
  // over at this time was over in this state. A store with presences (presence.h) gives the client's wall clock
  // (wall_clock_ms) after the answer, which may be wrong: taken before the request, it would be behind the time of a record that
  // another client of the same host has written meanwhile.
  std::int64_t time_us = 0;
  Instant time_at{};  // by the client's clock, at `time_us` or shortly before; only in a store with presences
  // The channels of this lock to which a living client listens, in the same state as the record. Sorted. Whoever begins to listen
  // changes the version.
  std::vector<std::string> listeners;
  // As the store shows it, where another program may have written it; nullopt: none can.
  std::optional<Face> face = std::nullopt;
  // Whether something may stand in the line of the lock: a caller that does not know of it looks first. False where native_lines() is
  // empty.
  bool has_line = false;
};

// A state, and the event log of not before that state where it was asked for, by the name of the lock.
struct StateAndLog {
  Snapshot state;
  std::optional<std::vector<std::string>> log = std::nullopt;
};
using StatesAndLogs = std::map<std::string, StateAndLog, std::less<>>;

// An entry of the event log of a lock. Ids rise by 1.
struct LoggedEvent {
  std::int64_t id;
  std::string entry;
};

// What a commit does to the event log.
struct LogChange {
  std::vector<LoggedEvent> written;                       // also over an entry with the same id
  std::optional<std::int64_t> first_kept = std::nullopt;  // entries with a smaller id are deleted
  std::optional<std::int64_t> last_kept = std::nullopt;   // entries with a greater id are deleted
};

struct Change {
  std::string_view bytes;  // of the new record; empty: an empty record
  Face face;
  const LogChange& log;
  std::span<const Message> messages;  // to be delivered if, and only if, the change happens
  // Presences that must exist when the change happens, compared in the same transaction. Empty unless the store has presences.
  std::span<const PresenceId> needed = {};
  // Presences of holders that this change ends, because the read showed them as gone. A store whose reads are answered by one server
  // alone compares in the same transaction that they do not exist, else it is a Conflict: the trees of two servers of ZooKeeper 3.8
  // have differed after a leader change. Other stores may ignore them.
  std::span<const PresenceId> ended = {};
  const LineChange* line = nullptr;  // nullptr: none. Of a Backend with a NativeLine
};

struct Committed {
  Version version;
  std::int64_t order = 0;  // Contender::order of a new contender
};
struct Conflict {};  // the record has another version: nothing was changed, no message sent
// The record has this version, but a needed presence is gone: nothing was changed, no message sent. A store that cannot tell which
// of the two it was answers Conflict, after which the engine asks for its presences again.
struct PresenceGone {};
// The store takes no change of this size, at each try: nothing was changed, no message sent. `why` names the size and the setting.
struct TooLarge {
  Error why;
};
using Commit = std::variant<Committed, Conflict, PresenceGone, TooLarge>;

// Not thread-safe; may be handed from one thread to another between calls.
class Backend {
 public:
  virtual ~Backend() = default;

  // Linearizable: shows every change whose answer any client has got.
  virtual Result<Snapshot> read(std::string_view name, const CallLimits& limit) = 0;
  // Replaces the record if it still has this version; atomic with the face, the events and the messages.
  virtual Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                                  const CallLimits& limit) = 0;
  // After the return each message to these channels is received, and every later snapshot of their locks names them, until the
  // source is destroyed or its client dies.
  virtual Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels,
                                                        const CallLimits& limit) = 0;
  // The event log of the lock, the oldest entry first.
  virtual Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) = 0;

  // What read() and, `with_logs`, events() say of several locks, in few requests whatever their number. Nothing is committed on such
  // a state but what sends no message. A lock that is left out must be read by itself. The default leaves out all.
  virtual Result<StatesAndLogs> read_each(std::span<const std::string_view>, bool /*with_logs*/, const CallLimits&)
  {
    return StatesAndLogs();
  }

  enum class Which { held, with_events };
  // The names that match the glob, sorted: of the locks whose face shows a holder, or that have an event log.
  virtual Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) = 0;

  // Deletes the record and the event log of a lock that no other client uses. The default is for stores that end with their
  // process.
  virtual Result<Done> erase(std::string_view, const CallLimits&)
  {
    return Error{ErrorCode::config, "this store deletes no lock"};
  }
  // The next read is that of a client that takes a lock. In the same request it also asks whether the user has the rights that
  // `rlock acl` prints, unless an earlier read found them; where one is missing, that read is refused. The default asks for none.
  virtual void ask_for_rights() {}
  // LockStore::check_server.
  virtual Result<std::vector<Finding>> check_server(const CallLimits&) { return std::vector<Finding>(); }
  // Whether another program shares the table of locks. A version is then one of the record and of the face.
  [[nodiscard]] virtual bool is_shared() const { return false; }
  // How much earlier than the sending the time of a read may be, where the store's clock is coarse. Leases count from so much before
  // their sending.
  [[nodiscard]] virtual Millis time_behind() const { return Millis{0}; }
  // nullptr: the holds of this store end by its clock.
  virtual Presences* presences() { return nullptr; }
  // A line for each format. Empty: the store has no lock clients of its own, or rlock does not know them.
  virtual std::vector<NativeLine*> native_lines() { return {}; }
  // Presences stay.
  virtual void drop_connection() = 0;
  // Of which each serves every request, and the next one is asked after one that has not answered. 1: there is no other one to ask.
  [[nodiscard]] virtual std::size_t members() const { return 1; }
};

}  // namespace rlock::record
