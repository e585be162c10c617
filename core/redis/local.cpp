// SPDX-License-Identifier: Apache-2.0
#include "redis/local.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include "base/defaults.h"
#include "base/duration.h"
#include "base/fd.h"
#include "base/text.h"
#include "net/byte_stream.h"
#include "net/endpoint.h"
#include "redis/codec.h"
#include "redis/connection.h"
#include "redis/local_launch.h"

namespace rlock {

Local::Local(LocalSpec spec, const Clock& clock)
    : Direct({.kind = Endpoint::Kind::local}, clock), m_spec(std::move(spec))
{
}

Result<Done> Local::connect(const CallLimits& limit)
{
  if (is_connected()) {
    return Done{};
  }
  const auto server = local_server(m_spec, clock(), limit);
  return server ? connect_to(server->endpoint, limit) : Result<Done>(server.error());
}

Result<Subscription> Local::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  const auto server = local_server(m_spec, clock(), limit);
  return server ? Subscription::open(server->endpoint, channels, clock(), limit) : Result<Subscription>(server.error());
}

namespace {

Error not_started(const std::string& directory, const std::string& why)
{
  return {ErrorCode::unreachable, "local: " + why + "; its log is " + printable(local_log(directory))};
}

std::string last_line(const std::string& path)
{
  constexpr std::streamoff enough = 4096;
  std::ifstream file(path, std::ios::ate);
  file.seekg(std::max<std::streamoff>(file.tellg() - std::streampos(enough), 0));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) {
      last = line;
    }
  }
  return last;
}

Error ended(const std::string& directory)
{
  return not_started(directory, "its server ended: " + printable(last_line(local_log(directory))));
}

// False: stopped.
bool pause(Millis time, const Clock& clock, const CallLimits& limit)
{
  return clock.sleep_until(std::min(clock.now() + time, limit.deadline), limit.stop) == Wake::due;
}

Result<Done> ping(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(auto connection, Connection::open(endpoint, clock, limit));
  const std::array<std::string_view, 1> argv{"PING"};
  ASSIGN_OR_RETURN(const auto reply, connection.call(argv, limit));
  if (reply.is_error()) {
    return error_from_reply(reply.text, endpoint.shown());
  }
  return Done{};
}

// `directory` has a server that listens; it may still be loading.
Result<Endpoint> when_ready(const std::string& directory, const Clock& clock, const CallLimits& limit)
{
  constexpr Millis pause_time{5};
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = local_socket(directory);
  for (;;) {
    const auto pong = ping(endpoint, clock, limit);
    if (pong) {
      return endpoint;
    }
    if (pong.error().code == ErrorCode::interrupted) {
      return pong.error();
    }
    if (!is_listening(endpoint.path)) {
      return ended(directory);
    }
    if (pong.error().code != ErrorCode::server_not_ready || clock.now() >= limit.deadline) {
      return not_started(directory, pong.error().text);
    }
    if (!pause(pause_time, clock, limit)) {
      return interrupted();
    }
  }
}

// The lock of the process that starts the server.
Result<Fd> start_lock(const std::string& directory, const Clock& clock, const CallLimits& limit)
{
  constexpr Millis pause_time{10};
  const std::string path = directory + "/" + std::string(start_lock_name);
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    return Error{ErrorCode::config, "local: cannot open " + printable(path) + ": " + os_text(errno)};
  }
  const Instant start = clock.now();
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return Error{ErrorCode::os, "local: cannot lock " + printable(path) + ": " + os_text(errno)};
    }
    if (clock.now() >= limit.deadline) {
      return not_started(directory, "another rlock has been starting it for " + elapsed(clock, start, limit));
    }
    if (!pause(pause_time, clock, limit)) {
      return interrupted();
    }
  }
  return file;
}

using Found = std::optional<LocalServer>;  // nullopt: there is none, and the caller looks again

Result<Found> ready_in(const std::string& directory, Fd entry, const Clock& clock, const CallLimits& limit)
{
  auto ready = when_ready(directory, clock, limit);
  return ready ? Result(Found(LocalServer{*std::move(ready), std::move(entry)})) : Result<Found>(ready.error());
}

// nullopt: another process took the name at the same moment.
Result<Found> start_in(const std::string& directory, const LocalSpec& spec, const Clock& clock, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto program, find_server_program());
  auto entry = local_entry(directory, clock, limit);
  ASSIGN_OR_RETURN(auto lock, entry ? start_lock(directory, clock, limit) : Result<Fd>(entry.error()));
  if (is_listening(local_socket(directory))) {  // the process that had the lock before started it
    return ready_in(directory, *std::move(entry), clock, limit);
  }
  const Instant start = clock.now();
  const IdleRule idle{.time = spec.any_lock.empty() ? Millis{0} : spec.idle, .lock_query = eval_request(spec.any_lock)};
  ASSIGN_OR_RETURN(const auto events, launch_server(program, directory, spec.name, idle, lock));
  lock.reset();
  switch (wait_for(events.get(), POLLIN, clock, limit)) {
    case Waited::stopped: return interrupted();
    case Waited::late: return not_started(directory, "its server did not start within " + elapsed(clock, start, limit));
    case Waited::ready: break;
  }
  char event = 0;
  if (::read(events.get(), &event, 1) != 1) {
    return ended(directory);
  }
  return event == static_cast<char>(LaunchEvent::listens) ? ready_in(directory, *std::move(entry), clock, limit)
                                                          : Result(Found());
}

