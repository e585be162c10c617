// SPDX-License-Identifier: Apache-2.0
// Locks beside the own lock clients of a store with presences, such as etcdctl lock and Curator: the native clients. Each of them puts a
// contender into the line of the lock, which ends with a lease or session, and runs when it is first there.
//
// A lock that was once taken with --format etcd, curator or kazoo has that in its record. From then on, after each change of the
// record, two owners stand in the line: the holder, and the first waiter behind it, so that native clients and rlock take turns. A
// holder by the record runs only when its contender is first in the line; until then it is told that a native client is in the way.
// The contender has the lease or session of a presence of its owner, so both end at once, and it is removed with the release. Its
// order in the line is the fencing number.
//
// In the line of a read-write lock (Curator's InterProcessReadWriteLock) readers share: all holders by the record stand there, and a
// reader runs when no writer stands in front of it. So what a contender waits for is the first of those that exclude it.
//
// In etcd any client puts the contender of another owner into the line. In ZooKeeper only the owner can, in its own session
// (NativeLine::binds_sessions): a first waiter that does not stand there yet is told to ask, and joins the line when it does.
//
// Why this is safe: no client can put a contender in front of one that is in the line. So the first contender stays the first until it
// is removed or its lease ends. A holder whose contender is gone, or has one in front that excludes it, has lost the lock. (A writer of
// Curator that also reads stands at the number of its writer's node, which the others are behind already.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/result.h"
#include "engine/presence.h"
#include "lock/lock_kind.h"
#include "lock/names.h"

namespace rlock::record {

struct LockRecord;

// Whose clients stand in a line.
struct LineFormat {
  NativeFormat clients = NativeFormat::none;
  bool has_readers = false;  // it is that of a read-write lock: curator, for InterProcessReadWriteLock

  constexpr LineFormat() = default;
  constexpr LineFormat(NativeFormat whose, bool readers = false)  // NOLINT(google-explicit-constructor): the usual line
      : clients(whose), has_readers(readers)
  {
  }
  friend constexpr bool operator==(const LineFormat&, const LineFormat&) = default;
};
inline constexpr LineFormat no_line{};

struct Contender {
  std::string name;                  // in the line
  std::int64_t order = 0;            // grows from one contender to the next
  bool is_lock = false;              // whether its name and lease show that a lock client made it
  std::optional<Millis> lasts = {};  // of the first one, if it is not the caller's: its lease; nullopt: it never ends
  bool reads = false;                // of LineView::waiting in the line of a read-write lock
};

// What a look at the line is for.
struct LookFor {
  std::string own = {};  // the name of a contender, or "": that of a new one, at the end
  bool reads = false;    // whether a new one is a reader in the line of a read-write lock
  bool holders = false;  // whether more is asked for than the names of LineView::holders
  bool waiting = false;  // whether LineView::waiting is asked for
};

struct LineView {
  // The first of `own` and of those in front of it that exclude it: `own` holds the lock when it is that. nullopt: a new contender would
  // hold it at once.
  std::optional<Contender> first;
  std::optional<Contender> own;   // that the caller asked for
  std::optional<Contender> next;  // the first one but for `own`
  std::int64_t state = 0;         // of the store
  std::vector<Contender> holders =
      {};  // in a line of a read-write lock: the first contenders, which share the lock or are one
  bool is_read_by_holders = false;  // whether they are readers
  std::vector<Contender> waiting =
      {};  // the lock clients behind the first one, or behind `holders`, if asked for; a thousand at most
};
inline constexpr int most_waiting_shown = 1000;

// What a commit does to the line, in the same transaction.
struct LineChange {
  LineFormat format = no_line;
  struct Stand {
    std::string name;
    PresenceId presence;  // with which the contender ends from now on
    bool is_new;          // else it is there, and so is its place
    bool reads = false;   // in the line of a read-write lock
  };
  std::optional<Stand> stand = {};
  std::vector<std::string> leaves = {};              // contenders that are removed
  std::optional<std::int64_t> none_came_since = {};  // LineView::state; else the commit is a Conflict
  std::optional<Contender> needed = {};              // else, or if it has another order, the commit is a Conflict
  [[nodiscard]] bool is_none() const { return !stand && leaves.empty(); }
};

// The lines of a store. Threads and errors: as for the Backend to which it belongs.
class NativeLine {
 public:
  virtual ~NativeLine() = default;

