// SPDX-License-Identifier: Apache-2.0
// The contract with the scripts of lua/: what each of them gets (`calls`) and what it answers (`answers`).
//
// The order of the fields is the order of KEYS, of ARGV and of the elements of an answer, and is written only here. lua/build.lua reads
// this file. In a script @renew.ttl@ is the place of that field of Renew, and @unpack.acquire@ makes a local of each field of Acquire, in
// upper case: "HOLD_ID, TTL, … = unpack(ARGV, 6)". So each field stands on a line that begins with its type.
// Clients of other versions ask the same server: a field that is added comes last, and may be missing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "base/clock.h"
#include "base/fields.h"
#include "lock/requests.h"

namespace rlock::calls {

// At the end of a call: what a missing one stands for is not sent at all.
template <typename Value>
struct Tail : std::optional<Value> {
  static constexpr bool is_tail = true;
  using std::optional<Value>::optional;
};

// KEYS of the script of a verb.
struct Keys : FieldCount<11> {
  std::string lock;      // in the layout of its kind
  std::string fence;     // string: the last fencing number given out
  std::string holder;    // hash {owner: HolderInfo, "hold:ID": owner}
  std::string force;     // hash {owner: operator}: requests to release
  std::string events;    // list: the event log
  std::string queue;     // sorted set {owner: ticket}: the waiters
  std::string waiters;   // hash {owner: HolderInfo}
  std::string reserved;  // string: a free lock that is left to foreign clients for a moment
  std::string fair;      // list: the waiters of Redisson's fair lock
  std::string second;    // a second key of some kinds: the expiry of each holder
  std::string done;      // string: the success that `rlock once` remembers; and the channel that announces it
};

// The arguments with which every call of a verb begins. Its own ones follow.
struct Every : FieldCount<5> {
  std::string owner;
  // Of releases, on which foreign clients are told that the lock became free; empty: the kind has none.
  std::string channel;
  std::string owner_channel;   // the prefix of the channel of each owner
  std::string requested_mode;  // "", "read", "write", or the number of permits
  std::string topology;        // "cluster": several servers share the keys, by slots; else empty
};

// What to do when the lock is busy.
enum class WaitMode {
  attempt,  // nothing
  wait,     // join the queue
  latest,   // the same, and remove the waiter that joined with `latest` before
  first,    // the same as wait, before all waiters but those that also joined so: a freeze
  // Nothing, also if the lock is free: a nested hold, whose owner must not get back unnoticed what it has lost.
  again,
};
constexpr std::string_view name_of(WaitMode mode)
{
  constexpr std::array<std::string_view, 5> names{"try", "wait", "latest", "first", "again"};
  return names[static_cast<std::size_t>(mode)];
}

// On what terms a caller joins the queue.
struct JoinTerms : FieldCount<3> {
  std::optional<std::uint64_t> max_waiting;  // the caller does not join when so many wait; missing: however many wait
  // That many waiters in front listen, and one of those behind that does not listen may be alive all the same; missing: all listen
  std::optional<std::uint64_t> listening;
  std::int64_t priority = 0;  // HolderInfo::priority
};

// Takes a free lock, confirms one that was handed over, or joins the queue.
struct Acquire : FieldCount<8> {
  std::string hold_id;  // the owner itself, or for a nested hold an id of its own
  Millis ttl;
  std::string info;  // HolderInfo
  WaitMode wait_mode;
  std::uint64_t ticket = 0;  // Busy::ticket of an earlier answer, which puts a queue that was lost in order again; or 0
  // Milliseconds for which another job's success also counts for this job, which then need not run; or "BEGIN NEXT LENGTH": the success
  // counts if it is of the same period as this request. One period begins at BEGIN, and the next one at NEXT, in milliseconds; LENGTH
  // is that of most periods; or "0".
  std::string success_max_age = "0";
  std::string rights = {};  // "unchecked": the connection named no user, so the script does not check its rights
  Tail<JoinTerms> terms = {};
};

enum class Purpose {
  none,
  confirm,   // the first renewal after a hand-over whose message has started the job
  stopping,  // the owner has received a request for release, and stops its job
};
constexpr std::string_view name_of(Purpose purpose)
{
  constexpr std::array<std::string_view, 3> names{"", "confirm", "stopping"};
  return names[static_cast<std::size_t>(purpose)];
}

// Extends a lock that the owner still holds.
struct Renew : FieldCount<3> {
  Millis ttl;           // 0: only checks
  std::string hold_id;  // empty: any hold of the owner
  Purpose purpose = Purpose::none;
};

// Of the run that a release ends.
struct ReleasedRun : FieldCount<3> {
  std::optional<Millis> history;  // the caller's --history
  std::string info;               // HolderInfo, if the run has lost the lock, or if the lock was over after the run
  std::optional<Millis> ran;      // since the run began, if its success counts from then
};
inline constexpr std::int64_t no_hand_over = -1;

// Releases a lock that the owner still holds and passes it on, or leaves the queue.
struct Release : FieldCount<6> {
  std::string hold_id;  // as it was acquired
  // How many subscribers of the lock's channel are rlock processes. no_hand_over: a quorum takes back an attempt, which is no news for
  // rlock waiters: the lock is not passed on.
  std::int64_t own_subscribers;
  Millis min_hold{0};          // for which the lock stays taken after its last hold
  Millis remember_success{0};  // for which the server remembers the job's success; or 0
  std::string result;          // RunResult
  Tail<ReleasedRun> run = {};
};

// Returns what the server knows about a lock. Changes nothing.
struct Inspect : FieldCount<1> {
  Tail<std::string> log_from = {};  // the index of the first entry of the event log to return, such as -128
};

// Makes the owner give the lock up, step by step.
struct Force : FieldCount<3> {
  std::string requester;  // for people
  ForceStep step;
  Millis request_ttl;  // the request stands at least so long
};

// Makes the fencing number of a lock that the owner still holds at least this number. A lock on several servers needs that, because each
// server counts for itself: from now on the owner has the number on which they agree.
struct Raise : FieldCount<1> {
  std::uint64_t fence;
};

// Logs that the run of the owner did not begin: the lock was busy, or the command cannot be executed.
struct Skip : FieldCount<4> {
  std::string info;  // HolderInfo
  Millis waited;
  std::optional<int> exit_code;  // of a command that cannot be executed; missing: the lock was busy
  std::string newer = {};        // SkippedRun::newer
};

using Verb = std::variant<Acquire, Renew, Release, Inspect, Force, Raise, Skip>;

// The scripts without kind, each with KEYS and arguments of its own.

// Tells since when a server of a quorum has its data. KEYS: marker_key.
struct Marker : FieldCount<2> {
  Millis ttl;          // of a lock; or 0
  std::int64_t since;  // that of an earlier answer by which the client found that the server counts; or 0
};

// Deletes what the server keeps of a lock of any kind that is free, all but its fencing number and its waiters.
struct ForgetKeys : FieldCount<6> {
  std::string lock;
  std::string second;
  std::string own_number;
  std::string events;
  std::string holder;
  std::string force;
};

// The list of kept runs (lock/kept_runs.h). KEYS: the list. The first argument is the word of the call.
struct ReadRuns : Worded<"read", 1> {
  std::int64_t from;  // an index
};
struct KeepRuns : Worded<"keep", 3> {  // appends the chunks
  Millis memory;                       // for which the list lasts
  std::size_t most;                    // chunks that are kept, the last ones
  std::vector<std::string> chunks;
};
struct ReplaceRuns : Worded<"replace", 5> {  // the same in place of the first `old` chunks
  Millis memory;
  std::size_t most;
  std::size_t old;
  std::string last;  // of the old chunks
  std::vector<std::string> chunks;
};
struct ForgetRuns : Worded<"forget", 0> {};

// One page of SCAN over what may be locks. No KEYS.
struct LookThrough : FieldCount<3> {
  std::string cursor;
  std::string glob;
  std::string count;
};

}  // namespace rlock::calls

