// SPDX-License-Identifier: Apache-2.0
// The rules of the queue (rules.h), by what a script made of the lock and of the queue.
#pragma once

#include "sim/lock_state.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace rlock::sim {

class QueueRules {
 public:
  // `state` must outlive it. `may_forget`: the server may lose its last writes. `fail`: told of each broken rule.
  QueueRules(LockState& state, bool may_forget, std::function<void(const std::string&)> fail);

  void before_script();
  void after_script(const Words& request);

 private:
  void check_listening(const std::string& script, const std::string& caller, const std::string& holder);
  void check_joining(const Words& request);
  void check_length(const Words& request);
  void check_order(const std::string& holder, bool passes_silent);
  [[nodiscard]] bool is_silent_in_front();

  LockState& m_state;
  const bool m_may_forget;
  const std::function<void(const std::string&)> m_fail;
  std::string m_holder_before;  // of an exclusive lock
  std::map<std::string, double> m_queue_before;
  std::map<std::string, int> m_priorities_before;
  std::map<std::string, std::int64_t>
      m_untaken;  // whom the lock was handed over to, and when, in us, until a request of that holder
};

// The owner for which a script runs.
const std::string& caller_of(const Words& request);

}  // namespace rlock::sim