  [[nodiscard]] virtual LineFormat format() const = 0;
  // Whether a contender ends with the session of the client that made it, so that only its owner can make it. Then no commit can tell
  // that no other contender came: LineChange::none_came_since is not for this line.
  [[nodiscard]] virtual bool binds_sessions() const { return false; }
  // Such a line binds sessions.
  [[nodiscard]] bool has_readers() const { return format().has_readers; }
  // Errors: ErrorCode::config: a lock of this name cannot have a line.
  [[nodiscard]] virtual Result<Done> check_name(const LockName& lock) const = 0;
  // The name of a new contender that ends with this presence.
  [[nodiscard]] virtual std::string contender_for(const PresenceId& presence) const = 0;
  // The line, as it is after everything that the last read of this Backend returned.
  virtual Result<LineView> look(const LockName& lock, const LookFor& what, const CallLimits& limit) = 0;

  struct News {
    std::string channel;
    std::string text;
  };
  // The sources of this Backend that listen to the channel get the message when the contender is gone. `since`: LineView::state, in
  // which it was there. False: no source listens, so nothing was done.
  virtual bool tell_when_gone(const LockName& lock, const std::string& contender, std::int64_t since, const News& news,
                              const CallLimits& limit) = 0;
};

// What the engine does. Pure functions on records.

// Whether the record, as bytes, may be that of a lock beside native clients.
bool may_be_beside(std::string_view bytes);
LineFormat beside_of(const LockRecord& record);
void put_beside(LockRecord& record, LineFormat format);

// The only holder of an exclusive lock; empty: there is none.
std::string exclusive_holder(const LockRecord& record, const LockName& lock);
// The holders of a lock of any kind but permits.
std::vector<std::string> holders_of(const LockRecord& record, const LockName& lock);
// The first waiter with a presence, in the queues of the exclusive kinds; empty: there is none.
std::string first_waiter(const LockRecord& record, const LockName& lock);
// The name of the owner's contender; empty: it has none.
std::string contender_of(const LockRecord& record, const std::string& owner);
bool is_native(const LockRecord& record, const Contender& contender);
// The owner whose contender it is; empty: a native client's.
std::string owner_of(const LockRecord& record, const std::string& contender);

// Ends the holds of the owners whose contender ended with one of these presences.
void end_without_contender(LockRecord& record, const LockName& lock, const std::vector<PresenceId>& gone);
// The contender of the owner is gone, so whatever it holds is over.
void lose_contender(LockRecord& record, const LockName& lock, const std::string& owner);

// The owner holds nothing any more; its contender stays in the line.
void end_hold(LockRecord& record, const LockName& lock, const std::string& owner);

// Shows the native client as the holder, and the holder by the record as the first waiter.
void show_native(LockRecord& record, const LockName& lock, const Contender& first, std::int64_t time_us);
// Shows those that hold a read-write lock by its line, of which one at least is a native client, as the holders, and the other holders by
// the record as the first waiters.
void show_holders(LockRecord& record, const LockName& lock, const LineView& view);
// Makes a writer of that name the holder in the record, so that a script grants the lock to no caller.
void show_writer(LockRecord& record, const LockName& lock, const std::string& name);

// The client that commits.
struct Committer {
  std::string owner = {};
  PresenceId presence = {};  // of the owner, in a session of this client; empty: none
};
// Which contenders the record `after` needs, and notes them there. `view`: the line before, if it is known.
LineChange change_line(LockRecord& after, const LockName& lock, const NativeLine& line,
                       const std::optional<LineView>& view, const Committer& committer);

}  // namespace rlock::record
