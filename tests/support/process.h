// SPDX-License-Identifier: Apache-2.0
// A child process with its streams in files; and rlock as a child process.
#pragma once

#include "base/clock.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rlock::test {

using Words = std::vector<std::string>;

struct ProcessOptions {
  // On top of clean_environment; nullopt: unset.
  std::map<std::string, std::optional<std::string>> env;
  std::filesystem::path cwd;         // empty: that of the test
  std::optional<std::string> input;  // nullopt: /dev/null
  int terminal = -1;                 // a pty's slave: the streams and the controlling terminal of a new session
  bool new_session = false;
  std::vector<int> keep_fds;         // inherited under the same numbers; nothing else is
  std::vector<int> ignored_signals;  // every other signal has its default
  std::vector<int> blocked_signals;
  int death_signal = 0;  // what it gets when the thread that started it ends (prctl(2)); 0: nothing
};

// The password of all tests. The end of each Process checks that rlock never prints it.
inline constexpr const char* test_password = "hunter2";

struct Exit {
  int code = -1;   // -1: it died of a signal
  int signal = 0;  // 0: it exited
  friend bool operator==(const Exit&, const Exit&) = default;
};
std::string show(const Exit& exit);  // "exit 75", "signal 9"
inline std::ostream& operator<<(std::ostream& out, const Exit& exit) { return out << show(exit); }

// Started by the constructor; killed and reaped by the destructor if it still runs. Move-only.
// A command that cannot be executed ends with 127 and a line in err().
class Process {
 public:
  explicit Process(std::vector<std::string> argv, const ProcessOptions& options = {});
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();

  [[nodiscard]] pid_t pid() const { return m_pid; }
  void signal(int number) const;  // nothing once it has been reaped
  bool running();

  // Fails the test case, with the command and both streams, when it is not over in time.
  Exit wait(Millis timeout = std::chrono::seconds(10));

  // What it has written so far. Empty on a terminal.
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;

 private:
  void kill_and_reap();

  std::vector<std::string> m_argv;
  std::filesystem::path m_dir;  // the files of its streams
  pid_t m_pid = -1;
  std::optional<Exit> m_exit;
};

struct Finished {
  int code;
  int signal;
  std::string out;
  std::string err;
};

// The built rlock, to its end.
Finished run_rlock(Words args, const ProcessOptions& options = {});
Words rlock_argv(Words args);  // for a Process

// `rlock run OPTIONS -- JOB` with the server at `url`; returns at once.
Process start_run(const std::string& url, Words options, const Words& job);

Words joined(Words first, const Words& second);
Words with_job(Words options, const Words& job);  // OPTIONS -- JOB

// The environment of this process without what its user has set for rlock (RLOCK_*, REDIS_URL, REDISCLI_AUTH, NO_COLOR), for
// shells (SHELL and the locale) and for downloads (proxies). TERM is xterm; XDG_RUNTIME_DIR, XDG_CONFIG_HOME and
// RLOCK_LOCAL_NAME are private, the same throughout one test case.
std::map<std::string, std::string> clean_environment();

}  // namespace rlock::test
