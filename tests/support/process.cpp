// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include "base/fd.h"
#include "support/paths.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "support/topology.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rlock::test {
namespace {

Fd open_file(const std::filesystem::path& path, int flags)
{
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!fd) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  return fd;
}

// A variable that changes what rlock, a shell, curl(1) or wget(1) does.
bool is_setting_of_user(const std::string& name)
{
  static const std::set<std::string> names{"REDIS_URL", "REDISCLI_AUTH", "NO_COLOR", "SUDO_USER",
                                           "SHELL",     "LANG",          "LANGUAGE"};
  return names.contains(name) || name.starts_with("RLOCK_") || name.starts_with("LC_") || name.ends_with("_proxy") ||
         name.ends_with("_PROXY");
}

std::vector<std::string> environment(const ProcessOptions& options)
{
  std::map<std::string, std::string> variables = clean_environment();
  for (const auto& [name, value] : options.env) {
    if (value) {
      variables[name] = *value;
    } else {
      variables.erase(name);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) {
    lines.push_back(name + "=" + value);
  }
  return lines;
}

std::vector<char*> pointers(std::vector<std::string>& texts)
{
  std::vector<char*> result;
  for (std::string& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

// All that a child needs, made before the fork: after it only system calls are safe.
struct Prepared {
  char** argv;
  char** envp;
  const char* cwd;
  std::array<int, 3> streams;
  const ProcessOptions& options;
};

[[noreturn]] void exec_command(const Prepared& prepared)
{
  const ProcessOptions& options = prepared.options;
  ::prctl(PR_SET_PDEATHSIG, options.death_signal);
  if (options.new_session || options.terminal >= 0) {
    ::setsid();
  }
  if (options.terminal >= 0) {
    ::ioctl(options.terminal, TIOCSCTTY, 0);
  }
  for (int stream = 0; stream < 3; ++stream) {
    ::dup2(prepared.streams[static_cast<std::size_t>(stream)], stream);
  }
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int fd : options.keep_fds) {
    ::fcntl(fd, F_SETFD, 0);
  }
  for (int number = 1; number < NSIG; ++number) {
    ::signal(number, SIG_DFL);
  }
  for (const int number : options.ignored_signals) {
    ::signal(number, SIG_IGN);
  }
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int number : options.blocked_signals) {
    ::sigaddset(&blocked, number);
  }
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  if (*prepared.cwd == '\0' || ::chdir(prepared.cwd) == 0) {
    ::execvpe(prepared.argv[0], prepared.argv, prepared.envp);
  }
  const char* reason = std::strerror(errno);
  const char* program = prepared.argv[0];
  for (const char* part : {"cannot execute ", program, ": ", reason, "\n"}) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, part, std::strlen(part));
  }
  ::_exit(127);
}

}  // namespace

std::string show(const Exit& exit)
{
  const bool killed = exit.signal != 0;
  return killed ? "signal " + std::to_string(exit.signal) : "exit " + std::to_string(exit.code);
}

