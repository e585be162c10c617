// SPDX-License-Identifier: Apache-2.0
// `rlock force-unlock`: asks the holder to release, gives it time, and then ends the lock.
//
// If the holder answers that it is stopping its job, force-unlock waits as long as the job can still die of KILL. A holder that
// is silent for the grace is stopped, cut off or dead, and its job may still run. If such a holder is an rlock, the server
// refuses its renewals, so that the lock ends with its ttl and the job is dead before. The server cannot refuse the renewals of a
// foreign client, so force-unlock removes that lock at once.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include "base/log.h"
#include "lock/store.h"
#include "lock/waiting.h"

namespace rlock {

struct ForceUnlockRequest {
  LockName name;
  LockKind kind;
  Owner owner;     // the holder that the operator saw; a lock of another owner stays untouched
  std::string by;  // the operator, for the holder and the event log: "alice@web1 (pid 71)"
  Millis grace;    // how long the holder may be silent; zero: the lock is removed at once
  Millis server_timeout;
  // Called once, when the server begins to refuse renewals; may be empty. `listens`: a process has got the request, or renews the
  // lock.
  std::function<void(const ForceHeld&, bool listens)> revoked;
  bool joins = false;  // if the holder has got a request of another client already, that request stands
};

// The holder stopped its job and released the lock.
struct ReleasedByHolder {
  Holder holder;
};
// The holder did not answer, and its lease ended.
struct ForceExpired {
  Holder holder;
  bool revoked = false;  // by this request; false: it was no longer renewed
};
// The lock was removed.
struct Broken {
  Holder holder;
  bool job_was_over = false;
};
// The holder keeps the lock, because its job did not end after KILL. The request stands: the holder releases the lock when the
// job has ended.
struct StillStopping {
  Holder holder;
  Millis waited;  // since the holder said that it stops its job
};
// Parts of the messages about an end by force.
inline constexpr const char* no_process_answers = "no process answers for it, as for a lease of rlock acquire";
inline constexpr const char* job_may_run = ", whose job may still be running";

// "alice@web1 (pid 71), running ./job.sh, has been stopping its job for 15s, but …". Printable.
std::string describe(const StillStopping& end);
// Whether the holder is a run, which releases when its job is dead; false: it may be a script, or another client.
bool is_run(const Holder& holder);

using ForceEnd = std::variant<ReleasedByHolder, ForceExpired, Broken, ForceFree, ForceChanged, StillStopping>;

// Sends the requests of one force-unlock one by one, so that the caller can do other work between them.
// Ownership: `store` and `clock` must outlive the object. Threads: used from one thread.
class ForcedRelease {
 public:
  ForcedRelease(LockStore& store, ForceUnlockRequest request, const Clock& clock);

  [[nodiscard]] Instant due() const { return m_due; }  // when the caller must call step()
  // Sends one request. nullopt: further requests are needed. Errors: those of force_unlock.
  using Step = std::optional<Result<ForceEnd>>;
  Step step(StopToken stop);

 private:
  enum class Next { begin, look, revoke, repeat_revoke, take };
  // The answer to a request. Neither member is set: the server did not answer, and gets the request again.
  struct Found {
    std::optional<ForceHeld> held;
    Step end;  // the owner no longer holds the lock, or an error that is final
  };
  Step begin(StopToken stop);
  Step look(StopToken stop);
  Step revoke(StopToken stop);
  Step take(StopToken stop);
  Step go_on(Next next);
  Step pause(Next next);
  Result<ForceAnswer> send(ForceStep step, StopToken stop);
  Found ask_again(ForceStep step, StopToken stop);
  void note_holder(const ForceHeld& held);
  Step end_if_job_survives(const ForceHeld& held);
  [[nodiscard]] Result<ForceEnd> end_of_hold(StopToken stop) const;
  [[nodiscard]] Result<std::optional<EventKind>> logged_end(StopToken stop) const;
  static Result<ForceEnd> end_after(const Result<ForceAnswer>& answer);

  LockStore& m_store;
  const ForceUnlockRequest m_request;
  const Clock& m_clock;
  Next m_next = Next::begin;
  Instant m_due;
  Millis m_pause;
  Instant m_sent_at{};                      // when the last request was sent
  Instant m_heard_at{};                     // when the last request with the answer "held" was sent
  Instant m_ends_at = far_future;           // when the lease ends unless it is renewed
  std::optional<Instant> m_stopping_since;  // when the holder first said that it stops its job; nullopt: it has not
  Instant m_silent_since{};                 // when the holder last said that it stops its job, or the first request
  Millis m_silence_limit{0};
  std::optional<ForceHeld> m_last_held;
  bool m_listens = true;
  ForceAnswer m_last = ForceFree{};
};

// Takes the lock from its holder. Threads: used from one thread. Errors: those of the store; ErrorCode::interrupted: `stop` was requested.
Result<ForceEnd> force_unlock(LockStore& store, const ForceUnlockRequest& request, const Clock& clock, StopToken stop);

// The same for several holders at the same time. Calls `ended` for each holder whose hold is over. The first error ends all.
using OnForceEnd = std::function<void(const ForceEnd&)>;
Result<Done> force_unlock_all(LockStore& store, std::span<const ForceUnlockRequest> requests, const Clock& clock,
                              StopToken stop, const OnForceEnd& ended);

// Stops each holder that is in the way of a waiter (run --cancel-in-progress), as force-unlock does: the holder's job is dead
// before the lock is handed over.
//
// If another client has asked the holder already, that request stands. A request that fails is repeated after a while. A key that
// is not provably a lock stays untouched, because its value may be the data of another program.

// Ownership: `store`, `spec`, `clock` and `log` must outlive the object. Threads: used from the waiting thread.
class CancelHolder final : public HolderStopper {
 public:
  CancelHolder(LockStore& store, const LockSpec& spec, Millis server_timeout, const Clock& clock, const Log& log);

  void in_the_way(const Busy& busy) override;
  [[nodiscard]] Instant due() const override;
  bool step(StopToken stop) override;

 private:
  bool begin(StopToken stop);
  void ask(const Holder& holder, const LockKind& kind);
  void tell_revoked(const ForceHeld& held, bool listens) const;
  void tell(const ForceEnd& end) const;
  void failed(const Error& error);
  void give_up(const Error& error);

  LockStore& m_store;
  const LockSpec& m_spec;
  const Millis m_server_timeout;
  const Clock& m_clock;
  const Log& m_log;
  const std::string m_lock;                // the name of the lock for messages
  std::optional<Owner> m_holder;           // the last holder that was in the way
  Instant m_begin_at = far_future;         // when to ask m_holder
  std::optional<ForcedRelease> m_release;  // nullopt: no holder is being stopped
};

}  // namespace rlock
