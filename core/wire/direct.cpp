// SPDX-License-Identifier: Apache-2.0
#include "wire/direct.h"

#include "wire/errors.h"

#include <utility>

namespace rlock {

Direct::Direct(Endpoint endpoint, const Clock& clock)
    : m_endpoint(std::move(endpoint)), m_clock(clock)
{
}

Result<Reply> Direct::call(std::string_view, std::span<const std::string_view> argv,
                           const Limit& limit)
{
  if (!m_connection) {
    auto opened = Connection::open(m_endpoint, m_clock, limit);
    if (!opened) {
      return opened.error();
    }
    m_connection = *std::move(opened);
  }
  auto reply = m_connection->call(argv, limit);
  if (!reply) {
    forget();
    return reply;
  }
  if (reply->is_error() && !is_unknown_script(reply->text)) {
    forget();  // a name may lead to another server by now, one that is no replica, say
    return error_from_reply(reply->text, m_endpoint.shown());
  }
  return reply;
}

Result<Subscription> Direct::subscribe(std::string_view, std::span<const std::string_view> channels,
                                       const Limit& limit)
{
  return Subscription::open(m_endpoint, channels, m_clock, limit);
}

void Direct::forget() { m_connection.reset(); }

}  // namespace rlock
