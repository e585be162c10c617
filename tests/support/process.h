// SPDX-License-Identifier: Apache-2.0
// A child process with its streams in files; and rlock as a child process.
#pragma once

#include "base/clock.h"

#include <chrono>
#include <csignal>
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
  // Variables besides those of clean_environment; nullopt: the variable is unset.
  std::map<std::string, std::optional<std::string>> env;
  std::filesystem::path cwd;         // empty: the directory of the test
  std::optional<std::string> input;  // nullopt: /dev/null
  int terminal = -1;  // the slave of a pty, for the streams and as the controlling terminal of a new session; -1: none
  bool new_session = false;
  std::vector<int> keep_fds;         // the process inherits these descriptors under the same numbers, and no others
  std::vector<int> ignored_signals;  // all other signals have their default
  std::vector<int> blocked_signals;
  int death_signal = 0;  // sent when the thread that started the process ends (prctl(2)); 0: none
};

// The password of all tests. The end of each Process checks that rlock never prints it.
inline constexpr const char* test_password = "hunter2";

struct Exit {
  int code = -1;   // -1: the process died of a signal
  int signal = 0;  // 0: the process exited
  friend bool operator==(const Exit&, const Exit&) = default;
};
constexpr Exit exited(int code) { return {.code = code, .signal = 0}; }
constexpr Exit died_of(int signal) { return {.code = -1, .signal = signal}; }
inline constexpr Exit success = exited(0);
std::string show(const Exit& exit);  // "exit 75", "signal 9"
inline std::ostream& operator<<(std::ostream& out, const Exit& exit) { return out << show(exit); }

// The constructor starts the process; the destructor kills and reaps a process that still runs. Move-only. A command that cannot
// be executed ends with 127 and a line in err().
class Process {
 public:
  explicit Process(std::vector<std::string> argv, const ProcessOptions& options = {});
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;
  ~Process();

  [[nodiscard]] pid_t pid() const { return m_pid; }
  void signal(int number) const;  // no effect on a process that is reaped
  bool running();

  // Waits for the end. Fails the test case, with the command and both streams, if the process does not end in time.
  Exit wait(Millis timeout = std::chrono::seconds(10));

  // What the process has written so far. Empty on a terminal.
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;
  // err() without the lines about the holder that rlock waits for, which come after a second: a test cannot know how long a wait takes.
  [[nodiscard]] std::string complaints() const;

 private:
  void kill_and_reap();

  std::vector<std::string> m_argv;
  std::filesystem::path m_dir;  // the files of its streams
  pid_t m_pid = -1;
  std::optional<Exit> m_exit;
};

// SIGSTOP; returns when all threads of the process have stopped, or it has ended.
void stop_process(pid_t pid);

// Checks that each of them ends with `exit`.
void expect_ends(std::vector<Process>& all, Millis timeout = std::chrono::seconds(10), const Exit& exit = success);

struct Finished {
  int code;
  int signal;
  std::string out;
  std::string err;
};

// What a program must have written to one of its streams.
struct Said {
  enum class How { is, has, lacks, begins };
  bool on_stdout;
  How how;
  std::string text;
};
inline Said out_is(std::string text) { return {true, Said::How::is, std::move(text)}; }
inline Said out_has(std::string text) { return {true, Said::How::has, std::move(text)}; }
inline Said out_lacks(std::string text) { return {true, Said::How::lacks, std::move(text)}; }
inline Said out_begins(std::string text) { return {true, Said::How::begins, std::move(text)}; }
inline Said err_is(std::string text) { return {false, Said::How::is, std::move(text)}; }
inline Said err_has(std::string text) { return {false, Said::How::has, std::move(text)}; }
inline Said err_lacks(std::string text) { return {false, Said::How::lacks, std::move(text)}; }
inline Said err_begins(std::string text) { return {false, Said::How::begins, std::move(text)}; }

// Checks how a program has ended, and what it said. A failure shows the line of the caller and both streams. The second one waits
// for the end, as Process::wait() does.
void expect_end(const Finished& end, int code, const std::vector<Said>& said = {}, const char* file = __builtin_FILE(),
                int line = __builtin_LINE());
void expect_end(Process& process, const Exit& exit, const std::vector<Said>& said = {},
                Millis timeout = std::chrono::seconds(10), const char* file = __builtin_FILE(),
                int line = __builtin_LINE());

// A failure ends the test case, and shows stderr.
Finished succeeded(Finished end);

// The built rlock: returns at once, or at its end. support/redis_fixture.h has both for a server.
Process start_rlock(Words args, const ProcessOptions& options = {});
Finished run_rlock(Words args, const ProcessOptions& options = {});
Words rlock_argv(Words args);  // for a Process with another program in front, and for scripts

// The same with the server at `url`. The first of `args` is the verb.
Words with_url(const std::string& url, Words args);
Process start_at(const std::string& url, Words args, const ProcessOptions& options = {});
Finished run_at(const std::string& url, Words args, const ProcessOptions& options = {});

// Starts `rlock run OPTIONS -- JOB` with the server at `url`, and returns at once.
Process start_run(const std::string& url, Words options, const Words& job);

Words joined(Words first, const Words& second);
Words with_job(Words options, const Words& job);  // OPTIONS -- JOB

// The environment of this process without the variables that its user may have set for rlock (RLOCK_*, REDIS_URL, REDISCLI_AUTH,
// NO_COLOR), for shells (SHELL and the locale) and for downloads (proxies). TERM is xterm. XDG_RUNTIME_DIR, XDG_CONFIG_HOME and
// RLOCK_LOCAL_NAME are private to the test case.
std::map<std::string, std::string> clean_environment();

}  // namespace rlock::test
