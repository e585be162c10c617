// SPDX-License-Identifier: Apache-2.0
// The job before it is one: a process that has done all but execve(2), and waits to be let go.
#pragma once

#include "base/fd.h"
#include "job/job.h"
#include "job/signals.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <variant>

#include <sys/types.h>

namespace rlock {

// What becomes known at the last moment, in the size that every message can carry.
class LateValue {
 public:
  LateValue() = default;
  explicit LateValue(std::string_view text) { text.copy(m_text.data(), m_text.size() - 1); }
  [[nodiscard]] const char* c_str() const { return m_text.data(); }
  static constexpr std::size_t size = 32;

 private:
  std::array<char, size> m_text{};
};

enum class Grouping { own, shared };  // it leads a group of its own, or stays in the forker's

// Whoever holds this is the parent; the process dies with it (PR_SET_PDEATHSIG).
class GatedJob {
 public:
  // `foreign`: a descriptor of the parent that must not be held open by the one that waits.
  // An errno where there is no more memory, process or descriptor.
  static std::variant<GatedJob, int> fork(const JobSpec& spec, const Signals& signals,
                                          Grouping grouping, int foreign);

  [[nodiscard]] pid_t pid() const { return m_pid; }
  void let_go(const LateValue& value) const;
  [[nodiscard]] std::optional<int> exec_error() const;  // to be asked when it has ended

 private:
  GatedJob(pid_t pid, Fd gate) : m_pid(pid), m_gate(std::move(gate)) {}
  pid_t m_pid;
  Fd m_gate;  // go is sent through it, and the errno of execve comes back
};

}  // namespace rlock
