// SPDX-License-Identifier: Apache-2.0
#include "redis/connection.h"

#include <poll.h>
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/password_file.h"
#include "base/text.h"
#include "net/byte_stream.h"
#include "redis/codec.h"

namespace rlock {

// Logs in, selects the db and checks the role, before any other request. Private to redis.

// Takes one round trip, or none without a password, a db and Endpoint::must_be_master. The handshake is never sent together with
// another request, because that request would run as the default user or in db 0 after a refused AUTH or SELECT. When the server
// refuses the password, the function reads the password file again and tries once more if the password has changed. Returns
// whether the server has told its role.
Result<bool> shake_hands(Connection& connection, const Endpoint& endpoint, const CallLimits& limit);

// How far a connection that refuses a replica knows the role of its server. Where nothing asks for the role before the first
// request, HELLO is sent together with that request, so that the question takes no round trip.
enum class RoleCheck { done, not_asked, asked, is_replica };

struct Connection::State {
  ByteStream stream;
  Decoder decoder;
  RoleCheck role = RoleCheck::done;

  auto feed()
  {
    return [this](std::string_view bytes) { decoder.feed(bytes); };
  }
};

Connection::Connection(std::unique_ptr<State> state) : m_state(std::move(state)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;
Connection::~Connection() = default;

int Connection::fd() const { return m_state->stream.fd(); }

std::optional<std::chrono::days> Connection::certificate_left() const { return m_state->stream.certificate_left(); }

const std::string& Connection::where() const { return m_state->stream.where(); }

Result<Connection> Connection::open(const Endpoint& endpoint, const Clock& clock, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(auto stream, ByteStream::open(endpoint, clock, limit));
  Connection connection(std::unique_ptr<State>(new State{std::move(stream), Decoder()}));
  State& state = *connection.m_state;
  RETURN_IF_ERROR(state.stream.decrypt_into(state.feed()));
  ASSIGN_OR_RETURN(const auto has_told_role, shake_hands(connection, endpoint, limit));
  state.role = endpoint.refuses_replica && !has_told_role ? RoleCheck::not_asked : RoleCheck::done;
  return connection;
}

namespace {

constexpr std::array<std::string_view, 2> role_question{"HELLO", "2"};

std::string_view value_in(const Reply& hello, std::string_view name)
{
  for (std::size_t i = 0; i + 1 < hello.elements.size(); i += 2) {
    if (hello.elements[i].text == name) {
      return hello.elements[i + 1].text;
    }
  }
  return {};
}

// HELLO tells the role, also to a user without any rights. Before Redis 6 there is only ROLE.
std::string_view role_in(const Reply& hello) { return value_in(hello, "role"); }

bool is_replica(const Reply& hello)
{
  const std::string_view role = role_in(hello);
  return role == "replica" || role == "slave";
}

// A replica may accept writes (replica-read-only), and its master knows nothing of them.
Error replica_refused(ErrorCode code, const std::string& where)
{
  return {code, where + " is a replica, where a lock excludes nobody (name the master)"};
}

// nullopt: it is none.
std::optional<Error> sentinel_refused(const Reply& hello, const std::string& where)
{
  if (value_in(hello, "mode") != "sentinel") {
    return std::nullopt;
  }
  const auto scheme = std::min(where.find("://"), where.size());
  return Error{ErrorCode::config, where + " is a sentinel (use -S " + where.substr(0, scheme) + "+sentinel" +
                                      where.substr(scheme) + "/NAME with the name of the master)"};
}

// The server has no HELLO. Any other error answers the request behind it as well.
bool has_no_hello(const Reply& reply)
{
  return is_unknown_command(reply.text) && reply.text.find("HELLO") != std::string::npos;
}

}  // namespace

Result<Reply> Connection::call(std::span<const std::string_view> argv, const CallLimits& limit)
{
  RETURN_IF_ERROR(send(argv, limit));
  return answer(limit);
}

Result<Done> Connection::send(std::span<const std::string_view> argv, const CallLimits& limit)
{
  if (limit.stop.requested()) {
    return interrupted();
  }
  std::string request = encode(argv);
  if (m_state->role == RoleCheck::not_asked) {
    m_state->role = RoleCheck::asked;
    request.insert(0, encode(role_question));
  }
  return m_state->stream.send(request, limit);
}

// Nullopt: it answers the question for the role, which goes before the first request. A replica's errors pass, because they say
// more.
std::optional<Result<Reply>> Connection::checked_for_role(Reply reply)
{
  RoleCheck& role = m_state->role;
  if (role == RoleCheck::is_replica && !reply.is_error()) {
    return replica_refused(ErrorCode::unreachable, where());  // the request may have happened there
  }
  if (role != RoleCheck::asked) {
    return reply;
  }
  role = is_replica(reply) ? RoleCheck::is_replica : RoleCheck::done;
  if (const auto sentinel = sentinel_refused(reply, where())) {
    return *sentinel;
  }
  return reply.is_error() && !has_no_hello(reply) ? std::optional<Result<Reply>>(std::move(reply)) : std::nullopt;
}

Result<Reply> Connection::answer(const CallLimits& limit)
{
  const Instant start = m_state->stream.clock().now();
  ASSIGN_OR_RETURN(auto reply, receive(limit));
  if (!reply.has_value()) {
    return m_state->stream.no_answer(start, limit);
  }
  return *std::move(reply);
}

Result<std::optional<Reply>> Connection::receive(const CallLimits& limit)
{
  // A server that never stops sending must not delay the caller: after the deadline there is one more look.
  for (bool over = false;;) {
    auto reply = m_state->decoder.next();
    if (!reply) {
      return Error{reply.error().code, where() + " " + reply.error().text};
    }
    if (reply->has_value()) {
      auto checked = checked_for_role(**std::move(reply));
      if (checked) {
        return *checked ? Result(std::optional<Reply>(**std::move(checked)))
                        : Result<std::optional<Reply>>(checked->error());
      }
      continue;
    }
    if (over) {
      return reply;
    }
    over = m_state->stream.clock().now() >= limit.deadline;
    switch (over ? Waited::ready : wait_for(fd(), POLLIN, m_state->stream.clock(), limit)) {
      case Waited::late: return std::optional<Reply>{};
      case Waited::stopped: return interrupted();
      case Waited::ready: break;
    }
    RETURN_IF_ERROR(m_state->stream.read_into(m_state->feed()));
  }
}

namespace {

using Words = std::vector<std::string_view>;

Result<std::vector<Reply>> ask_all(Connection& connection, const std::vector<Words>& requests, const CallLimits& limit)
{
  for (const Words& request : requests) {
    RETURN_IF_ERROR(connection.send(request, limit));
  }
  std::vector<Reply> replies;
  while (replies.size() < requests.size()) {
    ASSIGN_OR_RETURN(auto reply, connection.answer(limit));
    replies.push_back(std::move(reply));
  }
  return replies;
}

Words hello(const Endpoint& endpoint, bool logs_in)
{
  if (!logs_in) {
    return {"HELLO", "2"};
  }
  const std::string_view user = endpoint.user.empty() ? "default" : std::string_view(endpoint.user);
  return {"HELLO", "2", "AUTH", user, endpoint.password, "SETNAME", "rlock"};
}

// AUTH without HELLO, for servers before Redis 6 and for some proxies.
Words plain_auth(const Endpoint& endpoint)
{
  return endpoint.user.empty() ? Words{"AUTH", endpoint.password} : Words{"AUTH", endpoint.user, endpoint.password};
}

// The text of the server is not shown, because some texts quote the request with its password.
Error login_failed(const Reply& reply, const std::string& where)
{
  Error error = error_from_reply(reply.text, where);
  if (error.code == ErrorCode::server_not_ready) {
    return error;
  }
  return {ErrorCode::refused, where + " refused the user or password" + std::string(check_login)};
}

Error select_failed(const Reply& reply, const Endpoint& endpoint)
{
  Error error = error_from_reply(reply.text, endpoint.shown());
  const bool no_such_db = error.code == ErrorCode::config || error.code == ErrorCode::unreachable;
  if (!no_such_db) {
    return error;
  }
  Endpoint server = endpoint;
  server.db = 0;
  return {ErrorCode::config, "no db " + std::to_string(endpoint.db) + " on " + server.shown() +
                                 " (0 is always there; its `databases` setting has their number)"};
}

Result<Done> check_master(Connection& connection, const Reply& hello, const CallLimits& limit)
{
  std::string role(role_in(hello));
  if (role.empty()) {
    const std::array<std::string_view, 1> argv{"ROLE"};
    ASSIGN_OR_RETURN(const auto answer, connection.call(argv, limit));
    if (answer.is_error() || answer.elements.empty()) {
      return error_from_reply(hello.is_error() ? hello.text : answer.text, connection.where());
    }
    role = answer.elements.front().text;
  }
  if (role == "master") {
    return Done{};
  }
  return Error{ErrorCode::server_not_ready,
               connection.where() + " says that it is a " + printable(role) + " and no master"};
}

// Whether the server has told its role.
Result<bool> log_in(Connection& connection, const Endpoint& endpoint, const CallLimits& limit)
{
  const bool logs_in = !endpoint.user.empty() || !endpoint.password.empty();
  const std::string db = std::to_string(endpoint.db);
  const bool says_hello = logs_in || endpoint.must_be_master || (endpoint.refuses_replica && endpoint.db != 0);
  std::vector<Words> requests;
  if (says_hello) {
    requests.push_back(hello(endpoint, logs_in));
  }
  if (endpoint.db != 0) {
    requests.push_back({"SELECT", db});
  }

  auto replies = ask_all(connection, requests, limit);
  if (replies && logs_in && replies->front().is_error() && is_unknown_command(replies->front().text)) {
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
  if (endpoint.must_be_master) {
    const auto checked = check_master(connection, replies->front(), limit);
    return checked ? Result(true) : Result<bool>(checked.error());
  }
  if (endpoint.refuses_replica && says_hello) {
    if (const auto sentinel = sentinel_refused(replies->front(), connection.where())) {
      return *sentinel;
    }
    if (is_replica(replies->front())) {
      return replica_refused(ErrorCode::server_not_ready, connection.where());
    }
  }
  return says_hello;
}

// The password may be changed while jobs run.
std::optional<Endpoint> with_new_password(const Endpoint& endpoint)
{
  auto password = changed_password(endpoint.password_file, endpoint.password);
  if (!password) {
    return std::nullopt;
  }
  Endpoint changed = endpoint;
  changed.password = *std::move(password);
  return changed;
}

}  // namespace

Result<bool> shake_hands(Connection& connection, const Endpoint& endpoint, const CallLimits& limit)
{
  auto done = log_in(connection, endpoint, limit);
  if (done || done.error().code != ErrorCode::refused) {
    return done;
  }
  const auto changed = with_new_password(endpoint);
  return changed ? log_in(connection, *changed, limit) : done;
}

}  // namespace rlock
