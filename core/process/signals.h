// SPDX-License-Identifier: Apache-2.0
// Signals as data: blocked before anything else, read from a descriptor, never handled in a handler.
//
// The constructor notes the mask and the dispositions that we inherited; the job gets exactly those back
// (nohup's ignored HUP stays ignored, an ignored SIGCHLD too). For ourselves SIGCHLD becomes the default:
// with it ignored, waitpid(2) would lose every exit status.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "base/stop.h"

#include <csignal>
#include <optional>
#include <string>
#include <string_view>

namespace rlock {

// One per process, made in main while there is one thread. Must outlive whatever uses it.
class Signals {
 public:
  Signals();

  // From here on INT, TERM, HUP, QUIT, USR1, USR2 are read from fd(), except those that were ignored when
  // we started; PIPE, TTOU and TTIN are blocked for good.
  void block();

  [[nodiscard]] int fd() const { return m_fd.get(); }
  [[nodiscard]] StopToken stop() const { return StopToken(m_fd.get()); }  // readable: a signal is waiting

  struct Arrived {
    int number;
    bool from_terminal;  // the kernel sent it to the whole foreground group, the job's processes among it
  };
  std::optional<Arrived> take();  // the next one that waits, if any

  [[nodiscard]] bool inherited_ignored(int signal) const { return ::sigismember(&m_inherited_ignored, signal) == 1; }

  // In a child, before exec: what we inherited, again. Async-signal-safe.
  void restore() const;

 private:
  Fd m_fd;
  sigset_t m_inherited_mask;
  sigset_t m_inherited_ignored;
};

// Ends this process by that signal, as the job ended by it, without a second core dump. Falls back to exit(128 + signal).
[[noreturn]] void die_of(int signal);

std::optional<int> signal_number(std::string_view name);  // "TERM", "SIGTERM", "15"; nullopt for others
std::string signal_name(int signal);                      // "TERM"

}  // namespace rlock
