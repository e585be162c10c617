// SPDX-License-Identifier: Apache-2.0
#include "process/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include "base/fd.h"
#include "base/text.h"
#include "process/signals.h"

namespace rlock {

bool send_signal(pid_t target, int signal) { return ::kill(target, signal) == 0 || errno != EPERM; }

bool send_and_wake(pid_t target, int signal)
{
  const bool allowed = send_signal(target, signal);
  ::kill(target, SIGCONT);
  return allowed;
}

namespace {

// Wakes the target after a signal that asks to end, as timeout(1) does, so that a stopped process ends too.
bool send_as_user(pid_t target, int signal)
{
  return asks_to_end(signal) ? send_and_wake(target, signal) : send_signal(target, signal);
}

bool may_be_signalled(const ProcessInfo& process) { return process.is_zombie() || send_signal(process.pid, 0); }

}  // namespace

bool adopts_orphans(pid_t pid) { return std::ranges::find(own_names, command_name(pid)) != own_names.end(); }

namespace {

bool is_nested_daemon(const ProcessInfo& process, const ProcessFamily& family)
{
  const auto parent = std::ranges::find(family, process.parent, &ProcessInfo::pid);
  return parent != family.end() && parent->session != process.session && adopts_orphans(parent->pid);
}

// The processes that stay with a daemon of a nested job: itself and its descendants, which come after it in the family.
std::set<pid_t> nested_daemons(const ProcessFamily& family)
{
  std::set<pid_t> daemons;
  for (const ProcessInfo& process : family) {
    if (daemons.contains(process.parent) || is_nested_daemon(process, family)) {
      daemons.insert(process.pid);
    }
  }
  return daemons;
}

}  // namespace

// The kernel reports only the deaths of children, and at once only those of all descendants that have a descriptor. A dead
// process that its tracer has not released has one that is always readable.
void wait_for_a_death(const std::vector<LeftProcess>& dying, Instant deadline)
{
  constexpr std::size_t most_descriptors = 64;
  constexpr Millis short_pause{2};
  constexpr Millis look_again{20};  // for processes that were made meanwhile
  std::vector<PidFd> processes;
  std::vector<pollfd> waits;
  for (const LeftProcess& process : dying) {
    const bool may_die = process.pid != 0 && !process.refused && process.state != 'Z';
    if (auto opened = may_die && waits.size() < most_descriptors ? PidFd::open(process.pid)
                                                                 : Result<PidFd>(Error{ErrorCode::usage, ""})) {
      waits.push_back({.fd = opened->fd(), .events = POLLIN, .revents = 0});
      processes.push_back(*std::move(opened));
    }
  }
  const Instant now = BootClock().now();
  poll_until(waits, now, std::min(deadline, now + (waits.empty() ? short_pause : look_again)));
}

ProcessTree::ProcessTree(pid_t main, Grouping grouping)
    : m_main(main),
      m_own_session(main),
      m_group(grouping == Grouping::own ? main : ::getpgid(main)),
      m_grouping(grouping)
{
}

ProcessTree::ProcessTree(std::vector<pid_t> spared_children, std::set<pid_t> daemons, pid_t main)
    : m_own_session(main), m_spared(std::move(spared_children)), m_daemons(std::move(daemons))
{
}

void ProcessTree::reap()
{
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED);
    if (pid < 0 && errno == EINTR) {
      continue;
    }
    if (pid <= 0) {
      m_childless = pid < 0 && errno == ECHILD;
      return;
    }
    if (pid != m_main) {
      continue;
    }
    if (WIFSTOPPED(status)) {
      m_pause = WSTOPSIG(status);
    } else {
      m_status = status;
      m_main = 0;
    }
  }
}

std::optional<int> ProcessTree::take_pause() { return std::exchange(m_pause, std::nullopt); }

// `setsid CMD` does not fork when it leads no group, so the main process may have a session of its own.
bool ProcessTree::is_daemon(pid_t session) const
{
  if (session == ::getsid(0) || session == m_own_session || m_sessions.contains(session)) {
    return false;
  }
  return !m_daemons || m_daemons->contains(session);
}

std::set<pid_t> ProcessTree::daemons() const
{
  if (m_daemons) {
    return *m_daemons;
  }
  std::set<pid_t> sessions;
  for (const pid_t child : own_children()) {
    const pid_t session = ::getsid(child);
    if (session > 0 && is_daemon(session)) {
      sessions.insert(session);
    }
  }
  return sessions;
}

