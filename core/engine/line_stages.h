// SPDX-License-Identifier: Apache-2.0
// The stages of a store with native clients (native_line.h): one looks at their line, and fits what the script sees and answers to it.
// The other one gives rlock's owners their places there, and lets a holder by the record run only when it is first. Private to engine.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/result.h"
#include "engine/native_line.h"
#include "engine/record_round.h"

namespace rlock::record {

// What a request does with the line.
enum class LineUse {
  none,
  takes,   // an acquire: the owner may stand in the line
  keeps,   // a renewal or a nested hold: the owner must be first in the line
  leaves,  // a release
  shows,   // a script for people, who see the native client that is first
};
LineUse line_use(const Work& work);
// An acquire of a reader, or of a permit.
bool asks_for_shared(const Work& work);
// An acquire that does not wait.
bool is_try(const Work& work);

bool is_of_read_write_lock(const VerbRequest& request);
// The format that an acquire asks for.
LineFormat line_wanted(const Work& work);
// Errors: ErrorCode::config: the store has no clients of that format.
Result<Done> check_has_line(const std::vector<NativeLine*>& lines, const Work& work);

bool is_same(const std::optional<Contender>& one, const std::optional<Contender>& other);
answers::Busy busy_behind(const Contender& first);
// A waiter that is told so asks at once, and so joins the line.
void call_first_waiter(Round& round, const LockRecord& record);

// Has something to do in a round where native clients may take part in the lock.
class LineLook final : public Stage {
 public:
  explicit LineLook(std::vector<NativeLine*> lines) : m_lines(std::move(lines)) {}

  Result<bool> before_script(Round& round, const CallLimits& limit) override;
  Result<Done> after_script(Round& round, const CallLimits& limit) override;

 private:
  [[nodiscard]] NativeLine* line_of(LineFormat format) const;
  Result<Done> look(Round& round, const CallLimits& limit) const;
  Result<Done> look_for_native(Round& round, const CallLimits& limit) const;
  Result<Done> check_no_native(Round& round, const CallLimits& limit) const;
  [[nodiscard]] Result<Done> check_format(const Work& work) const;
  void release_to_line(Round& round);

  const std::vector<NativeLine*> m_lines;
  // In this round.
  LineFormat m_format;             // of the lock
  std::optional<Entry> m_covered;  // what the lock's own key holds, where the script sees a native client there
  bool m_calls_waiter = false;     // the release passes the lock on to no waiter
};

// Has something to do in a round on a lock beside native clients, or that becomes one. It stands before the presences, with which
// contenders end, and before LineLook, which finds the line.
class LinePlace final : public Stage {
 public:
  Result<bool> before_script(Round& round, const CallLimits& limit) override;
  Result<Done> after_script(Round& round, const CallLimits& limit) override;
  Result<Done> after_commit(Round& round, const CallLimits& limit) override;

 private:
  void take_places(Round& round);
  Result<LineView> view_after(const Round& round, const CallLimits& limit) const;

  // In this round: of the owner that the script has granted the lock to, or renewed; empty: none.
  std::string m_contender;
};

}  // namespace rlock::record
