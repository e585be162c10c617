// SPDX-License-Identifier: Apache-2.0
// One request to the record engine, on its way from the record that was read to the record that is written, and the stages through
// which it goes. Private to engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "engine/key_space.h"
#include "engine/native_line.h"
#include "engine/record_backend.h"
#include "engine/record_codec.h"
#include "engine/recorded_log.h"
#include "engine/script_host.h"
#include "lock/names.h"

namespace rlock::record {

// A script, or a command, for one lock.
struct Work {
  const LockName& lock;
  const Script* script = nullptr;  // nullptr: a command
  Words keys = {};
  Words words;                           // ARGV, or the command
  const VerbRequest* request = nullptr;  // nullptr: no verb

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

// A lock as it was read, or as this host has committed it since.
struct State {
  LockName lock;
  Snapshot read;  // its bytes are in `record`
  Instant at;     // when it was read
  LockRecord record;
  std::vector<PresenceId> gone = {};                                 // of the presences that the record names
  std::optional<std::vector<std::string>> whole_log = std::nullopt;  // if it was read
};

class Stage;

// What is decided on one state. The fields are in the order in which they are filled in.
struct Round {
  const Work& work;
  State state;
  std::int64_t time_us;  // of the script

  LockRecord before;                               // that the script sees
  std::vector<Stage*> stages = {};                 // that have something to do, the nearest to the script first
  std::optional<Words> words = std::nullopt;       // in place of those of the work
  std::vector<PresenceId> ended = {};              // Change::ended
  NativeLine* line = nullptr;                      // in which native clients stand, or would stand
  std::optional<LineView> view = std::nullopt;     // of that line, where it counts
  std::optional<Contender> native = std::nullopt;  // the native client that the script takes for the holder
  RecordedLog log = {};                            // of `before`

  Reply answer = {};
  std::vector<Message> messages = {};
  LockRecord after = {};      // to be written
  bool is_changed = false;    // by the script
  LogChange log_change = {};  // by the script

  bool must_write = false;  // whether or not the script has changed something
  bool is_settled = false;  // a stage has decided: those after it have nothing to add
  bool is_stale = false;    // the state is not, or is no longer, that of the store
  // Whether a waiter's presence is the one with which it will hold the lock: its contender cannot get another one.
  bool keeps_presence = false;
  std::vector<PresenceId> needed = {};  // Change::needed
  LineChange line_change = {};
  std::string free_holder = {};  // Face::holder of a free lock

  std::optional<Result<Commit>> commit = std::nullopt;  // nullopt: nothing is to be written

  // Returns how many clients get the message.
  std::int64_t publish(const std::string& channel, const std::string& text)
  {
    const auto listeners = std::ranges::count(state.read.listeners, channel);
    if (listeners > 0) {
      messages.push_back({channel, text});
    }
    return listeners;
  }
  // Nothing is written, whatever the script has done.
  void settle()
  {
    is_settled = true;
    is_changed = false;
    must_write = false;
    messages.clear();
  }
  [[nodiscard]] bool changes() const { return must_write || is_changed || !messages.empty(); }
  // nullptr: it was not committed.
  [[nodiscard]] const Committed* committed() const
  {
    return commit && *commit ? std::get_if<Committed>(&**commit) : nullptr;
  }
  [[nodiscard]] bool is_done() const { return !commit || committed() != nullptr; }
};

// One of the things that the engine does for a lock beside its script. A store has a list of them, of which a later one is nearer to the
// script: before the script they act in that order, after the script and after the commit in the reverse one. An Error ends
// the request.
class Stage {
 public:
  virtual ~Stage() = default;
  // Before the first read of a request.
  virtual Result<Done> begin(const Work&, const CallLimits&) { return Done{}; }
  // Completes the states of locks that were read together.
  virtual Result<Done> after_read(std::span<State>, const CallLimits&) { return Done{}; }
  // May change Round::before. False: the stage has nothing to do in this round.
  virtual Result<bool> before_script(Round&, const CallLimits&) { return false; }
  // May change Round::after and the answer.
  virtual Result<Done> after_script(Round&, const CallLimits&) { return Done{}; }
  // The change was committed or refused, or nothing had to be written. May change the answer.
  virtual Result<Done> after_commit(Round&, const CallLimits&) { return Done{}; }
};
using Stages = std::vector<std::unique_ptr<Stage>>;

}  // namespace rlock::record
