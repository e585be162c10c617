// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_connection.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include "base/in_turn.h"
#include "base/password_file.h"
#include "base/text.h"
#include "base/wait.h"

namespace rlock::etcd {
namespace {

constexpr std::string_view no_leader = "etcdserver: no leader";
constexpr std::string_view too_large = "request is too large";
constexpr std::string_view too_large_message =
    "received message larger than max";  // says the library before etcd sees it
constexpr std::string_view too_large_advice =
    " (raise --max-request-bytes of etcd; there are too many waiters, or a value is too long)";

bool has_text(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// What the status of a refused request means to a lock client. The first row that fits counts.
struct StatusRow {
  GrpcCode code;
  std::string_view text;  // a part of the status's text
  ErrorCode means;
  std::string_view advice = {};
  bool no_room = false;
};
constexpr auto statuses = std::to_array<StatusRow>({
    {GrpcCode::permission_denied, "", ErrorCode::refused, " (rlock acl prints the role that rlock needs)"},
    {GrpcCode::unauthenticated, "", ErrorCode::refused, check_login},
    {GrpcCode::invalid_argument, "authentication failed", ErrorCode::refused, check_login},
    {GrpcCode::invalid_argument, "user name", ErrorCode::refused, " (give a user and a password)"},
    {GrpcCode::invalid_argument, "auth store is old", ErrorCode::unreachable},
    {GrpcCode::invalid_argument, too_large, ErrorCode::config, too_large_advice, true},
    {GrpcCode::resource_exhausted, too_large_message, ErrorCode::config, too_large_advice, true},
    {GrpcCode::resource_exhausted, "space exceeded", ErrorCode::server_not_ready,
     " (compact and defragment it, then: etcdctl alarm disarm)", true},
    {GrpcCode::resource_exhausted, "", ErrorCode::server_not_ready},
    {GrpcCode::unimplemented, "", ErrorCode::server_not_ready, " (run etcd 3.4 or later)"},
    {GrpcCode::unavailable, "", ErrorCode::unreachable},
    {GrpcCode::deadline_exceeded, "", ErrorCode::unreachable},
    {GrpcCode::unknown, "", ErrorCode::unreachable},
});

// The member refuses the token, because it has expired or the rights have changed.
bool is_about_token(const GrpcStatus& status)
{
  return (status.code == GrpcCode::unauthenticated && has_text(status.text, "invalid auth token")) ||
         has_text(status.text, "auth store is old");
}

}  // namespace

Connection::Connection(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
    : m_spec(std::move(spec)), m_clock(clock), m_rng(std::move(rng))
{
}

void Connection::drop()
{
  m_channel.reset();
  m_keep_alives = 0;
  m_watches = 0;
  m_events.clear();
}

Error Connection::lost(const Error& why)
{
  if (why.code != ErrorCode::interrupted) {
    m_failed = m_member;
  }
  drop();
  return why;
}

Error Connection::refused(const GrpcStatus& status)
{
  m_refusal = status;
  const std::string text = where() + ": " + printable(status.text);
  const auto* const row = std::ranges::find_if(
      statuses, [&](const StatusRow& each) { return each.code == status.code && has_text(status.text, each.text); });
  if (row == statuses.end()) {
    return unreachable(text, " (status " + std::to_string(static_cast<int>(status.code)) + ")");
  }
  const Error error{
      .code = row->means, .text = text + std::string(row->advice), .was_there = true, .no_room = row->no_room};
  return row->means == ErrorCode::unreachable ? lost(error) : error;
}

bool Connection::is_too_large() const
{
  return has_text(m_refusal.text, too_large) || has_text(m_refusal.text, too_large_message);
}

Error Connection::nonsense() { return lost({ErrorCode::internal, where() + " answered nonsense (is it etcd?)"}); }

Result<Done> Connection::connect(const CallLimits& limit)
{
  std::vector<std::size_t> order(m_spec.members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  order = shuffled(std::move(order), *m_rng);
  std::stable_partition(order.begin(), order.end(), [&](std::size_t member) { return member != m_failed; });
  std::string texts;
  const auto connected = in_turn(order, m_clock, limit, [&](std::size_t member, const CallLimits& share) {
    auto done = connect_to(member, share);
    texts += done ? "" : (texts.empty() ? "" : "; ") + done.error().text;
    return done;
  });
  if (connected || !is_passing(connected.error().code) || order.size() == 1) {
    return connected;
  }
  return Error{ErrorCode::unreachable, "no member of " + m_spec.url + " serves: " + texts};
}

Result<Done> Connection::connect_to(std::size_t member, const CallLimits& limit)
{
  const auto opening = m_spec.members.size() > 1 ? GrpcChannel::Opening::awaits_server : GrpcChannel::Opening::at_once;
  ASSIGN_OR_RETURN(auto channel, GrpcChannel::open(m_spec.members[member], opening, m_clock, limit));
  drop();
  m_member = member;
  m_channel = std::move(channel);
  ++m_generation;
  m_process = ::getpid();
  if (!m_spec.user.empty()) {
    if (const auto known = log_in(limit); !known) {
      return lost(known.error());
    }
  }
  m_channel->set_metadata("hasleader", "true");  // a member that knows no leader refuses
  return Done{};
}

Result<Done> Connection::log_in(const CallLimits& limit)
{
  m_channel->set_metadata("token", "");
  ASSIGN_OR_RETURN(const auto answer, m_channel->call("/etcdserverpb.Auth/Authenticate",
                                                      encode_authenticate(m_spec.user, m_spec.password), limit));
  if (answer.status.code == GrpcCode::failed_precondition && has_text(answer.status.text, "not enabled")) {
    return Done{};  // who may do everything needs no token
  }
  if (answer.status.code != GrpcCode::ok) {
    auto password = changed_password(m_spec.members[m_member].password_file, m_spec.password);
    if (password && has_text(answer.status.text, "authentication failed")) {
      m_spec.password = *std::move(password);
      return log_in(limit);
    }
    return refused(answer.status);
  }
  const auto token = decode_token(answer.message);
  if (!token || token->empty()) {
    return nonsense();
  }
  m_channel->set_metadata("token", *token);
  return Done{};
}

// Each try ends the deadline of all.
Result<std::string> Connection::request(std::string_view method, std::string_view message, const CallLimits& limit)
{
  m_refusal = {};
  bool has_new_token = false;
  for (std::size_t leaderless = 0;;) {
    if (!m_channel) {
      RETURN_IF_ERROR(connect(limit));
    }
    auto answer = m_channel->call(method, message, limit);
    if (!answer) {
      return lost(answer.error());
    }
    if (answer->status.code == GrpcCode::ok) {
      return std::move(answer->message);
    }
    if (answer->status.text == no_leader && ++leaderless < m_spec.members.size()) {
      [[maybe_unused]] const Error passed = refused(answer->status);
      continue;
    }
    if (is_about_token(answer->status) && !m_spec.user.empty() && !std::exchange(has_new_token, true)) {
      if (const auto known = log_in(limit); !known) {
        return lost(known.error());
      }
      continue;
    }
    return refused(answer->status);
  }
}

template <typename Answer>
Result<Answer> Connection::ask(std::string_view method, std::string_view message,
                               std::optional<Answer> (*decode)(std::string_view), const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto bytes, request(method, message, limit));
  auto answer = decode(bytes);
  return answer ? Result(*std::move(answer)) : Result<Answer>(nonsense());
}

Result<RangeAnswer> Connection::range(const Range& range, const CallLimits& limit)
{
  return ask("/etcdserverpb.KV/Range", encode(range), decode_range, limit);
}

Result<TxnAnswer> Connection::txn(const Txn& txn, const CallLimits& limit)
{
  return ask("/etcdserverpb.KV/Txn", encode(txn), decode_txn, limit);
}

Result<LeaseAnswer> Connection::lease_answer(const Result<LeaseAnswer>& answer) const
{
  return !answer && is_lease_gone() ? Result(LeaseAnswer{}) : answer;
}

Result<LeaseAnswer> Connection::grant(std::int64_t id, std::int64_t ttl, const CallLimits& limit)
{
  return ask("/etcdserverpb.Lease/LeaseGrant", encode_lease_grant(id, ttl), decode_lease, limit);
}

Result<LeaseAnswer> Connection::time_to_live(std::int64_t id, const CallLimits& limit)
{
  return lease_answer(ask("/etcdserverpb.Lease/LeaseTimeToLive", encode_lease(id), decode_lease, limit));
}

Result<Done> Connection::revoke(std::int64_t id, const CallLimits& limit)
{
  const auto answer = lease_answer(ask("/etcdserverpb.Lease/LeaseRevoke", encode_lease(id), decode_lease, limit));
  return answer ? Result(Done{}) : Result<Done>(answer.error());
}

void Connection::revoke_ahead(std::int64_t id)
{
  if (m_channel && m_process == ::getpid()) {
    m_channel->post("/etcdserverpb.Lease/LeaseRevoke", encode_lease(id), {m_clock.now(), StopToken::never()});
  }
}

Result<StatusAnswer> Connection::status(const CallLimits& limit)
{
  return ask("/etcdserverpb.Maintenance/Status", "", decode_status, limit);
}

Result<std::vector<Member>> Connection::members(const CallLimits& limit)
{
  return ask("/etcdserverpb.Cluster/MemberList", "", decode_members, limit);
}

Result<GrpcChannel::Stream> Connection::stream(GrpcChannel::Stream& stream, std::string_view method,
                                               const CallLimits& limit)
{
  m_refusal = {};
  if (!m_channel) {
    RETURN_IF_ERROR(connect(limit));
  }
  if (stream == 0) {
    const auto started = m_channel->start(method);
    if (!started) {
      return lost(started.error());
    }
    stream = *started;
  }
  return stream;
}

Result<std::string> Connection::receive(GrpcChannel::Stream stream, Instant start, const CallLimits& limit)
{
  auto bytes = m_channel->receive(stream, limit);
  if (!bytes) {
    return lost(bytes.error());
  }
  if (!*bytes) {
    Error late = no_answer_in_time("no answer from " + where() + " within " + elapsed(m_clock, start, limit));
    late.was_there = true;
    return lost(late);
  }
  return **std::move(bytes);
}

Result<LeaseAnswer> Connection::keep_alive(std::int64_t id, const CallLimits& limit)
{
  const Instant start = m_clock.now();
  ASSIGN_OR_RETURN(const auto calls, stream(m_keep_alives, "/etcdserverpb.Lease/LeaseKeepAlive", limit));
  if (const auto sent = m_channel->send(calls, encode_lease(id), limit); !sent) {
    return lost(sent.error());
  }
  ASSIGN_OR_RETURN(const auto bytes, receive(calls, start, limit));
  auto answer = decode_lease(bytes);
  return answer && answer->id == id ? Result(*answer) : Result<LeaseAnswer>(nonsense());
}

Result<Done> Connection::watch(const Range& range, std::int64_t id, std::int64_t revision, Watched what,
                               const CallLimits& limit)
{
  const Instant start = m_clock.now();
  const bool is_first = m_watches == 0;
  ASSIGN_OR_RETURN(const auto calls, stream(m_watches, "/etcdserverpb.Watch/Watch", limit));
  if (const auto sent = m_channel->send(calls, encode_watch(range, id, revision, what), limit); !sent) {
    return lost(sent.error());
  }
  for (;;) {
    ASSIGN_OR_RETURN(const auto bytes, receive(calls, start, limit));
    auto answer = decode_watch(bytes);
    if (!answer) {
      return nonsense();
    }
    const bool is_this = answer->id == id && (answer->is_created || answer->is_canceled);
    if (is_this && answer->is_canceled) {
      // The token with which the watches of this connection began may have expired; a new connection logs in.
      const bool is_forbidden = is_first && has_text(answer->cancel_reason, "permission denied");
      return refused(
          {.code = is_forbidden ? GrpcCode::permission_denied : GrpcCode::unavailable, .text = answer->cancel_reason});
    }
    if (is_this) {
      return Done{};
    }
    m_events.push_back(*std::move(answer));
  }
}

void Connection::cancel_watch(std::int64_t id, const CallLimits& limit)
{
  if (m_channel && m_process == ::getpid() && m_watches != 0 &&
      !m_channel->send(m_watches, encode_watch_cancel(id), limit)) {
    drop();
  }
}

bool Connection::has_events() const
{
  return !m_events.empty() || !m_channel || m_watches == 0 || m_channel->has_news(m_watches);
}

Result<std::optional<WatchAnswer>> Connection::next_events(const CallLimits& limit)
{
  const auto is_told = [](const WatchAnswer& answer) { return answer.is_canceled || !answer.events.empty(); };
  for (;;) {
    std::optional<WatchAnswer> answer;
    if (!m_events.empty()) {
      answer = std::move(m_events.front());
      m_events.erase(m_events.begin());
    } else {
      if (!m_channel || m_watches == 0) {
        return Error{ErrorCode::unreachable, "lost the connection to " + m_spec.url + " that watches"};
      }
      const auto bytes = m_channel->receive(m_watches, limit);
      if (!bytes) {
        return lost(bytes.error());
      }
      if (!*bytes) {
        return std::optional<WatchAnswer>();
      }
      answer = decode_watch(**bytes);
      if (!answer) {
        return nonsense();
      }
    }
    if (is_told(*answer)) {
      return answer;
    }
  }
}

}  // namespace rlock::etcd
