// SPDX-License-Identifier: Apache-2.0
// The schema of what rlock stores on a server for people: the record of a holder or a waiter, and the entries of the event log.
// Each word is defined only here, for C++ and for the scripts.
//
// lua/build.lua reads this file: where a script says @kind.released@, @word.owner@, @field.lease@, @loss.held@ or
// @outcome.unused@, the build puts the word of that row. So each row stands on one line: `{Type::name, "word"},  // meaning`.
// Servers have entries of other versions, and clients of other versions read what this one writes: a word keeps its meaning.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace rlock {

template <typename Value>
struct SchemaRow {
  Value value;
  std::string_view word;
};

// A record consists of lines "word=value" in the order of these rows. A value has no line break in it (encode() in holder.cpp).
//
// * `history` comes first or is missing: each grant reads it, and a match at the beginning of a text is the cheapest.
// * `host` is never missing. So each later field follows a line break, by which a script finds it: @field.history@ is "^history=",
//   @field.lease@ is "\nlease=", and there is no @field.host@.
// * `auto` comes last, and `latest` does not: the scripts of rlock 0.1 look for them there.
enum class HolderField {
  history,
  host,
  pid,
  user,
  sudo_user,
  command,
  label,
  since,
  lease,
  kill_after,
  every,
  freeze,
  pool,
  shards,
  shard_names,
  latest,
  priority,
  over,
  automatic
};

inline constexpr std::array<SchemaRow<HolderField>, 19> holder_fields{{
    {HolderField::history, "history"},        // ms for which events are kept; missing: default_history
    {HolderField::host, "host"},              // text
    {HolderField::pid, "pid"},                // number
    {HolderField::user, "user"},              // text
    {HolderField::sudo_user, "sudo_user"},    // text; missing: the user acts in its own name
    {HolderField::command, "command"},        // text
    {HolderField::label, "label"},            // text
    {HolderField::since, "since"},            // ms since 1970, by the clock of the holder's host
    {HolderField::lease, "lease"},            // ms
    {HolderField::kill_after, "kill_after"},  // ms; missing: default_kill_after
    {HolderField::every, "every"},            // ms in which a run is expected to succeed; missing: not told
    {HolderField::freeze, "freeze"},          // text: why no job runs under the lock; missing: the hold is no freeze
    {HolderField::pool, "pool"},              // text: the KEY of --shards; missing: the lock is no shard
    {HolderField::shards, "shards"},          // number: of the locks of the pool
    {HolderField::shard_names,
     "shard_names"},                      // text: their names, a comma between, or empty: too long; missing: numbers
    {HolderField::latest, "latest"},      // 1 or missing
    {HolderField::priority, "priority"},  // number; missing: 0
    {HolderField::over, "over"},  // 1 or missing: the job is over, and the lock stays taken. Only a script writes it
    {HolderField::automatic, "auto"},  // 1 or 0
}};

// An entry consists of texts that NUL separates: a time, the kind, its owner, and then pairs of an EventWord and its value. The
// time is the fencing number of a grant, which is also microseconds, or "SECONDS.MICROSECONDS".
enum class EventKind { acquired, confirmed, released, forced, lost, renewed_late, asked, skipped, replaced, unused };

inline constexpr std::array<SchemaRow<EventKind>, 10> event_kinds{{
    {EventKind::acquired, "acquired"},          // info [wish] [waited] [claim]
    {EventKind::confirmed, "confirmed"},        // the owner has taken a lock that was handed over
    {EventKind::released, "released"},          // of a hold, not of an owner: owner [a result, past_run.cpp] [left]
    {EventKind::forced, "forced"},              // by
    {EventKind::lost, "lost"},                  // what by holder [info] [exit] [outcome] [fence]
    {EventKind::renewed_late, "renewed_late"},  // left
    {EventKind::asked, "asked"},                // by
    {EventKind::skipped, "skipped"},            // info waited times, and exit, holder or by
    {EventKind::replaced, "replaced"},          // by
    {EventKind::unused, "unused"},              // no job began under the hold that the owner lost
}};

enum class EventWord {
  to,
  owner,
  info,
  wish,
  waited,
  claim,
  left,
  exit,
  outcome,
  attempt,
  retry,
  fence,
  by,
  what,
  holder,
  times
};

inline constexpr std::array<SchemaRow<EventWord>, 16> event_words{{
    {EventWord::to, "to"},          // after released and forced: the owner that got the lock; then info [wish] [waited]
    {EventWord::owner, "owner"},    // of the hold
    {EventWord::info, "info"},      // a holder record
    {EventWord::wish, "wish"},      // the mode, of a kind that several may hold: read, write, or a number of permits
    {EventWord::waited, "waited"},  // ms
    {EventWord::claim, "claim"},    // yes or missing: the owner is yet to take the lock
    {EventWord::left, "left"},      // released: holds; renewed_late: ms of the lease
    {EventWord::exit, "exit"},      // exit code
    {EventWord::outcome, "outcome"},  // an Outcome; missing: as the exit code tells
    {EventWord::attempt, "attempt"},  // of a run of rlock once: its number
    {EventWord::retry, "retry"},      // ms for which the lock stays taken after a failed run of once; missing: 0
    {EventWord::fence, "fence"},      // of the run that is over
    {EventWord::by, "by"},            // who asked for the lock; replaced, skipped: the record of the newer waiter
    {EventWord::what, "what"},        // a Loss, or what the key holds
    {EventWord::holder, "holder"},    // the present one
    {EventWord::times, "times"},      // how many skipped runs the entry stands for
}};

// What a script finds instead of the hold that it looks for; in its answers, too.
enum class Loss { none, held, revoked, released };

inline constexpr std::array<SchemaRow<Loss>, 4> losses{{
    {Loss::none, "none"},          // the lock expired or was deleted
    {Loss::held, "held"},          // another client holds it
    {Loss::revoked, "revoked"},    // an operator ended the lease
    {Loss::released, "released"},  // this hold; its owner has another
}};

// How a run ended. cancelled: a signal from outside asked the job to end, and the job did not succeed. lost: another client may have
// had the lock before the job was over, or the rlock of the run was killed. unused: no job has begun under the lock, so it was no
// run.
enum class Outcome { succeeded, failed, cancelled, lost, forced, timed_out, skipped, unused };

inline constexpr std::array<SchemaRow<Outcome>, 8> endings{{
    {Outcome::succeeded, "succeeded"},
    {Outcome::failed, "failed"},
    {Outcome::cancelled, "cancelled"},
    {Outcome::lost, "lost"},
    {Outcome::forced, "forced"},
    {Outcome::timed_out, "timed_out"},
    {Outcome::skipped, "skipped"},
    {Outcome::unused, "unused"},
}};

template <typename Value, std::size_t count>
constexpr std::optional<Value> find_word(const std::array<SchemaRow<Value>, count>& rows, std::string_view word)
{
  for (const SchemaRow<Value>& row : rows) {
    if (row.word == word) {
      return row.value;
    }
  }
  return std::nullopt;
}

template <typename Value, std::size_t count>
constexpr std::string_view word_of(const std::array<SchemaRow<Value>, count>& rows, Value value)
{
  for (const SchemaRow<Value>& row : rows) {
    if (row.value == value) {
      return row.word;
    }
  }
  return {};
}

constexpr std::string_view name_of(Outcome ending) { return word_of(endings, ending); }

static_assert(holder_fields[0].value == HolderField::history && holder_fields[1].value == HolderField::host &&
                  holder_fields.back().value == HolderField::automatic,
              "readers count on these places");

}  // namespace rlock
