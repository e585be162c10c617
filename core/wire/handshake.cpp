// SPDX-License-Identifier: Apache-2.0
#include "wire/handshake.h"

#include "wire/errors.h"

#include <string>
#include <vector>

namespace rlock {
namespace {

using Request = std::vector<std::string_view>;

Result<std::vector<Reply>> ask_all(Connection& connection, const std::vector<Request>& requests,
                                   const Limit& limit)
{
  for (const Request& request : requests) {
    if (const auto sent = connection.send(request, limit); !sent) {
      return sent.error();
    }
  }
  std::vector<Reply> replies;
  while (replies.size() < requests.size()) {
    auto reply = connection.answer(limit);
    if (!reply) {
      return reply.error();
    }
    replies.push_back(*std::move(reply));
  }
  return replies;
}

Request hello(const Endpoint& endpoint)
{
  const std::string_view user = endpoint.user.empty() ? "default" : std::string_view(endpoint.user);
  return {"HELLO", "2", "AUTH", user, endpoint.password, "SETNAME", "rlock"};
}

// Before Redis 6, and behind some proxies.
Request plain_auth(const Endpoint& endpoint)
{
  return endpoint.user.empty() ? Request{"AUTH", endpoint.password}
                               : Request{"AUTH", endpoint.user, endpoint.password};
}

bool is_unknown_command(const Reply& reply)
{
  return reply.is_error() && reply.text.starts_with("ERR unknown command");
}

// The server's own words are not shown here: some quote the request, and the password is in it.
Error login_failed(const Reply& reply, const std::string& where)
{
  Error error = error_from_reply(reply.text, where);
  if (error.fault == Fault::unfit) {
    return error;
  }
  return {Fault::refused, where +
                              " refused the user or password (check the URL, RLOCK_PASSWORD "
                              "or --password-file)"};
}

Error select_failed(const Reply& reply, const Endpoint& endpoint)
{
  Error error = error_from_reply(reply.text, endpoint.shown());
  const bool no_such_db = error.fault == Fault::config || error.fault == Fault::internal;
  if (!no_such_db) {
    return error;
  }
  Endpoint server = endpoint;
  server.db = 0;
  return {Fault::config, "no db " + std::to_string(endpoint.db) + " on " + server.shown() +
                             " (0 is always there; its `databases` setting has their number)"};
}

}  // namespace

Result<Done> shake_hands(Connection& connection, const Endpoint& endpoint, const Limit& limit)
{
  const bool logs_in = !endpoint.user.empty() || !endpoint.password.empty();
  const std::string db = std::to_string(endpoint.db);
  std::vector<Request> requests;
  if (logs_in) {
    requests.push_back(hello(endpoint));
  }
  if (endpoint.db != 0) {
    requests.push_back({"SELECT", db});
  }

  auto replies = ask_all(connection, requests, limit);
  if (replies && logs_in && is_unknown_command(replies->front())) {
    requests.front() = plain_auth(endpoint);
    replies = ask_all(connection, requests, limit);
  }
  if (!replies) {
    return replies.error();
  }
  if (logs_in && replies->front().is_error()) {
    return login_failed(replies->front(), endpoint.shown());
  }
  if (endpoint.db != 0 && replies->back().is_error()) {
    return select_failed(replies->back(), endpoint);
  }
  return Done{};
}

}  // namespace rlock
