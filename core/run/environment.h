// SPDX-License-Identifier: Apache-2.0
// The RLOCK_* variables: sets them for the job, and reads those that an outer rlock set for this process.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include "base/clock.h"
#include "base/result.h"
#include "lock/lock_kind.h"
#include "lock/names.h"
#include "lock/reentry.h"
#include "lock/store.h"
#include "process/signals.h"
#include "stores/open.h"

namespace rlock {

// Which lock of a pool a job has (--shards).
struct Shard {
  std::size_t number;     // RLOCK_SHARD, from 0
  std::string name = {};  // RLOCK_SHARD_NAME; empty: the shards have numbers

  friend bool operator==(const Shard&, const Shard&) = default;
};

struct HeldLock {
  LockName name;
  Hold hold;     // RLOCK_TOKEN and RLOCK_HELD contain its token
  Millis lease;  // its length as the store gave it; before the grant, and after a claim, the ttl that is asked for
  std::optional<Shard> shard = std::nullopt;  // nullopt: the lock is no shard
};

struct JobLocks {
  std::vector<HeldLock> held;  // at least one; RLOCK_KEY, RLOCK_TOKEN and RLOCK_LEASE_MS are about the first
  JobServer server;
};

// The variables about the innermost lock.
constexpr std::string_view key_variable = "RLOCK_KEY";
constexpr std::string_view token_variable = "RLOCK_TOKEN";
constexpr std::string_view lease_variable = "RLOCK_LEASE_MS";
constexpr std::string_view server_variable = "RLOCK_SERVER";
constexpr std::string_view password_variable = "RLOCK_PASSWORD";  // rlock reads this variable, and sets it for no job
constexpr std::string_view password_file_variable = "RLOCK_PASSWORD_FILE";
constexpr std::string_view shard_variable = "RLOCK_SHARD";
constexpr std::string_view shard_name_variable = "RLOCK_SHARD_NAME";
constexpr std::string_view fence_variable = "RLOCK_FENCE";  // known only after the grant, so Job::go sets this variable

void unset_variable(std::vector<std::string>& environment, std::string_view name);
void set_variable(std::vector<std::string>& environment, std::string_view name, const std::string& value);

// Sets RLOCK_SERVER. If the password came from a file, also sets RLOCK_PASSWORD_FILE and unsets RLOCK_PASSWORD, which would take
// precedence over the file.
void set_server(std::vector<std::string>& environment, const JobServer& server);

// Returns `inherited` with RLOCK_KEY, RLOCK_TOKEN and RLOCK_LEASE_MS set, with set_server, RLOCK_SHARD and RLOCK_SHARD_NAME if there is
// a shard, and without RLOCK_FENCE. RLOCK_HELD has one "TOKEN KEY" per line: the locks of all ancestors, then `locks`.
std::vector<std::string> job_environment(std::vector<std::string> inherited, const JobLocks& locks);

// RLOCK_HELD: the locks of all ancestor processes, the outermost first, one line "TOKEN KEY" for each. A token contains no
// space; a key may.

inline constexpr std::string_view held_locks_variable = "RLOCK_HELD";

// A line of the value, as views into the value that was parsed.
struct HeldLockLine {
  std::string_view whole;
  std::string_view token;
  std::string_view key;  // empty: the line is invalid, and so is its token
};
std::vector<HeldLockLine> parse_held_locks(std::string_view value);

// The owners under which ancestors of this process hold, or held, this lock, by RLOCK_HELD: the innermost first, each
// once. RLOCK_HELD does not name the server; another server does not know these owners.
std::vector<Owner> ancestors_with(const std::vector<std::string>& environment, const LockName& name);

// The same for several locks of which the caller needs any one.
std::vector<Ancestor> ancestors_with(const std::vector<std::string>& environment, std::span<const LockSpec> any_of);

// The value of `name` in a list of NAME=value; nullopt: the list has no such name.
std::optional<std::string_view> find_variable(const std::vector<std::string>& environment, std::string_view name);

// The same; empty: the list has no such name.
std::string_view environment_value(const std::vector<std::string>& environment, std::string_view name);

// Detects a process that would wait for itself. Such a process runs below the job that holds the lock, but RLOCK_HELD was removed
// from its environment (su -, sudo -i), so the process cannot enter the lock again.

// Whether an ancestor of this process holds the lock for as long as its job runs, so that the wait would not end. Compares the
// holder's record (host, pid, command) with the ancestors in /proc. False for permits, because another holder may release one.
bool waits_for_itself(const LockKind& kind, const Busy& busy);

// The end of the message that the lock is busy.
constexpr std::string_view waits_for_itself_text =
    "; this process runs under that job and would wait for itself: keep RLOCK_HELD in the environment to enter the "
    "lock again";

// Follows the error of a server that refuses a job, or a script with a lock, for want of the outer rlock's password.
inline constexpr std::string_view no_password_in_job =
    "; a job does not get the password that rlock had from a URL or RLOCK_PASSWORD: with --password-file FILE on the "
    "outer rlock the "
    "job gets that file";

// The names of this process in holder records and messages.

std::string host_name();
std::string user_name();  // the name of the effective user id; the number, if the user database has no name

// The person who acts as `user`: SUDO_USER, else the login of the audit session. Empty: the user itself, or nothing tells.
std::string sudo_user(const std::vector<std::string>& environment, const std::string& user);

// "ann as root@web1 (pid 71)"
std::string own_identity(const std::vector<std::string>& environment);

// Replaces this process by a command that runs without a lock.

// Returns only when the command cannot be executed. `environment`: NAME=value. Errors: ErrorCode::not_found, not_executable.
Error exec_command(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                   const Signals& signals);

}  // namespace rlock
