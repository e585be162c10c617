// SPDX-License-Identifier: Apache-2.0
#include "redis/transport.h"

#include <unistd.h>
#include <utility>
#include "net/byte_stream.h"
#include "redis/cluster.h"
#include "redis/codec.h"
#include "redis/local.h"
#include "redis/sentinel.h"

namespace rlock {

std::vector<std::string_view> views(std::span<const std::string> words) { return {words.begin(), words.end()}; }

std::vector<Result<Reply>> Transport::call_each(std::span<const Request> requests, const CallLimits& limit)
{
  std::vector<Result<Reply>> answers;
  for (const Request& request : requests) {
    answers.push_back(call(request.route_key, views(request.words), limit));
  }
  return answers;
}

Result<std::vector<std::string>> Transport::routes(const CallLimits&) { return std::vector<std::string>{""}; }

Direct::Direct(Endpoint endpoint, const Clock& clock) : m_server(std::move(endpoint)), m_clock(clock) {}

Result<Reply> Direct::call(std::string_view, std::span<const std::string_view> argv, const CallLimits& limit)
{
  const auto connected = connect(limit);
  return connected ? exchange(argv, limit) : connected.error();
}

Result<Reply> Direct::follow_up(std::string_view, std::span<const std::string_view> argv, const CallLimits& limit)
{
  return m_connection ? exchange(argv, limit) : connection_lost(m_server.shown());
}

Result<Reply> Direct::exchange(std::span<const std::string_view> argv, const CallLimits& limit)
{
  const Instant sent = m_clock.now();
  auto reply = checked(m_connection->call(argv, limit));
  if (!reply) {
    drop_connection();
    return reply;
  }
  const auto counts = check_answer(sent, limit);
  return counts ? std::move(reply) : counts.error();
}

Result<Done> Direct::check_answer(Instant sent, const CallLimits& limit)
{
  if (believes(m_clock.now() - sent, limit)) {
    return Done{};
  }
  drop_connection();
  return Error{ErrorCode::unreachable,
               "the answer of " + m_server.shown() + " came late, and another server is the master now"};
}

bool Direct::believes(Instant::duration, const CallLimits&) { return true; }

std::vector<Result<Reply>> Direct::call_each(std::span<const Request> requests, const CallLimits& limit)
{
  Result<Done> state = connect(limit);
  const Instant sent = m_clock.now();
  for (const Request& request : requests) {
    const std::vector<std::string_view> argv(request.words.begin(), request.words.end());
    state = state ? m_connection->send(argv, limit) : state;
  }
  std::vector<Result<Reply>> answers;
  while (answers.size() < requests.size()) {
    answers.push_back(state ? checked(m_connection->answer(limit)) : Result<Reply>(state.error()));
    state = state && !answers.back() ? Result<Done>(answers.back().error()) : state;
  }
  if (!state) {
    drop_connection();
  } else if (const auto counts = check_answer(sent, limit); !counts) {
    answers.clear();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      answers.push_back(counts.error());
    }
  }
  return answers;
}

Result<Subscription> Direct::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  return Subscription::open(m_server, channels, m_clock, limit);
}

void Direct::drop_connection() { m_connection.reset(); }

Result<Done> Direct::connect(const CallLimits& limit)
{
  return m_connection ? Result(Done{}) : connect_to(m_server, limit);
}

Result<Done> Direct::connect_to(Endpoint endpoint, const CallLimits& limit)
{
  m_server = std::move(endpoint);
  ASSIGN_OR_RETURN(auto opened, Connection::open(m_server, m_clock, limit));
  m_connection = std::move(opened);
  return Done{};
}

// The caller drops the connection after an Error: the server's name may lead to another server by now, for example from
// a replica to the master.
Result<Reply> Direct::checked(Result<Reply> reply) const
{
  if (reply && reply->is_error() && !is_unknown_script(reply->text)) {
    return error_from_reply(reply->text, m_server.shown());
  }
  return reply;
}

namespace {

Result<std::unique_ptr<Transport>> open_local(const LocalServerOptions& local, const Clock& clock, StopToken stop)
{
  ASSIGN_OR_RETURN(auto spec, local_spec(local.runtime_directory, local.name, local.idle, ::geteuid()));
  spec.any_lock = local.any_lock;
  spec.starts = local.starts;
  auto transport = std::make_unique<Local>(std::move(spec), clock);
  const auto started = transport->connect({.deadline = clock.now() + local.timeout, .stop = stop});
  return started ? Result(std::unique_ptr<Transport>(std::move(transport)))
                 : Result<std::unique_ptr<Transport>>(started.error());
}

}  // namespace

Result<std::unique_ptr<Transport>> open_transport(const Endpoint& endpoint, const LocalServerOptions& local,
                                                  const Clock& clock, StopToken stop)
{
  switch (endpoint.kind) {
    case Endpoint::Kind::local: return open_local(local, clock, stop);
    case Endpoint::Kind::sentinel: return std::unique_ptr<Transport>(std::make_unique<Sentinel>(endpoint, clock));
    case Endpoint::Kind::cluster: return std::unique_ptr<Transport>(std::make_unique<Cluster>(endpoint, clock));
    case Endpoint::Kind::tcp:
    case Endpoint::Kind::unix_socket: return std::unique_ptr<Transport>(std::make_unique<Direct>(endpoint, clock));
    case Endpoint::Kind::other: break;
  }
  return Error{ErrorCode::config, "the server " + endpoint.shown() + " is no Redis server (give one with -S)"};
}

}  // namespace rlock