// A dead child of this process counts until it is reaped, because its own children became children of this process just
// now and may not be in the list. A dead child of another process does not count.
std::vector<ProcessInfo> ProcessTree::alive() const
{
  const pid_t self = ::getpid();
  std::vector<ProcessInfo> found;
  for (const ProcessFamily& family : own_families(m_spared)) {
    if (is_daemon(family.front().session)) {
      continue;
    }
    const std::set<pid_t> daemons = nested_daemons(family);
    std::ranges::copy_if(family, std::back_inserter(found), [&](const ProcessInfo& process) {
      return !daemons.contains(process.pid) && (!process.is_zombie() || process.parent == self);
    });
  }
  return found;
}

bool ProcessTree::is_empty() const { return m_childless || (m_main == 0 && alive().empty() && !has_unseen_children()); }

// The group's number cannot be given to another group until its leader is reaped, nor while a child is in the group.
bool ProcessTree::leads_group() const { return m_grouping == Grouping::own && (m_main != 0 || has_child_in(m_group)); }

ProcessTree::Refused ProcessTree::forward(int signal)
{
  if (asks_to_end(signal)) {
    for (const ProcessInfo& process : alive()) {
      m_sessions.insert(process.session);
    }
  }
  if (leads_group() && send_as_user(-m_group, signal)) {
    return {};
  }
  Refused refused;
  for (const ProcessInfo& process : alive()) {
    // The main process may have left the group: an interactive shell does.
    const bool is_target = process.group == m_group || process.pid == m_main;
    if (is_target && !send_as_user(process.pid, signal) && !process.is_zombie()) {
      refused.push_back(process.pid);
    }
  }
  return refused;
}

// The whole group by one system call, so that a process that is forking cannot escape; then the others. The children of a process
// that this signal ends move to this process, and one search may miss them, so those that were seen before count as well.
ProcessTree::Refused ProcessTree::stop(int signal)
{
  m_daemons = daemons();
  std::vector<ProcessInfo> all = alive();
  if (leads_group()) {
    send_and_wake(-m_group, signal);
  }
  for (const ProcessInfo& process : alive()) {
    if (std::ranges::count(all, process.pid, &ProcessInfo::pid) == 0) {
      all.push_back(process);
    }
  }
  Refused refused;
  for (const ProcessInfo& process : all) {
    if (!leads_group() || process.group != m_group) {
      send_and_wake(process.pid, signal);
    }
    if (!may_be_signalled(process)) {
      refused.push_back(process.pid);
    }
  }
  return refused;
}

std::vector<LeftProcess> ProcessTree::kill_each() const
{
  if (leads_group()) {
    ::kill(-m_group, SIGKILL);
  }
  std::vector<LeftProcess> left;
  for (const ProcessInfo& process : alive()) {
    const bool refused = !send_signal(process.pid, SIGKILL) && !process.is_zombie();
    left.push_back({.pid = process.pid, .refused = refused, .state = process.state});
  }
  if (left.empty() && has_unseen_children()) {
    left.push_back({});
  }
  return left;
}

std::vector<LeftProcess> ProcessTree::kill_all(Millis time_limit)
{
  const BootClock clock;
  const Instant give_up = clock.now() + time_limit;
  m_daemons = daemons();
  for (;;) {
    reap();
    if (m_childless) {
      return {};
    }
    std::vector<LeftProcess> left = kill_each();
    if (left.empty() && m_main == 0) {
      return {};
    }
    const bool only_refused = !left.empty() && std::ranges::all_of(left, &LeftProcess::refused);
    if (only_refused || clock.now() >= give_up) {
      return left;
    }
    wait_for_a_death(left, give_up);
  }
}

std::vector<LeftProcess> NotKilledReports::due(const std::vector<LeftProcess>& left, Instant now)
{
  std::vector<LeftProcess> named;
  for (const LeftProcess& process : left) {
    const auto [next, is_new] = m_next.try_emplace(process.pid, process.refused ? now : now + slow_death);
    if (now >= m_minute_over) {
      m_minute_over = now + not_killed_period;
      m_named = 0;
    }
    if (now >= next->second && m_named < most_named) {
      ++m_named;
      next->second = now + not_killed_period;
      named.push_back(process);
    }
  }
  return named;
}

namespace {

// "process 4711 (dd)"
std::string shown(pid_t pid)
{
  const std::string name = command_name(pid);
  return "process " + std::to_string(pid) + (name.empty() ? "" : " (" + printable(name) + ")");
}

std::string how_to_end(pid_t pid) { return "end it as root with: kill " + std::to_string(pid); }

}  // namespace

std::string not_signalled_text(pid_t pid)
{
  return "cannot signal " + shown(pid) + " of the job: it runs as another user; " + how_to_end(pid);
}

