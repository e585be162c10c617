// SPDX-License-Identifier: Apache-2.0
// One request to the record engine, on its way from the record that was read to the record that is written. Private to engine.
#pragma once

#include <optional>
#include <string>
#include <vector>
#include "engine/key_space.h"
#include "engine/native_line.h"
#include "engine/presence_keeper.h"
#include "engine/record_backend.h"
#include "engine/record_codec.h"
#include "engine/recorded_log.h"
#include "engine/script_host.h"
#include "lock/names.h"

namespace rlock::record {

// What a script does with the line of native clients (native_line.h).
enum class LineUse {
  none,
  takes,   // an acquire: the owner may stand in the line
  keeps,   // a renewal or a nested hold: the owner must be first in the line
  leaves,  // a release
  shows,   // a script for people, who see the native client that is first
};
// A script, or a command, for one lock.
struct Work {
  const LockName& lock;
  const Script* script = nullptr;  // nullptr: a command
  Words keys = {};
  Words words;                           // ARGV, or the command
  const VerbRequest* request = nullptr;  // nullptr: no verb
  Asked asked = {};                      // in a store with presences
  LineUse line_use = LineUse::none;
  LineFormat beside = no_line;  // of an acquire

  // nullptr: it is another verb, or none.
  template <typename Verb>
  [[nodiscard]] const Verb* as() const
  {
    return request == nullptr ? nullptr : request->as<Verb>();
  }
  // Of a verb.
  [[nodiscard]] const std::string& owner() const { return request->owner.text(); }
  [[nodiscard]] bool reads_log() const { return as<calls::Inspect>() != nullptr && as<calls::Inspect>()->log_from; }
};
// The record before a script.
struct Started {
  LockRecord record;
  RecordedLog log;
  bool must_write;                                 // whatever the script does
  std::optional<Contender> native = std::nullopt;  // that the script takes for the holder
  std::optional<Entry> covered = std::nullopt;  // what the lock's own key holds, where the script sees `native` there
  LineFormat beside = no_line;
  // For people: who stands behind the first of a line.
  struct InLine {
    std::string owner;  // of a waiter, or of a holder, by the record; empty: a native client
    Contender contender;
  };
  std::vector<InLine> in_line = {};
};
struct Decision {
  Value answer;
  std::string bytes;
  Face face;
  LogChange log;
  bool is_written = false;  // also if the bytes are the same
  bool is_stale = false;    // the state must be read again
  std::vector<PresenceId> needed = {};
  LineChange line = {};
  std::string contender = {};  // of the owner that the script has granted the lock to, or renewed; empty: none
};

}  // namespace rlock::record
