// SPDX-License-Identifier: Apache-2.0
#include "net/resolve.h"

#include "base/stop.h"
#include "net/byte_stream.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <netdb.h>
#include <poll.h>

namespace rlock {
namespace {

struct Lookup {
  int code = EAI_AGAIN;  // of getaddrinfo
  int error = 0;         // errno, with EAI_SYSTEM
  std::vector<Address> addresses;
};

Lookup look_up(const std::string& host, std::uint16_t port, int flags)
{
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  Lookup found;
  found.code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  found.error = errno;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    Address& address = found.addresses.emplace_back();
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
    address.length = each->ai_addrlen;
  }
  if (list != nullptr) {
    ::freeaddrinfo(list);
  }
  return found;
}

// Remembers the addresses of earlier lookups, for a process that no longer gets a thread. Thread-safe.
class KnownHosts {
 public:
  void remember(const std::string& host, std::uint16_t port, const std::vector<Address>& addresses)
  {
    const MutexLock lock(m_mutex);
    m_addresses[{host, port}] = addresses;
  }

  std::optional<std::vector<Address>> find(const std::string& host, std::uint16_t port)
  {
    const MutexLock lock(m_mutex);
    const auto found = m_addresses.find({host, port});
    return found != m_addresses.end() ? std::optional(found->second) : std::nullopt;
  }

 private:
  Mutex m_mutex;
  std::map<std::pair<std::string, std::uint16_t>, std::vector<Address>> m_addresses GUARDED_BY(m_mutex);
};

KnownHosts& known_hosts()
{
  static KnownHosts& hosts = *new KnownHosts;  // never destroyed, because threads may use it until the process ends
  return hosts;
}

// Shared by the caller and the lookup thread, and freed by the last of them.
struct PendingLookup {
  StopSource done;
  Mutex mutex;
  Lookup lookup GUARDED_BY(mutex);
};

// The thread is detached, because nothing can end a getaddrinfo early. PendingLookup keeps its result.
Result<std::shared_ptr<PendingLookup>> start_lookup(const std::string& host, std::uint16_t port)
{
  try {
    auto pending = std::make_shared<PendingLookup>();
    std::thread([pending, host, port] {
      Lookup lookup = look_up(host, port, 0);
      {
        const MutexLock lock(pending->mutex);
        pending->lookup = std::move(lookup);
      }
      pending->done.request();
    }).detach();
    return pending;
  } catch (const std::system_error& error) {
    return Error{ErrorCode::os, "cannot look up a host: " + os_text(error.code().value())};
  }
}

Error unresolved(const Lookup& lookup)
{
  if (lookup.code == EAI_SYSTEM) {
    return {ErrorCode::os, os_text(lookup.error)};
  }
  if (lookup.code == EAI_AGAIN) {
    return unreachable("its name cannot be looked up now", " (is the network up?)");
  }
  Error unknown = unreachable("no such host", " (check the name; -S names another server)");
  unknown.nobody_there = true;
  return unknown;
}

}  // namespace

Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port, const Clock& clock,
                                     const CallLimits& limit)
{
  Lookup numeric = look_up(host, port, AI_NUMERICHOST);
  if (numeric.code == 0) {
    return std::move(numeric.addresses);
  }

  const Instant start = clock.now();
  const auto pending = start_lookup(host, port);
  if (!pending) {
    auto known = known_hosts().find(host, port);
    return known ? Result(*std::move(known)) : pending.error();
  }
  switch (wait_for((*pending)->done.token().fd(), POLLIN, clock, limit)) {
    case Waited::stopped: return interrupted();
    case Waited::late: return no_answer_in_time("its name was not found within " + elapsed(clock, start, limit));
    case Waited::ready: break;
  }
  PendingLookup& done = **pending;
  const MutexLock lock(done.mutex);
  if (done.lookup.code != 0) {
    return unresolved(done.lookup);
  }
  known_hosts().remember(host, port, done.lookup.addresses);
  return std::move(done.lookup.addresses);
}

}  // namespace rlock
