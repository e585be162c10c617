// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_client.h"

#include <poll.h>
#include <algorithm>
#include <limits>
#include <utility>
#include "base/in_turn.h"
#include "base/password_file.h"
#include "base/text.h"
#include "base/wait.h"
#include "stores/zookeeper/jute.h"

namespace rlock::zookeeper {
namespace {

constexpr Millis longest_timeout{std::numeric_limits<std::int32_t>::max()};  // that a request can have

// Before all members are asked again.
constexpr Millis pause_without_leader{100};

// A frame with its length before it.
std::string framed(std::string_view frame) { return JuteWriter().text(frame).bytes(); }

// The first error that tells more than that a member did not answer, else the last one.
Error more_telling(const std::optional<Error>& before, const Error& error)
{
  const bool is_kept = before && before->code != ErrorCode::unreachable;
  return is_kept ? *before : error;
}

// No server takes only requests that are shorter than this: less than any record.
constexpr std::size_t smallest_limit = 512;
constexpr int tries_of_long_request = 2;  // after the first one
constexpr const char* too_long_advice = " (raise jute.maxbuffer; there are too many waiters, or a value is too long)";

std::size_t longest_of(std::span<const Operation> operations)
{
  constexpr std::size_t size_of_head = 8;
  std::size_t longest = 0;
  for (const Operation& each : operations) {
    longest = std::max(longest, each.body.size() + size_of_head);
  }
  return longest;
}

// Whether the server ended the connection instead of answering, or the reason for the missing answer is unknown.
bool has_hung_up(const Result<std::vector<Answer>>& answered)
{
  return !answered && answered.error().code == ErrorCode::unreachable && !answered.error().late;
}

// The answer to an earlier request, for which no caller waited.
bool is_old(const Received& received, std::int32_t next) { return received.number > 0 && received.number < next; }

// Whether the nodes belong to another user or password than that of the connection, and the file has another password by now. A
// connection is for its first login.
bool needs_new_password(ConnectionSpec& spec, std::span<const Answer> answers)
{
  const bool is_refused = std::ranges::any_of(answers, [](const Answer& each) { return each.code == Code::no_auth; });
  auto password = is_refused ? changed_password(spec.members.front().password_file, spec.password) : std::nullopt;
  if (!password) {
    return false;
  }
  spec.password = *std::move(password);
  return true;
}

}  // namespace

Error error_of(Code code, const std::string& where)
{
  switch (code) {
    case Code::no_auth:
      return {ErrorCode::refused,
              where +
                  " refused the user or password for the nodes of the locks (check the URL, RLOCK_PASSWORD, "
                  "RLOCK_PASSWORD_FILE or --password-file; rlock acl prints the rights)"};
    case Code::auth_failed:
      return {ErrorCode::refused, where + " refused the user or password" + std::string(check_login)};
    case Code::unimplemented:
      return {ErrorCode::server_not_ready, where + " is too old (rlock needs ZooKeeper 3.5 or later)"};
    case Code::bad_arguments: return {ErrorCode::config, where + " takes no node of such a name (change the key)"};
    case Code::session_expired:
    case Code::session_moved: return {ErrorCode::unreachable, where + " says that the session has ended or moved"};
    default:
      return {ErrorCode::server_not_ready,
              where + " answered with the error " + std::to_string(static_cast<int>(code)) + " of ZooKeeper"};
  }
}

Client::Client(ConnectionSpec spec, Millis session_timeout, const Clock& clock, std::unique_ptr<Rng> rng)
    : m_spec(std::move(spec)), m_timeout(session_timeout), m_clock(&clock), m_rng(std::move(rng))
{
}

void Client::drop()
{
  m_link.reset();
  m_events.clear();
}

void Client::forget_session()
{
  m_session = {};
  m_term = {};
}

// A session that was not proven for its whole timeout may have been closed, and is never attached again. After a change of the leader,
// ZooKeeper 3.8.0 let a session go on, with its nodes on one member, that two members had closed (ZOOKEEPER-4785 is of this kind): it
// attached, and its node could be changed, when clients of the other members had seen that node gone.
void Client::give_up_old_session()
{
  if (m_session.id != 0 && m_clock->now() >= m_term.from + m_term.length) {
    drop();
    forget_session();
  }
}

Error Client::nonsense(const Link& link) const
{
  return {ErrorCode::internal, link.stream.where() + " answered nonsense (is it ZooKeeper?)"};
}

// The next whole frame; nullopt: none by the deadline.
Result<std::optional<std::string>> Client::next_frame(Link& link, const CallLimits& limit) const
{
  // A server that never stops sending must not delay the caller: after the deadline there is one more look.
  for (bool is_over = false;;) {
    if (link.bytes.size() >= size_of_length) {
      const auto size = JuteReader(link.bytes).small();
      if (size < 0 || static_cast<std::size_t>(size) > longest_answer) {
        return nonsense(link);
      }
      const std::size_t whole = size_of_length + static_cast<std::size_t>(size);
      if (link.bytes.size() >= whole) {
        std::string frame = link.bytes.substr(size_of_length, whole - size_of_length);
        link.bytes.erase(0, whole);
        return std::optional(std::move(frame));
      }
    }
    if (is_over) {
      return std::optional<std::string>();
    }
    is_over = m_clock->now() >= limit.deadline;
    switch (is_over ? Waited::ready : wait_for(link.stream.fd(), POLLIN, *m_clock, limit)) {
      case Waited::late: return std::optional<std::string>();
      case Waited::stopped: return interrupted();
      case Waited::ready: break;
    }
    RETURN_IF_ERROR(link.stream.read_into(link.feed()));
  }
}

Result<std::string> Client::awaited_frame(Link& link, const CallLimits& limit) const
{
  const Instant start = m_clock->now();
  ASSIGN_OR_RETURN(auto frame, next_frame(link, limit));
  return frame ? Result(*std::move(frame)) : link.stream.no_answer(start, limit);
}

// False: it is no event.
bool Client::keep_event(const Received& received)
{
  if (received.number != event_number) {
    return false;
  }
  if (const auto event = watch_event(received.rest); event && !event->path.empty()) {
    m_events.push_back(*event);
  }
  return true;
}

std::string Client::frames_of(std::span<const Operation> operations)
{
  std::string bytes;
  for (const Operation& each : operations) {
    bytes += framed(frame_of(each, number_of(each, m_last_number + 1)));
    ++m_last_number;
  }
  return bytes;
}

// Of operations that were the last to be sent.
Result<std::vector<Answer>> Client::answers(Link& link, std::span<const Operation> operations, const CallLimits& limit)
{
  std::vector<Answer> all;
  auto next = static_cast<std::int32_t>(m_last_number - static_cast<std::int32_t>(operations.size()) + 1);
  while (all.size() < operations.size()) {
    ASSIGN_OR_RETURN(const auto frame, awaited_frame(link, limit));
    const auto head = received(frame);
    if (!head) {
      return nonsense(link);
    }
    if (keep_event(*head) || is_old(*head, next)) {
      continue;
    }
    const Operation& operation = operations[all.size()];
    auto answer = head->number == number_of(operation, next) ? answer_to(operation, *head) : std::nullopt;
    if (!answer) {
      return nonsense(link);
    }
    m_last_zxid = std::max(m_last_zxid, answer->zxid);
    all.push_back(*std::move(answer));
    ++next;
  }
  return all;
}

Result<Client::Link> Client::open_link(const Endpoint& member, const CallLimits& limit) const
{
  ASSIGN_OR_RETURN(auto stream, ByteStream::open(member, *m_clock, limit));
  Link link{std::move(stream), {}};
  RETURN_IF_ERROR(link.stream.decrypt_into(link.feed()));
  return link;
}

namespace {

bool is_closed_unheard(const Error& error)
{
  return error.code == ErrorCode::unreachable && !error.was_there && !error.late;
}

// A member that has no leader closes each connection without an answer, as does one that expects TLS.
Error without_quorum(const Endpoint& member)
{
  const std::string tls = member.tls ? "" : " if it speaks TLS: " + member.scheme_with_tls() + "://";
  return {ErrorCode::unreachable,
          "lost the connection to " + member.shown() +
              ": the server closed it without an answer (do enough members run to elect a leader?" + tls + ")"};
}

}  // namespace

// Attaches the session, or begins one, on a new connection to a member, and sends the operations in the same write. Replaces the
// connection.
Result<std::vector<Answer>> Client::attach_and_ask(const Endpoint& member, Link link,
                                                   std::span<const Operation> operations, const CallLimits& limit)
{
  std::vector<Operation> all;
  if (!m_spec.user.empty()) {
    all.push_back(digest_auth(m_spec.user, m_spec.password));
  }
  all.insert(all.end(), operations.begin(), operations.end());
  const Instant before = m_clock->now();
  const bool is_new = m_session.id == 0;
  const std::string request = framed(
      connect_request(m_session, m_last_zxid, static_cast<std::int32_t>(std::min(m_timeout, longest_timeout).count())));
  RETURN_IF_ERROR(link.stream.send(request + frames_of(all), limit));
  const auto frame = awaited_frame(link, limit);
  if (!frame) {
    return is_closed_unheard(frame.error()) ? without_quorum(member) : frame.error();
  }
  const auto answer = connected(*frame);
  if (!answer ||
      (answer->timeout_ms > 0 && (answer->session.id == 0 || (!is_new && answer->session.id != m_session.id)))) {
    return nonsense(link);
  }
  if (answer->timeout_ms == 0) {
    forget_session();
    return Error{ErrorCode::unreachable, link.stream.where() + " says that the session has expired"};
  }
  if (is_new) {
    m_session = answer->session;
    m_term = {.from = before, .length = Millis(answer->timeout_ms)};
    ++m_session_number;
  }
  m_events.clear();
  ++m_connection_number;
  m_link = std::move(link);
  auto answered = answers(*m_link, all, limit);
  if (!answered) {
    m_link.reset();
    return answered.error();
  }
  if (!m_spec.user.empty()) {
    if (!answered->front().is_ok()) {
      return error_of(Code::auth_failed, where());
    }
    answered->erase(answered->begin());
  }
  m_attached = {.from = before, .length = Millis(answer->timeout_ms)};
  return answered;
}

// Each member that is tried gets its share of the time that is left. All are tried again where one took the connection and closed it: a
// member does that while a leader is elected.
Result<std::vector<Answer>> Client::ask_members(std::span<const Operation> operations, const CallLimits& limit)
{
  for (;;) {
    std::optional<Error> why;
    bool is_electing = false;
    const std::vector<Endpoint> members = shuffled(m_spec.members, *m_rng);
    std::size_t untried = members.size();
    for (const Endpoint& member : members) {
      const CallLimits share = share_of(limit, m_clock->now(), untried--);
      const bool had_session = m_session.id != 0;
      auto link = open_link(member, share);
      const bool is_there = static_cast<bool>(link);
      auto answered = link ? attach_and_ask(member, *std::move(link), operations, share)
                           : Result<std::vector<Answer>>(link.error());
      if (answered || answered.error().code == ErrorCode::interrupted || (had_session && m_session.id == 0)) {
        return answered;
      }
      const Error& error = answered.error();
      is_electing = is_electing || (is_there && error.code == ErrorCode::unreachable && !error.late);
      why = more_telling(why, error);
    }
    const Instant again = m_clock->now() + pause_without_leader;
    if (members.size() == 1 || !is_electing || again >= limit.deadline ||
        m_clock->sleep_until(again, limit.stop) != Wake::due) {
      return of_all_members(*std::move(why), members.size());
    }
  }
}

bool Client::is_connected()
{
  if (!m_link) {
    return false;
  }
  const CallLimits now{.deadline = m_clock->now(), .stop = StopToken::never()};
  pollfd look{.fd = m_link->stream.fd(), .events = POLLIN, .revents = 0};
  while (::poll(&look, 1, 0) > 0) {
    const auto frame = next_frame(*m_link, now);
    const auto head = frame && *frame ? received(**frame) : std::nullopt;
    if (!frame || (*frame && (!head || !keep_event(*head)))) {
      drop();
      return false;
    }
  }
  return true;
}

Result<std::vector<Answer>> Client::ask_connected(std::span<const Operation> operations, const CallLimits& limit)
{
  auto sent = m_link->stream.send(frames_of(operations), limit);
  auto answered = sent ? answers(*m_link, operations, limit) : Result<std::vector<Answer>>(sent.error());
  if (!answered) {
    drop();
  }
  return answered;
}

// After a connection that ended without an answer. That is all that a server says of a request which is longer than it takes. So the
// request follows a short one on a new connection: where only the short one is answered, again and again, it is too long.
Result<std::vector<Answer>> Client::ask_behind_short(std::span<const Operation> operations, std::size_t size,
                                                     const CallLimits& limit)
{
  const Operation look = exists("/", false);
  std::string member;
  for (int tries = 0; tries < tries_of_long_request; ++tries) {
    give_up_old_session();
    RETURN_IF_ERROR(ask_members(std::span(&look, 1), limit));
    member = where();
    auto answered = ask_connected(operations, limit);
    if (!has_hung_up(answered)) {
      return answered;
    }
  }
  return Error{ErrorCode::config, member + " hangs up at a request of " + std::to_string(size) +
                                      " bytes: it is longer than jute.maxbuffer of the server" + too_long_advice};
}

Result<std::vector<Answer>> Client::ask(std::span<const Operation> operations, const CallLimits& limit)
{
  if (limit.stop.requested()) {
    return interrupted();
  }
  const std::size_t size = longest_of(operations);
  if (size > longest_request) {
    return Error{.code = ErrorCode::config,
                 .text = m_spec.url + " takes no request of more than 1 MiB" + too_long_advice,
                 .no_room = true};
  }
  Result<std::vector<Answer>> answered = std::vector<Answer>();
  if (!is_connected()) {
    give_up_old_session();
    const bool had_session = m_session.id != 0;
    answered = ask_members(operations, limit);
    const bool has_expired = !answered && had_session && m_session.id == 0;
    answered = has_expired ? ask_members(operations, limit) : std::move(answered);
  } else {
    answered = ask_connected(operations, limit);
  }
  if (size >= smallest_limit && has_hung_up(answered)) {
    answered = ask_behind_short(operations, size, limit);
  }
  if (answered && needs_new_password(m_spec, *answered)) {  // what was refused has not happened
    drop();
    return ask(operations, limit);
  }
  return answered;
}

Result<Answer> Client::ask(const Operation& operation, const CallLimits& limit)
{
  auto answered = ask(std::span(&operation, 1), limit);
  return answered ? Result(std::move(answered->front())) : Result<Answer>(answered.error());
}

void Client::send_ahead(const Operation& operation)
{
  if (m_link) {
    const CallLimits now{.deadline = m_clock->now(), .stop = StopToken::never()};
    if (const auto sent = m_link->stream.send(frames_of(std::span(&operation, 1)), now); !sent) {
      drop();
    }
  }
}

Result<std::optional<Answer>> Client::prove(const Operation& change, const CallLimits& limit)
{
  give_up_old_session();
  if (m_session.id == 0) {
    return std::optional<Answer>();
  }
  auto answered = ask_members(std::span(&change, 1), limit);
  if (!answered) {
    return m_session.id == 0 ? Result(std::optional<Answer>()) : Result<std::optional<Answer>>(answered.error());
  }
  if (needs_new_password(m_spec, *answered)) {
    return prove(change, limit);
  }
  if (answered->front().is_ok()) {
    m_term = m_attached;
  }
  return std::optional(std::move(answered->front()));
}

Result<std::optional<WatchEvent>> Client::next_event(const CallLimits& limit)
{
  while (m_events.empty()) {
    if (!m_link) {
      return Error{ErrorCode::unreachable, "there is no connection to " + m_spec.url};
    }
    const auto frame = next_frame(*m_link, limit);
    if (!frame || !*frame) {
      if (!frame && frame.error().code != ErrorCode::interrupted) {
        drop();
      }
      return frame ? Result(std::optional<WatchEvent>()) : Result<std::optional<WatchEvent>>(frame.error());
    }
    const auto head = received(**frame);
    if (!head || (!keep_event(*head) && !is_old(*head, m_last_number + 1))) {
      const Error error = nonsense(*m_link);
      drop();
      return error;
    }
  }
  WatchEvent event = std::move(m_events.front());
  m_events.pop_front();
  return std::optional(std::move(event));
}

Result<Done> Client::close(const CallLimits& limit)
{
  if (m_session.id == 0) {
    drop();
    return Done{};
  }
  const auto answered = ask(close_session(), limit);
  drop();
  if (!answered) {
    return answered.error();
  }
  forget_session();
  return Done{};
}

void Client::close_ahead()
{
  send_ahead(close_session());
  drop();
  forget_session();
}

}  // namespace rlock::zookeeper
