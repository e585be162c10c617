// SPDX-License-Identifier: Apache-2.0
#include "support/memory_server.h"

#include <utility>

#include <sys/eventfd.h>

namespace rlock::test {

MemoryServer& memory_server_called(const std::string& name)
{
  static std::map<std::string, MemoryServer> servers;
  return servers[name];
}

MemoryListener::MemoryListener(MemoryServer& server, std::span<const LockSpec> specs, Owner owner)
    : m_server(server), m_owner(std::move(owner)), m_event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
  for (const LockSpec& spec : specs) {
    m_locks.push_back({.name = spec.name.text(), .hint = {}});
  }
  const std::lock_guard guard(m_server.mutex);
  m_server.listeners.push_back(this);
}

MemoryListener::~MemoryListener()
{
  const std::lock_guard guard(m_server.mutex);
  std::erase(m_server.listeners, this);
}

Result<Hints> MemoryListener::heard(const Clock&)
{
  const std::lock_guard guard(m_server.mutex);
  eventfd_t count = 0;
  ::eventfd_read(m_event.get(), &count);
  Hints hints;
  for (Heard& lock : m_locks) {
    hints.push_back(std::exchange(lock.hint, Hint{}));
  }
  return hints;
}

Result<Done> MemoryListener::hear_releases(std::size_t which, const CallLimits&)
{
  const std::lock_guard guard(m_server.mutex);
  m_locks[which].hears_releases = true;
  return Done{};
}

void MemoryListener::tell(const std::string& name, const std::optional<Owner>& to)
{
  for (Heard& lock : m_locks) {
    if (lock.name == name && (to ? *to == m_owner : lock.hears_releases)) {
      lock.hint.look_in = Millis{0};
      ::eventfd_write(m_event.get(), 1);
    }
  }
}

}  // namespace rlock::test
