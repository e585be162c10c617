// SPDX-License-Identifier: Apache-2.0
#include "engine/looking_source.h"

#include <poll.h>
#include "base/wait.h"

namespace rlock::record {

void LookingSource::look_after(Millis pause)
{
  m_next_look = m_clock.now() + pause;
  set_alarm();
}

void LookingSource::set_alarm() { m_alarm.set(has_messages() ? m_clock.now() : m_next_look); }

Result<std::optional<Message>> LookingSource::next(const CallLimits& limit)
{
  while (!has_messages()) {
    if (m_clock.now() < m_next_look) {
      switch (wait_for(fd(), POLLIN, m_clock, limit)) {
        case Waited::ready: break;
        case Waited::late: return std::optional<Message>{};
        case Waited::stopped: return interrupted();
      }
    }
    ASSIGN_OR_RETURN(const auto pause, look(limit));
    look_after(pause);
  }
  Message first = std::move(m_heard.front());  // cppcheck-suppress containerOutOfBounds
  m_heard.pop_front();
  set_alarm();
  return std::optional(std::move(first));
}

}  // namespace rlock::record
