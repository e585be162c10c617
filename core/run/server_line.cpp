// SPDX-License-Identifier: Apache-2.0
#include "run/server_line.h"

#include "base/duration.h"

#include <chrono>

namespace rlock {
namespace {

constexpr Millis not_told{1000};  // how long a server that was there may be away

}  // namespace

void ServerLine::server_failed(const Error& error)
{
  const Instant now = m_clock.now();
  m_failing_since = m_failing_since.value_or(now);
  const bool is_over_soon = m_was_there && now < *m_failing_since + not_told;
  if (!m_told && !is_over_soon) {
    m_told = true;
    m_log.notice(error.text + "; trying again", {.event = "unreachable"});
  }
}

void ServerLine::server_answered()
{
  if (m_told) {
    const auto away = std::chrono::ceil<Millis>(m_clock.now() - *m_failing_since);
    m_log.notice("the server can be used again after " + show_roughly(away), {.event = "reachable"});
  }
  m_failing_since.reset();
  m_told = false;
}

}  // namespace rlock
