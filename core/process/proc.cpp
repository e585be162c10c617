// SPDX-License-Identifier: Apache-2.0
#include "process/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <functional>
#include <memory>
#include <utility>
#include "base/fd.h"

namespace rlock {
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
