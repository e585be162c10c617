// SPDX-License-Identifier: Apache-2.0
#include "server/local_server.h"

#include "base/fd.h"
#include "base/text.h"
#include "net/connection.h"
#include "net/errors.h"
#include "net/wait.h"
#include "server/local_directory.h"
#include "server/local_idle.h"
#include "server/local_launch.h"
#include "server/local_name.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rlock {
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
  auto connection = Connection::open(endpoint, clock, limit);
  if (!connection) {
    return connection.error();
  }
  const std::array<std::string_view, 1> argv{"PING"};
  const auto reply = connection->call(argv, limit);
  if (!reply) {
    return reply.error();
  }
  if (reply->is_error()) {
    return error_from_reply(reply->text, endpoint.shown());
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
    if (pong.error().code != ErrorCode::unfit || clock.now() >= limit.deadline) {
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
  const auto program = find_server_program();
  if (!program) {
    return program.error();
  }
  auto entry = local_entry(directory, clock, limit);
  auto lock = entry ? start_lock(directory, clock, limit) : Result<Fd>(entry.error());
  if (!lock) {
    return lock.error();
  }
  if (is_listening(local_socket(directory))) {  // the process that had the lock before started it
    return ready_in(directory, *std::move(entry), clock, limit);
  }
  const Instant start = clock.now();
  const IdleRule idle{.time = spec.any_lock.empty() ? Millis{0} : spec.idle, .lock_query = eval_request(spec.any_lock)};
  const auto events = launch_server(*program, directory, spec.name, idle, *lock);
  if (!events) {
    return events.error();
  }
  lock->reset();
  switch (wait_for(events->get(), POLLIN, clock, limit)) {
    case Waited::stopped: return interrupted();
    case Waited::late: return not_started(directory, "its server did not start within " + elapsed(clock, start, limit));
    case Waited::ready: break;
  }
  char event = 0;
  if (::read(events->get(), &event, 1) != 1) {
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
  for (const std::string& directory : directories) {
    const auto usable = prepare_directory(directory);
    if (!usable) {
      return usable.error();
    }
    if (*usable) {
      return start_in(directory, spec, clock, limit);
    }
  }
  return Error{ErrorCode::config, std::string("local: there is no directory for its socket") + set_runtime_directory};
}

// nullopt: no server listens there.
Result<Found> found_in(const std::string& directory, const Clock& clock, const CallLimits& limit)
{
  const std::string socket = local_socket(directory);
  if (!is_private_directory(directory) || !is_listening(socket)) {
    return Found();
  }
  auto entry = local_entry(directory, clock, limit);
  if (!entry) {
    return entry.error();
  }
  auto ready = ready_in(directory, *std::move(entry), clock, limit);
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

}  // namespace rlock