// The time of the log, which a server writes at its start and its end; 0: no server has used the directory.
std::int64_t last_use(const std::string& directory)
{
  struct stat log {};
  const bool was_used = is_private_directory(directory) && ::stat(local_log(directory).c_str(), &log) == 0;
  return was_used ? std::int64_t{log.st_mtim.tv_sec} * 1'000'000'000 + log.st_mtim.tv_nsec : 0;
}

// Starts the server in the directory that was used last, else in the first directory whose parent exists.
Result<Found> start(const LocalSpec& spec, const Clock& clock, const CallLimits& limit)
{
  std::vector<std::string> directories = spec.directories;
  std::stable_sort(directories.begin(), directories.end(),
                   [](const std::string& one, const std::string& other) { return last_use(one) > last_use(other); });
  std::string missing;
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(const auto usable, prepare_directory(directory));
    if (usable) {
      return start_in(directory, spec, clock, limit);
    }
    missing += (missing.empty() ? "" : ", ") + printable(std::filesystem::path(directory).parent_path().string());
  }
  return Error{ErrorCode::config,
               "local: there is no directory for its socket: " + missing + " does not exist" + set_runtime_directory};
}

// nullopt: no server listens there.
Result<Found> found_in(const std::string& directory, const Clock& clock, const CallLimits& limit)
{
  const std::string socket = local_socket(directory);
  if (!is_private_directory(directory) || !is_listening(socket)) {
    return Found();
  }
  ASSIGN_OR_RETURN(auto entry, local_entry(directory, clock, limit));
  auto ready = ready_in(directory, std::move(entry), clock, limit);
  const bool has_died = !ready && ready.error().code != ErrorCode::interrupted && !is_listening(socket);
  return has_died ? Result(Found()) : std::move(ready);
}

Error name_is_taken(const std::string& name)
{
  return {ErrorCode::unreachable, "local: another user or container holds the abstract socket '" + name +
                                      "', which the server needs; see 'ss -xlp' or use another server (-S)"};
}

Error out_of_reach(const NameHolder& holder)
{
  const std::string pid = std::to_string(holder.pid);
  return {ErrorCode::unreachable,
          "local: the server is process " + pid + " and cannot be reached: " +
              (holder.directory.empty() ? "its directory was removed" : "no answer at its socket") +
              "; stop it with 'kill " + pid + "' when its jobs have ended"};
}

bool is_settled(const Result<Found>& found) { return !found || found->has_value(); }

Result<LocalServer> settled(Result<Found> found)
{
  return found ? Result(**std::move(found)) : Result<LocalServer>(found.error());
}

}  // namespace

Result<LocalServer> local_server(const LocalSpec& spec, const Clock& clock, const CallLimits& limit)
{
  constexpr Millis pause_time{10};
  for (;;) {
    for (const std::string& directory : spec.directories) {
      if (auto found = found_in(directory, clock, limit); is_settled(found)) {
        return settled(std::move(found));
      }
    }
    const auto holder = find_name_holder(spec.name);
    if (!holder && !spec.starts) {
      return Error{ErrorCode::unreachable, "local: its server does not run"};
    }
    const bool is_visible = holder && holder->pid != 0;
    if (is_visible && holder->directory.empty()) {
      return out_of_reach(*holder);
    }
    auto found = !holder      ? start(spec, clock, limit)
                 : is_visible ? found_in(holder->directory, clock, limit)
                              : Result(Found());
    if (is_settled(found)) {
      return settled(std::move(found));
    }
    // The server may be starting or ending.
    if (clock.now() >= limit.deadline) {
      return is_visible ? out_of_reach(*holder) : name_is_taken(spec.name);
    }
    if (!pause(pause_time, clock, limit)) {
      return interrupted();
    }
  }
}

namespace {

// Why the directory is not private; empty: it is.
std::string permission_problem(const std::string& directory)
{
  struct stat found {};
  if (::lstat(directory.c_str(), &found) != 0) {
    return os_text(errno);
  }
  if (!S_ISDIR(found.st_mode)) {
    return "it is no directory (remove it)";
  }
  if (found.st_uid != ::geteuid()) {
    return std::string("it belongs to another user") + set_runtime_directory;
  }
  if ((found.st_mode & 077) != 0) {
    return "other users can access it (chmod 700 " + printable(directory) + ")";
  }
  return {};
}

Error unusable(const std::string& directory, const std::string& why)
{
  return {ErrorCode::config, "local: cannot use " + printable(directory) + ": " + why};
}

}  // namespace