Process::Process(std::vector<std::string> argv, const ProcessOptions& options)
    : m_argv(std::move(argv)), m_dir(make_temp_dir("process"))
{
  if (options.input) {
    std::ofstream(m_dir / "in", std::ios::binary) << *options.input;
  }
  const Fd in = open_file(options.input ? m_dir / "in" : "/dev/null", O_RDONLY);
  const Fd out = open_file(m_dir / "out", O_WRONLY | O_CREAT | O_APPEND);
  const Fd err = open_file(m_dir / "err", O_WRONLY | O_CREAT | O_APPEND);

  std::vector<std::string> variables = environment(options);
  const std::vector<char*> arguments = pointers(m_argv);
  const std::vector<char*> envp = pointers(variables);
  const int tty = options.terminal;
  const Prepared prepared{
      .argv = const_cast<char**>(arguments.data()),
      .envp = const_cast<char**>(envp.data()),
      .cwd = options.cwd.c_str(),
      .streams = tty >= 0 ? std::array{tty, tty, tty} : std::array{in.get(), out.get(), err.get()},
      .options = options,
  };

  m_pid = ::fork();
  if (m_pid < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (m_pid == 0) {
    exec_command(prepared);
  }
}

Process::Process(Process&& other) noexcept
    : m_argv(std::move(other.m_argv)),
      m_dir(std::move(other.m_dir)),
      m_pid(std::exchange(other.m_pid, -1)),
      m_exit(other.m_exit)
{
}

Process& Process::operator=(Process&& other) noexcept
{
  if (this != &other) {
    kill_and_reap();
    m_argv = std::move(other.m_argv);
    m_dir = std::move(other.m_dir);
    m_pid = std::exchange(other.m_pid, -1);
    m_exit = other.m_exit;
  }
  return *this;
}

Process::~Process() { kill_and_reap(); }

void Process::kill_and_reap()
{
  if (m_pid > 0 && !m_exit) {
    ::kill(m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
}

void Process::signal(int number) const
{
  if (m_pid > 0 && !m_exit) {
    ::kill(m_pid, number);
  }
}

bool Process::running()
{
  int status = 0;
  if (m_pid > 0 && !m_exit && ::waitpid(m_pid, &status, WNOHANG) == m_pid) {
    m_exit = WIFSIGNALED(status) ? Exit{.code = -1, .signal = WTERMSIG(status)}
                                 : Exit{.code = WEXITSTATUS(status), .signal = 0};
  }
  return m_pid > 0 && !m_exit;
}

Exit Process::wait(Millis timeout)
{
  const auto give_up = std::chrono::steady_clock::now() + timeout;
  while (running()) {
    if (std::chrono::steady_clock::now() >= give_up) {
      std::string command;
      for (const std::string& word : m_argv) {
        command += word + " ";
      }
      FAIL(command << "is not over after " << timeout.count() << " ms\n"
                   << "out: " << out() << "\nerr: " << err());
    }
    std::this_thread::sleep_for(Millis(1));
  }
  if (m_argv.front() == RLOCK_BINARY) {
    CHECK_MESSAGE((out() + err()).find(test_password) == std::string::npos, "rlock has printed the password");
  }
  return *m_exit;
}

void expect_ends(std::vector<Process>& all, Millis timeout, const Exit& exit)
{
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK(all[i].wait(timeout) == exit);
  }
}

namespace {

bool is_so(const Said& said, const std::string& text)
{
  switch (said.how) {
    case Said::How::is: return text == said.text;
    case Said::How::has: return text.find(said.text) != std::string::npos;
    case Said::How::lacks: return text.find(said.text) == std::string::npos;
    case Said::How::begins: return text.starts_with(said.text);
  }
  return false;
}

void check_said(const std::vector<Said>& said, const std::string& out, const std::string& err)
{
  constexpr std::array words{"is", "has", "lacks", "begins with"};
  for (const Said& each : said) {
    CAPTURE(out);
    CAPTURE(err);
    CHECK_MESSAGE(is_so(each, each.on_stdout ? out : err), (each.on_stdout ? "out " : "err ")
                                                               << words.at(static_cast<std::size_t>(each.how)) << ' '
                                                               << each.text);
  }
}

}  // namespace

void expect_end(const Finished& end, int code, const std::vector<Said>& said, const char* file, int line)
{
  INFO("called in " << file << ":" << line);
  CHECK_MESSAGE(end.code == code, end.err);
  check_said(said, end.out, end.err);
}

Finished succeeded(Finished end)
{
  REQUIRE_MESSAGE(end.code == 0, end.err);
  return end;
}

void expect_end(Process& process, const Exit& exit, const std::vector<Said>& said, Millis timeout, const char* file,
                int line)
{
  INFO("called in " << file << ":" << line);
  const Exit ended = process.wait(timeout);
  const std::string err = process.err();
  CHECK_MESSAGE(ended == exit, err);
  check_said(said, process.out(), err);
}

std::string Process::out() const { return text_of(m_dir / "out"); }
std::string Process::err() const { return text_of(m_dir / "err"); }

// "rlock: waiting for k: no answer within 5s" is a complaint.
std::string Process::complaints() const
{
  const std::string waits = "rlock: waiting for ";
  std::string complaints;
  for (const std::string& line : lines_of(err())) {
    if (!line.starts_with(waits) || line.find(": ", waits.size()) != std::string::npos) {
      complaints += line + "\n";
    }
  }
  return complaints;
}

// The URL of a quorum is several.
Words rlock_argv(Words args)
{
  Words argv{RLOCK_BINARY};
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool are_several = i > 0 && args[i - 1] == "-S" && args[i].find(" unix:") != std::string::npos;
    if (!are_several) {
      argv.push_back(args[i]);
      continue;
    }
    std::istringstream urls(args[i]);
    argv.back() = "--no-restart-guard";
    if (std::find(args.begin(), args.end(), "--server-timeout") == args.end()) {
      argv.insert(argv.end(), {"--server-timeout", "5s"});  // the machine may be busy
    }
    for (std::string url; urls >> url;) {
      argv.insert(argv.end(), {"-S", url});
    }
  }
  return argv;
}

Process start_rlock(Words args, const ProcessOptions& options) { return Process(rlock_argv(std::move(args)), options); }

Finished run_rlock(Words args, const ProcessOptions& options)
{
  Process rlock = start_rlock(std::move(args), options);
  const Exit exit = rlock.wait(std::chrono::seconds(60));
  return {.code = exit.code, .signal = exit.signal, .out = rlock.out(), .err = rlock.err()};
}

void stop_process(pid_t pid)
{
  const std::filesystem::path threads = "/proc/" + std::to_string(pid) + "/task";
  const auto may_still_run = [](const std::filesystem::path& thread) {
    const std::string stat = text_of(thread / "stat");
    return !stat.empty() && stat.find(") T ") == std::string::npos && stat.find(") Z ") == std::string::npos;
  };
  const auto have_stopped = [&] {
    std::error_code gone;
    for (const auto& thread : std::filesystem::directory_iterator(threads, gone)) {
      if (may_still_run(thread)) {
        return false;
      }
    }
    return true;
  };
  ::kill(pid, SIGSTOP);
  wait_until(have_stopped, "process " + std::to_string(pid) + " has stopped");
}

Words with_url(const std::string& url, Words args)
{
  args.insert(args.begin() + 1, {"-S", url});
  return args;
}

Process start_at(const std::string& url, Words args, const ProcessOptions& options)
{
  return start_rlock(with_url(url, std::move(args)), options);
}

Finished run_at(const std::string& url, Words args, const ProcessOptions& options)
{
  return run_rlock(with_url(url, std::move(args)), options);
}

Process start_run(const std::string& url, Words options, const Words& job)
{
  return start_rlock(joined({"run", "-S", url}, with_job(std::move(options), job)));
}

Words joined(Words first, const Words& second)
{
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Words with_job(Words options, const Words& job)
{
  options.emplace_back("--");
  return joined(std::move(options), job);
}

std::map<std::string, std::string> clean_environment()
{
  std::map<std::string, std::string> variables;
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (!is_setting_of_user(name)) {
      variables[name] = text.substr(equals + 1);
    }
  }
  variables["XDG_RUNTIME_DIR"] = home_dir();
  variables["RLOCK_LOCAL_NAME"] = home_dir().parent_path().filename();
  variables["XDG_CONFIG_HOME"] = home_dir();
  variables["TERM"] = "xterm";
  variables.merge(topology_environment());
  return variables;
}

}  // namespace rlock::test