std::string not_killed_text(const LeftProcess& process)
{
  if (process.pid == 0) {
    return "a process of the job that rlock cannot see still runs; rlock waits for its end";
  }
  if (process.refused) {
    return shown(process.pid) + " of the job still runs as another user; rlock waits for its end; " +
           how_to_end(process.pid);
  }
  const pid_t tracer = tracer_of(process.pid);
  const std::string reason = process.state == 'D' ? "it waits for a device or a file server"
                             : tracer != 0        ? shown(tracer) + " traces it"
                                                  : "";
  return shown(process.pid) + " of the job cannot be killed (state " + std::string(1, process.state) +
         (reason.empty() ? "" : ": " + reason) + "); rlock waits for its end";
}

namespace {

using ChildrenOf = std::function<std::vector<pid_t>(pid_t)>;

std::optional<std::string> read_file(const std::string& path)
{
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return std::nullopt;
  }
  std::string text;
  char chunk[1024];
  ssize_t got = 0;
  while ((got = ::read(file.get(), chunk, sizeof chunk)) > 0) {
    text.append(chunk, static_cast<std::size_t>(got));
  }
  return text;
}

std::vector<int> parse_numbers(std::string_view text)
{
  std::vector<int> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at != end) {
    int number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) {
      break;
    }
    numbers.push_back(number);
    at = std::find_if(stop, end, [](unsigned char c) { return std::isdigit(c) != 0; });
  }
  return numbers;
}

// The kernel lists a child under the thread that forked it, so all threads are read.
std::vector<pid_t> listed_children(pid_t pid)
{
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task/";
  std::vector<pid_t> children;
  for (const int thread : numbers_in(tasks.c_str())) {
    const auto list = read_file(tasks + std::to_string(thread) + "/children");
    const std::vector<pid_t> some = parse_numbers(list.value_or(""));
    children.insert(children.end(), some.begin(), some.end());
  }
  return children;
}

// Reads all processes once and selects by parent, because a kernel may lack CONFIG_PROC_CHILDREN.
ChildrenOf children_by_scan()
{
  std::vector<ProcessInfo> all;
  for (const int pid : numbers_in("/proc")) {
    if (const auto process = read_process(pid)) {
      all.push_back(*process);
    }
  }
  return [all = std::move(all)](pid_t parent) {
    std::vector<pid_t> children;
    for (const ProcessInfo& process : all) {
      if (process.parent == parent) {
        children.push_back(process.pid);
      }
    }
    return children;
  };
}

bool lists_children() { return ::access("/proc/thread-self/children", R_OK) == 0; }

bool shows_this_namespace()
{
  char self[16] = {};
  const ssize_t length = ::readlink("/proc/self", self, sizeof self - 1);
  return length > 0 && std::to_string(::getpid()) == self;
}

bool has_children()
{
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

// nullopt: no child has this pid.
std::optional<siginfo_t> peek_at_child(pid_t pid)
{
  siginfo_t info{};
  const bool is_child = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  return is_child ? std::optional(info) : std::nullopt;
}

// The kernel gives the numbers in turn, so this is near the greatest in use. 0: no process could be made.
pid_t newest_pid()
{
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::_exit(0);
  }
  while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return std::max(pid, 0);
}

// Children are younger than this process: their numbers lie between its own and the newest one, unless the numbers began anew.
std::vector<pid_t> probed_children()
{
  std::vector<pid_t> children;
  const auto probe = [&](pid_t from, pid_t to) {
    for (pid_t pid = from; pid <= to; ++pid) {
      if (peek_at_child(pid)) {
        children.push_back(pid);
      }
    }
  };
  const pid_t self = ::getpid();
  const pid_t newest = newest_pid();
  if (newest > self) {
    probe(std::max(self + 1, newest - longest_probe), newest);
  } else {
    probe(std::max(2, newest - longest_probe / 2), newest);
    probe(self + 1, self + longest_probe / 2);
  }
  return children;
}

// Describes a process by system calls, which hidepid does not restrict. nullopt: the process does not exist.
std::optional<ProcessInfo> unshown_process(pid_t pid, pid_t parent)
{
  const pid_t group = ::getpgid(pid);
  const pid_t session = ::getsid(pid);
  if (group < 0 || session < 0) {
    return std::nullopt;
  }
  const auto child = parent == ::getpid() ? peek_at_child(pid) : std::nullopt;
  const bool is_dead = child && child->si_pid == pid;
  return ProcessInfo{pid, parent, group, session, is_dead ? 'Z' : unknown_state};
}

// nullopt: the child ended meanwhile. Its number may be another process's by now.
std::optional<ProcessInfo> child_of(pid_t parent, pid_t pid, bool is_shown)
{
  const auto process = is_shown ? read_process(pid) : std::nullopt;
  if (process && process->parent != parent && process->parent != ::getpid()) {
    return std::nullopt;
  }
  return process ? process : unshown_process(pid, parent);
}

