// SPDX-License-Identifier: Apache-2.0
// What a holder or a waiter stores about itself for operators, beside the lock. A plain value.
#pragma once

#include "base/clock.h"
#include "base/defaults.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

inline constexpr std::size_t longest_label = 256;    // bytes; of a reason, too
inline constexpr std::size_t longest_command = 200;  // bytes
inline constexpr int most_priority = 100;            // MOST_PRIORITY in lua/lib/names.lua; and least, below 0

// The locks of --shards, of which the holder or the waiter needs any one: KEY:NAME for each name, or KEY:0 to KEY:N-1.
inline constexpr std::size_t most_shards = 1024;
inline constexpr std::size_t longest_shard_names = 1024;  // bytes of all names together, which a record has room for
struct Pool {
  std::string key;       // KEY
  std::size_t size = 0;  // 1 to most_shards
  // "a,b,c"; empty: they are longer than longest_shard_names; nullopt: the locks have numbers
  std::optional<std::string> names = std::nullopt;

  friend bool operator==(const Pool&, const Pool&) = default;
};

struct HolderInfo {
  std::string host;
  std::int64_t pid = 0;
  std::string user;
  std::string sudo_user = {};  // the person who acts as `user`; empty: the user itself
  std::string command;         // without secrets; cut to longest_command
  std::string label;           // cut to longest_label
  std::int64_t since_ms = 0;   // by the wall clock of the holder's host; for people only
  Millis lease{0};
  bool automatic = false;  // the lease is renewed until the job is over
  bool over = false;       // the job is over: the lock stays taken for --min-hold, or until the next attempt of once
  Millis kill_after = default_kill_after;        // the time from the stop signal to KILL
  bool latest = false;                           // a newer waiter with --latest takes the place of this waiter
  int priority = 0;                              // a waiter stands before those with a smaller one
  std::optional<Millis> history = std::nullopt;  // how long the server keeps events; nullopt: default_history
  std::optional<Millis> every = std::nullopt;    // a run is expected to succeed that often; nullopt: not told
  std::string freeze = {};                       // why rlock freeze keeps jobs off; empty: the hold is no freeze
  std::optional<Pool> pool = std::nullopt;       // nullopt: the lock is no shard
};

// By the schema (lock/schema.h), with percent-escaped values: readable with redis-cli.
std::string encode(const HolderInfo& info);
// Reads a record, and masks secrets in the command. A missing or invalid field keeps its default; nullopt: no field is valid.
std::optional<HolderInfo> decode_holder(std::string_view text);

// "ann as root", or "root". Not printable.
std::string user_text(const HolderInfo& info);

// When a freeze ends, by the wall clock of this host at `now_ms`; whole seconds, so that later answers tell the same time. `left`:
// the ttl of the lock; nullopt: unknown, and the record of the freeze tells.
std::int64_t end_of_freeze_ms(const HolderInfo& freeze, std::optional<Millis> left, std::int64_t now_ms);
// "frozen by ann as root@web1 until 14:05 +01:00: moving the database". Printable.
std::string freeze_text(const HolderInfo& freeze, std::optional<Millis> left, std::int64_t now_ms);

}  // namespace rlock
