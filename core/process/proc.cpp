// SPDX-License-Identifier: Apache-2.0
#include "process/proc.h"

#include "base/fd.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <functional>
#include <memory>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

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

// For kernels without CONFIG_PROC_CHILDREN: reads all processes once, then selects by parent.
ChildrenOf children_by_scan()
{
  std::vector<Process> all;
  for (const int pid : numbers_in("/proc")) {
    if (const auto process = read_process(pid)) {
      all.push_back(*process);
    }
  }
  return [all = std::move(all)](pid_t parent) {
    std::vector<pid_t> children;
    for (const Process& process : all) {
      if (process.parent == parent) {
        children.push_back(process.pid);
      }
    }
    return children;
  };
}

ChildrenOf children_source()
{
  const bool listed = ::access("/proc/thread-self/children", R_OK) == 0;
  return listed ? ChildrenOf(listed_children) : children_by_scan();
}

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

std::optional<Process> parse_stat(std::string_view line)
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
  return Process{pid[0], rest[0], rest[1], rest[2], line[name_end + 2]};
}

std::optional<Process> read_process(pid_t pid)
{
  const auto line = read_file("/proc/" + std::to_string(pid) + "/stat");
  return line ? parse_stat(*line) : std::nullopt;
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

std::vector<pid_t> own_children()
{
  if (!has_children() || !shows_this_namespace()) {
    return {};
  }
  return children_source()(::getpid());
}

std::vector<Process> own_descendants(const std::vector<pid_t>& spared)
{
  if (!has_children() || !shows_this_namespace()) {
    return {};
  }
  const ChildrenOf children_of = children_source();
  std::vector<pid_t> unseen = children_of(::getpid());
  std::erase_if(unseen, [&](pid_t child) { return std::ranges::count(spared, child) > 0; });

  std::vector<Process> found;
  while (!unseen.empty()) {
    const pid_t pid = unseen.back();
    unseen.pop_back();
    if (const auto process = read_process(pid)) {
      found.push_back(*process);
      const std::vector<pid_t> children = children_of(pid);
      unseen.insert(unseen.end(), children.begin(), children.end());
    }
  }
  return found;
}

}  // namespace rlock
