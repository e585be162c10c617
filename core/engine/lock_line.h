// SPDX-License-Identifier: Apache-2.0
// What the engine does for a lock beside native clients (native_line.h): it looks at their line, and fits state, decision and answer to
// it. Private to engine.
//
// The record host calls it in this order: use_in, format_in · look · begin · check_format · without_hand_over, or the script alone ·
// refusal · tell · note_take, or note with the bindings · the commit · answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/result.h"
#include "engine/key_space.h"
#include "engine/native_line.h"
#include "engine/record_backend.h"
#include "engine/record_work.h"

namespace rlock::record {

// Not thread-safe. Does nothing in a store without lock clients of its own.
class LockLine {
 public:
  // Both must outlive it. `keys`: those on which the scripts run.
  LockLine(Backend& backend, KeySpace& keys);

  [[nodiscard]] LineUse use_in(const VerbRequest& request) const;
  // The format that an acquire asks for. Errors: ErrorCode::config: this store has no such clients.
  [[nodiscard]] Result<LineFormat> format_in(const VerbRequest& request) const;

  // After the read: chooses the line of the lock, and sets Snapshot::line where it counts.
  Result<Done> look(const Work& work, Snapshot& state, const CallLimits& limit);
  // Whether look() has chosen a line, which it does wherever the store has one.
  [[nodiscard]] bool is_known() const { return m_line != nullptr; }

  // Before the script: ends what is over by the line, and shows the script the native client that is in its way.
  void begin(const Work& work, const Snapshot& state, Started& start) const;
  // Whether the lock may be taken as the caller asks.
  [[nodiscard]] Result<Done> check_format(const Work& work, const Started& start) const;
  // A release behind which a native client is next, or a waiter that is not in the line yet, hands the lock over to no waiter: the work
  // that does so; nullopt for another one. With readers, the first waiter looks who stands in front of it.
  [[nodiscard]] std::optional<Work> without_hand_over(const Work& work, const Snapshot& state,
                                                      const Started& start) const;
  void call_first_waiter(const Work& work, const Started& start) const;

  // After the script.
  // The answer instead of a grant, to a caller that does not wait, and so stands in no line.
  [[nodiscard]] static std::optional<Value> refusal(const Work& work, const Snapshot& state, const Decision& decision);
  // What inspect cannot know.
  void tell(const Snapshot& state, const Started& start, Decision& decision) const;
  // force-unlock of a native client: its contender goes, and the event log says so.
  Result<Done> note_take(const Work& work, const Snapshot& state, const Started& start, Decision& decision);
  // A waiter whose contender cannot get another session waits with the presence of its hold.
  [[nodiscard]] Asked asked(const Work& work, const LockRecord& after) const;
  // Adds to the decision what the change of the record needs in the line.
  void note(const Work& work, const Snapshot& state, const Started& start, LockRecord& after, Decision& decision) const;
  // The first waiter joins the line behind the holder when it asks.
  void call_waiter_in(const Work& work, const LockRecord& after) const;
  // A script has the time for the fencing number of a grant. Here it is the order of the owner's contender.
  static void note_fences(const Snapshot& state, const LockRecord& after, Decision& decision);

  // After the commit: the record grants a lock beside native clients, but the line decides. The answer becomes that of a busy lock until
  // the owner's contender is first. False: the state must be read again, because the contender is gone, or is first now.
  Result<bool> answer(const Work& work, const Snapshot& state, std::int64_t order, Decision& decision,
                      const CallLimits& limit);

 private:
  static bool asks_for_shared(const Work& work);
  static bool is_try(const Work& work);
  static std::vector<answers::WaiterRow> with_native_waiters(const std::vector<answers::WaiterRow>& rows,
                                                             const Started& start);
  void choose_line(const Work& work, const LockRecord& record);
  Result<Done> look_for_native(const Work& work, Snapshot& state, const CallLimits& limit);
  Result<Done> check_no_native(const Work& work, const Snapshot& state, const CallLimits& limit);
  bool end(const Work& work, const Snapshot& state, LockRecord& record) const;
  std::optional<Contender> show(const Work& work, const Snapshot& state, LockRecord& record) const;
  std::optional<Contender> show_shared(const Work& work, const Snapshot& state, LockRecord& record) const;
  std::optional<Contender> stop_before(const Work& work, const Snapshot& state, LockRecord& record) const;
  [[nodiscard]] std::string holder_without_contender(const Work& work, const LockRecord& record) const;

  const std::vector<NativeLine*> m_lines;
  NativeLine* m_line = nullptr;  // of the lock of the last state
  KeySpace& m_keys;
};

}  // namespace rlock::record
