// SPDX-License-Identifier: Apache-2.0
#include "wire/local_server.h"

#include "base/fd.h"
#include "base/text.h"
#include "wire/connection.h"
#include "wire/errors.h"
#include "wire/local_directory.h"
#include "wire/local_launch.h"
#include "wire/wait.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

namespace rlock {
namespace {

Error not_up(const std::string& directory, const std::string& why)
{
  return {Fault::unreachable, "local: " + why + "; its log is " + printable(local_log(directory))};
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
  return not_up(directory, "its server ended: " + printable(last_line(local_log(directory))));
}

// False: the stop ended it.
bool pause(Millis time, const Clock& clock, const Limit& limit)
{
  return clock.sleep_until(std::min(clock.now() + time, limit.deadline), limit.stop) == Wake::due;
}

Result<Done> ping(const Endpoint& endpoint, const Clock& clock, const Limit& limit)
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

// For a server that listens: it may still be loading.
Result<Endpoint> when_ready(const std::string& directory, const Clock& clock, const Limit& limit)
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
    if (pong.error().fault == Fault::interrupted) {
      return pong.error();
    }
    if (!somebody_listens(endpoint.path)) {
      return ended(directory);
    }
    if (pong.error().fault != Fault::unfit || clock.now() >= limit.deadline) {
      return not_up(directory, pong.error().text);
    }
    if (!pause(pause_time, clock, limit)) {
      return interrupted();
    }
  }
}

// Held by one starter of a server at a time.
Result<Fd> start_lock(const std::string& directory, const Clock& clock, const Limit& limit)
{
  constexpr Millis pause_time{10};
  const std::string path = directory + "/start.lock";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    return Error{Fault::config, "local: cannot open " + printable(path) + ": " + os_text(errno)};
  }
  const Instant start = clock.now();
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return Error{Fault::os, "local: cannot lock " + printable(path) + ": " + os_text(errno)};
    }
    if (clock.now() >= limit.deadline) {
      return not_up(directory,
                    "another rlock has been starting it for " + elapsed(clock, start, limit));
    }
    if (!pause(pause_time, clock, limit)) {
      return interrupted();
    }
  }
  return file;
}

Result<Endpoint> start_in(const std::string& directory, const Clock& clock, const Limit& limit)
{
  const auto program = find_server_program();
  if (!program) {
    return program.error();
  }
  auto lock = start_lock(directory, clock, limit);
  if (!lock) {
    return lock.error();
  }
  if (somebody_listens(local_socket(directory))) {  // whoever had the lock before us started it
    return when_ready(directory, clock, limit);
  }
  const Instant start = clock.now();
  const auto news = launch_server(*program, directory, *lock);
  if (!news) {
    return news.error();
  }
  lock->reset();
  switch (wait_for(news->get(), POLLIN, clock, limit)) {
    case Waited::stopped: return interrupted();
    case Waited::late:
      return not_up(directory, "its server did not start within " + elapsed(clock, start, limit));
    case Waited::ready: break;
  }
  char listens = 0;
  if (::read(news->get(), &listens, 1) != 1) {
    return ended(directory);
  }
  return when_ready(directory, clock, limit);
}

}  // namespace

Result<Endpoint> local_server(const std::vector<std::string>& directories, const Clock& clock,
                              const Limit& limit)
{
  for (const std::string& directory : directories) {
    if (!is_private_directory(directory) || !somebody_listens(local_socket(directory))) {
      continue;
    }
    auto ready = when_ready(directory, clock, limit);
    if (ready || ready.error().fault == Fault::interrupted ||
        somebody_listens(local_socket(directory))) {
      return ready;
    }  // else it died just now
  }
  for (const std::string& directory : directories) {
    const auto usable = prepare_directory(directory);
    if (!usable) {
      return usable.error();
    }
    if (*usable) {
      return start_in(directory, clock, limit);
    }
  }
  return Error{Fault::config,
               "local: there is no directory for its socket (set "
               "XDG_RUNTIME_DIR to one of yours)"};
}

}  // namespace rlock
