// SPDX-License-Identifier: Apache-2.0
#include "server/local_server.h"

#include "base/fd.h"
#include "base/text.h"
#include "net/connection.h"
#include "net/errors.h"
#include "net/wait.h"
#include "server/local_directory.h"
#include "server/local_launch.h"
#include "server/local_name.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
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
  const std::string path = directory + "/start.lock";
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

Result<std::optional<Endpoint>> ready_in(const std::string& directory, const Clock& clock, const CallLimits& limit)
{
  auto ready = when_ready(directory, clock, limit);
  return ready ? Result(std::optional(*std::move(ready))) : Result<std::optional<Endpoint>>(ready.error());
}

// nullopt: another process took the name at the same moment.
Result<std::optional<Endpoint>> start_in(const std::string& directory, const std::string& name, const Clock& clock,
                                         const CallLimits& limit)
{
  const auto program = find_server_program();
  if (!program) {
    return program.error();
  }
  auto lock = start_lock(directory, clock, limit);
  if (!lock) {
    return lock.error();
  }
  if (is_listening(local_socket(directory))) {  // the process that had the lock before started it
    return ready_in(directory, clock, limit);
  }
  const Instant start = clock.now();
  const auto events = launch_server(*program, directory, name, *lock);
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
  return event == static_cast<char>(LaunchEvent::listens) ? ready_in(directory, clock, limit)
                                                          : Result(std::optional<Endpoint>{});
}

// In the first directory whose parent exists.
Result<std::optional<Endpoint>> start(const LocalSpec& spec, const Clock& clock, const CallLimits& limit)
{
  for (const std::string& directory : spec.directories) {
    const auto usable = prepare_directory(directory);
    if (!usable) {
      return usable.error();
    }
    if (*usable) {
      return start_in(directory, spec.name, clock, limit);
    }
  }
  return Error{ErrorCode::config,
               "local: there is no directory for its socket (set "
               "XDG_RUNTIME_DIR to a directory of this user)"};
}

// nullopt: no server listens there.
std::optional<Result<Endpoint>> found_in(const std::string& directory, const Clock& clock, const CallLimits& limit)
{
  const std::string socket = local_socket(directory);
  if (!is_private_directory(directory) || !is_listening(socket)) {
    return std::nullopt;
  }
  auto ready = when_ready(directory, clock, limit);
  const bool died_just_now = !ready && ready.error().code != ErrorCode::interrupted && !is_listening(socket);
  return died_just_now ? std::nullopt : std::optional(std::move(ready));
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

}  // namespace

Result<Endpoint> local_server(const LocalSpec& spec, const Clock& clock, const CallLimits& limit)
{
  constexpr Millis pause_time{10};
  for (;;) {
    for (const std::string& directory : spec.directories) {
      if (auto found = found_in(directory, clock, limit)) {
        return *std::move(found);
      }
    }
    const auto holder = find_name_holder(spec.name);
    if (!holder) {
      auto started = start(spec, clock, limit);
      if (!started || *started) {
        return started ? Result(**std::move(started)) : Result<Endpoint>(started.error());
      }
    } else if (holder->pid != 0) {
      if (holder->directory.empty()) {
        return out_of_reach(*holder);
      }
      if (auto found = found_in(holder->directory, clock, limit)) {
        return *std::move(found);
      }
    }
    // The server may be starting or ending.
    if (clock.now() >= limit.deadline) {
      return holder && holder->pid != 0 ? out_of_reach(*holder) : name_is_taken(spec.name);
    }
    if (!pause(pause_time, clock, limit)) {
      return interrupted();
    }
  }
}

}  // namespace rlock