ProcessFamily family_of(pid_t child, const ChildrenOf& children_of, bool is_shown)
{
  ProcessFamily family;
  std::vector<std::pair<pid_t, pid_t>> unseen{{::getpid(), child}};  // parent, child
  while (!unseen.empty()) {
    const auto [parent, pid] = unseen.back();
    unseen.pop_back();
    if (const auto process = child_of(parent, pid, is_shown)) {
      family.push_back(*process);
      for (const pid_t grandchild : children_of(pid)) {
        unseen.emplace_back(pid, grandchild);
      }
    }
  }
  return family;
}

}  // namespace

std::vector<std::string> command_of(pid_t pid)
{
  const std::string text = read_file("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size(); at += words.back().size() + 1) {
    words.push_back(text.substr(at, text.find('\0', at) - at));
  }
  return words;
}

std::string command_name(pid_t pid)
{
  std::string name = read_file("/proc/" + std::to_string(pid) + "/comm").value_or("");
  while (name.ends_with('\n')) {
    name.pop_back();
  }
  return name;
}

pid_t tracer_of(pid_t pid)
{
  constexpr std::string_view field = "\nTracerPid:\t";
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status").value_or("");
  const std::size_t at = status.find(field);
  const std::vector<int> tracer =
      parse_numbers(at == std::string::npos ? "" : std::string_view(status).substr(at + field.size()));
  return tracer.empty() ? 0 : tracer.front();
}

std::optional<ProcessInfo> parse_stat(std::string_view line)
{
  const std::size_t name_end = line.rfind(") ");
  const std::vector<int> pid = parse_numbers(line.substr(0, line.find(' ')));
  if (name_end == std::string_view::npos || pid.empty() || line.size() < name_end + 5) {
    return std::nullopt;
  }
  const std::vector<int> rest = parse_numbers(line.substr(name_end + 4));
  if (rest.size() < 3) {
    return std::nullopt;
  }
  return ProcessInfo{pid[0], rest[0], rest[1], rest[2], line[name_end + 2]};
}

std::optional<ProcessInfo> read_process(pid_t pid)
{
  const auto line = read_file("/proc/" + std::to_string(pid) + "/stat");
  return line ? parse_stat(*line) : std::nullopt;
}

std::optional<int> zombie_wait_status(pid_t pid)
{
  const std::string line = read_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
  const auto process = parse_stat(line);
  const std::vector<int> last = parse_numbers(std::string_view(line).substr(line.find_last_of(' ') + 1));
  return process && process->is_zombie() && !last.empty() ? std::optional(last.front()) : std::nullopt;
}

namespace {

std::string link_at(const std::string& path)
{
  constexpr std::size_t longest = 64;  // of a pipe
  std::array<char, longest> text{};
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace

std::string link_of(int fd) { return link_at("/proc/self/fd/" + std::to_string(fd)); }

bool has_open(pid_t pid, const std::string& link)
{
  const std::string directory = "/proc/" + std::to_string(pid) + "/fd";
  const std::vector<int> descriptors = numbers_in(directory.c_str());
  return !link.empty() && std::ranges::any_of(descriptors, [&](int fd) {
    return link_at(directory + "/" + std::to_string(fd)) == link;
  });
}

std::vector<int> numbers_in(const char* directory)
{
  struct Close {
    void operator()(DIR* opened) const { ::closedir(opened); }
  };
  const std::unique_ptr<DIR, Close> opened(::opendir(directory));
  std::vector<int> numbers;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): only this thread reads the stream
  while (const dirent* entry = opened ? ::readdir(opened.get()) : nullptr) {
    const std::vector<int> number = parse_numbers(entry->d_name);
    numbers.insert(numbers.end(), number.begin(), number.end());
  }
  return numbers;
}

bool has_child_in(pid_t group)
{
  siginfo_t info{};
  return ::waitid(P_PGID, static_cast<id_t>(group), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::vector<pid_t> own_children()
{
  if (!has_children()) {
    return {};
  }
  return shows_this_namespace() && lists_children() ? listed_children(::getpid()) : probed_children();
}

bool has_unseen_children() { return own_children().empty() && has_children(); }

std::vector<ProcessFamily> own_families(const std::vector<pid_t>& spared)
{
  std::vector<pid_t> children = own_children();
  std::erase_if(children, [&](pid_t child) { return std::ranges::count(spared, child) > 0; });
  if (children.empty()) {
    return {};
  }
  const bool is_shown = shows_this_namespace();
  const ChildrenOf children_of = !is_shown          ? [](pid_t) { return std::vector<pid_t>(); }
                                 : lists_children() ? ChildrenOf(listed_children)
                                                    : children_by_scan();
  std::vector<ProcessFamily> families;
  for (const pid_t child : children) {
    if (ProcessFamily family = family_of(child, children_of, is_shown); !family.empty()) {
      families.push_back(std::move(family));
    }
  }
  return families;
}

}  // namespace rlock