namespace rlock::answers {

// To Acquire.
struct Granted : Worded<"granted", 3> {
  std::uint64_t fence = 0;
  std::int64_t count = 0;  // holds of the owner
  bool agreed = false;     // several servers have agreed on the number
};
struct Done : Worded<"done", 1> {  // a job has succeeded; the caller holds nothing and has left the queue
  Millis ago{0};
};
struct Busy : Worded<"busy", 11> {
  std::optional<Millis> ttl = {};        // until the lock, or the reservation, expires
  std::string owner = {};                // empty: the lock is free, but reserved, or not looked at yet
  std::int64_t count = 0;                // holds of that owner
  std::optional<std::string> info = {};  // HolderInfo
  std::int64_t place = 0;                // in the queue, from 0; of a caller that is not in it: the length of the queue
  std::uint64_t ticket = 0;
  std::optional<Millis> again_in = {};   // when to ask again
  std::optional<std::uint64_t> at = {};  // the server's time in microseconds; missing for WaitMode::attempt
  std::optional<Millis> watch_in = {};   // when to ask at the latest
  bool tells_end = false;                // the store tells the end of a foreign holder. No script writes it
  std::int64_t full = 0;  // how many wait, if JoinTerms::max_waiting keeps the caller out of the queue; else 0
};
// To WaitMode::latest: a newer waiter has taken the place. To WaitMode::first: an operator has ended the freeze. Nothing was changed.
struct Replaced : Worded<"replaced", 1> {
  std::optional<std::string> by;  // HolderInfo of the newer waiter; or Force::requester
};

// To several verbs. Nothing was changed.
struct Denied : Worded<"denied", 2> {
  std::string command;
  std::string key;
};
struct Other : Worded<"other", 1> {
  std::string content;  // what the key holds: KindDescriptor::key_content, or a word for people
};
struct Differs : Worded<"differs", 3> {
  std::int64_t permits = 0;    // the number at the key
  std::int64_t requested = 0;  // the number that was asked for
  bool are_held = false;       // false: rlock did not write the number
};
// The owner does not hold the lock, or may not renew it.
struct Lost : Worded<"lost", 5> {
  std::string what;                      // a Loss, or what the key holds
  std::string owner;                     // the present one
  std::optional<std::string> info;       // HolderInfo of that owner
  std::optional<std::string> requester;  // of the release
  std::optional<std::uint64_t> at;       // the server's time in microseconds
};

// To Renew. The time is the server's, in microseconds, because the ttl runs out by the server's clock.
struct Kept : Worded<"kept", 2> {
  std::optional<std::string> requester;  // of the release
  std::optional<std::uint64_t> at;
};

// To Raise.
struct Raised : Worded<"raised", 0> {};

// To Skip.
struct Skipped : Worded<"skipped", 0> {};

// To Release.
struct Released : Worded<"released", 3> {
  std::int64_t admitted = 0;  // waiters
  bool earlier = false;       // an earlier request did it
  std::string untold = {};    // Released::untold of lock/requests.h. No script writes it
};
struct StillHeld : Worded<"still_held", 1> {  // another hold of the same owner is left
  std::int64_t count = 0;
};
struct Left : Worded<"left", 0> {};  // the owner was still waiting, and has left the queue

// To Force.
struct Held : Worded<"held", 7> {
  std::string owner;
  std::int64_t count = 0;
  std::optional<std::string> info;
  std::int64_t listening = 0;        // subscribers that got the request
  std::optional<Millis> lasts;       // until the hold ends
  std::optional<Millis> silent_for;  // since the owner last said that it stops its job
  bool is_rlock = false;             // the owner heeds a revocation
};
struct Broken : Worded<"broken", 4> {
  std::string owner;
  std::int64_t count = 0;
  std::optional<std::string> info;
  bool job_was_over = false;
};
struct Changed : Worded<"changed", 3> {  // another owner holds the lock; nothing was changed
  std::string owner;
  std::int64_t count = 0;
  std::optional<std::string> info;
};
struct Free : Worded<"free", 0> {};

// To Inspect. Rows follow each other in one list.
struct HolderRow : FieldCount<6> {
  std::string owner;
  std::int64_t count = 0;
  std::string mode;
  std::optional<std::string> info;
  std::optional<Millis> age;  // since the grant
  bool revoked = false;       // its renewals are refused
};
struct WaiterRow : FieldCount<5> {
  std::string owner;
  std::string mode;
  std::optional<std::string> info;
  bool is_connected = false;  // false: it does not listen
  std::int64_t passed = 0;    // Waiter::passed
};
struct Known : Worded<"known", 13> {
  std::uint64_t fence = 0;  // of the holder, if there is only one; else the last number that the server gave out
  std::optional<Millis> ttl;
  std::int64_t limit = 0;  // permits; else 0, also if their number is gone
  std::int64_t count = 0;  // holders, of which `holders` may leave out some
  std::vector<HolderRow> holders;
  std::vector<WaiterRow> waiters;  // the first thousand
  bool agreed = false;
  bool proven = false;                     // the key is provably a lock
  std::optional<std::uint64_t> succeeded;  // when a job last succeeded under it, in microseconds
  Millis remembered{0};                    // until the server forgets that
  std::optional<std::uint64_t> now;        // in microseconds
  std::vector<std::string> log;            // the entries of the event log that Inspect::log_from asks for
  std::optional<std::string> format;       // NativeFormat. No script writes it
};

// To Marker, without a word.
struct MarkerAge : FieldCount<4> {
  Millis age{0};  // for which the server has its data
  Millis longest_ttl{0};
  std::int64_t since = 0;
  bool sure = false;
};

// To ForgetKeys, without a word. Both are false for a lock that is held.
struct Forgotten : FieldCount<2> {
  bool log = false;
  bool permits = false;
};

}  // namespace rlock::answers