Result<LocalSpec> local_spec(const std::string& xdg_runtime_dir, const std::string& name, const std::string& idle,
                             unsigned uid)
{
  constexpr std::size_t longest = 32;
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (name.size() > longest || name.find_first_not_of(allowed) != std::string::npos) {
    return Error{ErrorCode::config, "RLOCK_LOCAL_NAME: '" + printable(name) +
                                        "' is no name (use at most 32 letters, digits, '-', '_' and '.')"};
  }
  const auto idle_time = idle.empty() ? default_local_idle : read_duration(idle);
  if (!std::holds_alternative<Millis>(idle_time)) {
    return Error{ErrorCode::config, "RLOCK_LOCAL_IDLE: '" + printable(idle) + "' is no duration (try 10m; 0: never)"};
  }
  const std::string user = std::to_string(uid);
  const std::string suffix = name.empty() ? "" : "-" + name;
  const std::string of_session = "/run/user/" + user;
  LocalSpec spec{.directories = {of_session + "/rlock" + suffix, "/tmp/rlock-" + user + suffix},
                 .name = "rlock-local-" + user + "-" + root_identity() + suffix,
                 .idle = std::get<Millis>(idle_time)};
  if (!xdg_runtime_dir.empty() && xdg_runtime_dir != of_session) {
    spec.directories = {xdg_runtime_dir + "/rlock" + suffix};
  }
  return spec;
}

std::string local_socket(const std::string& directory) { return directory + "/" + std::string(local_socket_name); }

std::string local_log(const std::string& directory) { return directory + "/redis.log"; }

bool is_private_directory(const std::string& directory) { return permission_problem(directory).empty(); }

Result<bool> prepare_directory(const std::string& directory)
{
  if (!directory.starts_with('/')) {
    return unusable(directory, "it is not absolute (correct XDG_RUNTIME_DIR)");
  }
  if (!fits_socket_address(local_socket(directory))) {
    return unusable(directory, socket_path_too_long() + " (set XDG_RUNTIME_DIR to a shorter one)");
  }
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    if (errno == ENOENT) {
      return false;
    }
    return unusable(directory, os_text(errno));
  }
  const std::string weak = permission_problem(directory);
  if (!weak.empty()) {
    return unusable(directory, weak);
  }
  return true;
}

namespace {

namespace fs = std::filesystem;

// The inode number of the socket with this name, from /proc/net/unix; empty: there is none.
std::string inode_of(const std::string& name)
{
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::string address, references, protocol, flags, type, state, inode, path;
    if (fields >> address >> references >> protocol >> flags >> type >> state >> inode >> path && path == "@" + name) {
      return inode;
    }
  }
  return {};
}

bool has_open(const fs::path& process, const std::string& inode)
{
  const std::string wanted = "socket:[" + inode + "]";
  std::error_code gone;
  for (fs::directory_iterator each(process / "fd", gone), end; !gone && each != end; each.increment(gone)) {
    std::error_code closed;
    if (fs::read_symlink(each->path(), closed) == wanted) {
      return true;
    }
  }
  return false;
}

bool is_process_of_this_user(const fs::path& path)
{
  const std::string number = path.filename();
  struct stat about {};
  return std::all_of(number.begin(), number.end(), [](unsigned char c) { return std::isdigit(c) != 0; }) &&
         ::stat(path.c_str(), &about) == 0 && about.st_uid == ::geteuid();
}

// 0: no visible process of this user.
pid_t process_with(const std::string& inode)
{
  std::error_code failed;
  for (fs::directory_iterator each("/proc", failed), end; !failed && each != end; each.increment(failed)) {
    if (is_process_of_this_user(each->path()) && has_open(each->path(), inode)) {
      return std::stoi(each->path().filename());
    }
  }
  return 0;
}

// Through /proc, so that the path is right in another mount namespace too (a service with a private /tmp).
std::string working_directory_of(pid_t pid)
{
  const std::string link = "/proc/" + std::to_string(pid) + "/cwd";
  std::error_code gone;
  const std::string target = fs::read_symlink(link, gone);
  return gone || target.ends_with(" (deleted)") ? "" : link + "/.";
}

}  // namespace

std::string root_identity()
{
  struct stat root {};
  ::stat("/", &root);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%llx:%llu", static_cast<unsigned long long>(root.st_dev),
                static_cast<unsigned long long>(root.st_ino));
  return text.data();
}

AbstractAddress abstract_address(const std::string& name)
{
  AbstractAddress address;
  address.bytes.sun_family = AF_UNIX;
  std::memcpy(address.bytes.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

int hold_name(const AbstractAddress& address)
{
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address.bytes), address.length) != 0) {
    ::close(fd);
    return -1;  // close does not change errno when it succeeds
  }
  return fd;
}

std::optional<NameHolder> find_name_holder(const std::string& name)
{
  const std::string inode = inode_of(name);
  if (inode.empty()) {
    return std::nullopt;
  }
  NameHolder holder{.pid = process_with(inode), .directory = {}};
  if (holder.pid != 0) {
    holder.directory = working_directory_of(holder.pid);
  }
  return holder;
}

}  // namespace rlock
