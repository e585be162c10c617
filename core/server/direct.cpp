// SPDX-License-Identifier: Apache-2.0
#include "server/direct.h"

#include "net/errors.h"
#include "net/wait.h"

#include <utility>

namespace rlock {

Direct::Direct(Endpoint endpoint, const Clock& clock) : m_endpoint(std::move(endpoint)), m_clock(clock) {}

Result<Reply> Direct::call(std::string_view, std::span<const std::string_view> argv, const CallLimits& limit)
{
  if (const auto connected = connect(limit); !connected) {
    return connected.error();
  }
  auto reply = meant(m_connection->call(argv, limit));
  if (!reply) {
    forget();
  }
  return reply;
}

Result<Reply> Direct::follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                                const CallLimits& limit)
{
  return m_connection ? call(route_key, argv, limit) : cut_off(m_endpoint.shown());
}

// After a failure nothing more is read: what was sent by then is unknown, all of it.
std::vector<Result<Reply>> Direct::call_each(std::span<const Request> requests, const CallLimits& limit)
{
  Result<Done> fine = connect(limit);
  for (const Request& request : requests) {
    const std::vector<std::string_view> argv(request.words.begin(), request.words.end());
    fine = fine ? m_connection->send(argv, limit) : fine;
  }
  std::vector<Result<Reply>> answers;
  while (answers.size() < requests.size()) {
    answers.push_back(fine ? meant(m_connection->answer(limit)) : Result<Reply>(fine.error()));
    fine = fine && !answers.back() ? Result<Done>(answers.back().error()) : fine;
  }
  if (!fine) {
    forget();
  }
  return answers;
}

Result<Done> Direct::connect(const CallLimits& limit)
{
  if (!m_connection) {
    auto opened = Connection::open(m_endpoint, m_clock, limit);
    if (!opened) {
      return opened.error();
    }
    m_connection = *std::move(opened);
  }
  return Done{};
}

// After an Error the connection is of no use: a name may lead to another server by now, one that is no replica, say.
Result<Reply> Direct::meant(Result<Reply> reply)
{
  if (reply && reply->is_error() && !is_unknown_script(reply->text)) {
    return error_from_reply(reply->text, m_endpoint.shown());
  }
  return reply;
}

Result<Subscription> Direct::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  return Subscription::open(m_endpoint, channels, m_clock, limit);
}

void Direct::forget() { m_connection.reset(); }

}  // namespace rlock
