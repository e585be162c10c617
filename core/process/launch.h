// SPDX-License-Identifier: Apache-2.0
// Starts the job in two steps: a new process prepares everything except execve(2), and waits at its gate.
#pragma once

#include <sys/types.h>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "base/fd.h"
#include "base/result.h"
#include "process/job.h"
#include "process/signals.h"

namespace rlock {

// The value of JobSpec::late_variable, with a fixed size, so that it fits in a message.
class FenceValue {
 public:
  FenceValue() = default;
  explicit FenceValue(std::string_view text) { text.copy(m_text.data(), m_text.size() - 1); }
  [[nodiscard]] const char* c_str() const { return m_text.data(); }
  static constexpr std::size_t size = 32;

 private:
  std::array<char, size> m_text{};
};

// What execve(2) takes: pointers into `texts`, and a null pointer at the end. execve takes char* but does not write.
std::vector<char*> exec_pointers(const std::vector<std::string>& texts);

enum class Grouping { own, shared };  // the job leads a process group of its own, or stays in the group of the runner

// What the job waits for before it begins.
class Gate {
 public:
  virtual ~Gate() = default;
  // Waits, and returns the late value; nullopt: the job must not begin. The new process calls this, so only what signal-safety(7)
  // allows is allowed.
  virtual std::optional<FenceValue> pass() = 0;
  // Whether a process has passed. The parent calls this.
  [[nodiscard]] virtual bool is_passed() const = 0;
};

// The job runs, and the kernel kills it when this process ends (PR_SET_PDEATHSIG).
struct Launched {
  pid_t pid;
};
using Launch = std::variant<Launched, NotStarted, GateKilled, NotExecuted>;

// Returns when the job runs, or will not run. Until then the new process shares the memory of this process, as with vfork(2), so
// that no memory is copied. qemu-user and valgrind copy the memory: there the function waits until the gate is passed, and a
// failed execve ends the job with ExitCode::not_executable. `group`: as for setpgid(2).
Launch launch(const JobSpec& spec, const Signals& signals, pid_t group, Gate& gate);

// Finds the program of a command, so that rlock takes no lock for a command that does not exist.

// The path that execvp(3) would execute: `name` itself if it has a slash, else the first executable file
// of that name in `path` (the value of PATH; nullopt: PATH is not set, and the default of execvp(3) is used).
// Errors: ErrorCode::not_found, ErrorCode::not_executable.
Result<std::string> find_command(const std::string& name, std::optional<std::string_view> path);

}  // namespace rlock
