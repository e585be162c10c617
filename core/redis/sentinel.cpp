// SPDX-License-Identifier: Apache-2.0
#include "redis/sentinel.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>
#include "base/parallel_query.h"
#include "net/byte_stream.h"
#include "redis/codec.h"
#include "redis/connection.h"
#include "redis/subscription.h"
#include "redis/url.h"

namespace rlock {

// Finds the master of a group by its sentinels. Private to redis.

// The answer of one sentinel.
struct SentinelReply {
  Connection sentinel;
  std::optional<HostPort> master;  // nullopt: the sentinel knows no master of that name
  std::uint64_t epoch = 0;         // config-epoch, which grows with each fail-over
};

struct FoundMaster {
  Endpoint endpoint;
  Connection sentinel;  // the sentinel that named the master
};

// Threads: not thread-safe; may move between threads. find() uses a thread for each sentinel (parallel_query).
class Discovery {
 public:
  // `endpoint` is of Kind::sentinel; `clock` must outlive the object.
  Discovery(const Endpoint& endpoint, const Clock& clock);

  // Asks all sentinels and takes the answer with the greatest epoch, because a sentinel that was away during a fail-over names
  // the old master for a while, and the old master still says that it is a master. Does not wait for sentinels that take much
  // longer than the first sentinel.
  //   unreachable  no sentinel answers
  //   config       no sentinel knows a master of that name; or the servers are no sentinels
  //   refused, interrupted, os
  Result<FoundMaster> find(const CallLimits& limit);

  // Asks one sentinel whether this server is the master. Missing: it does not know, or does not answer soon; the next call
  // asks the next sentinel.
  std::optional<bool> still_names(const Endpoint& master, const CallLimits& limit);

 private:
  using Answers = std::vector<Result<SentinelReply>>;

  Result<SentinelReply> ask(const HostPort& at, const CallLimits& limit) const;
  Answers ask_all(const CallLimits& limit) const;
  [[nodiscard]] Error no_master_known(const Answers& answers) const;

  Endpoint m_endpoint;
  const Clock* m_clock;
  std::size_t m_next = 0;  // the sentinel that still_names asks
};

namespace {

constexpr Millis first_failover_pause{50};  // while a fail-over is under way; doubles up to the longest
constexpr Millis longest_failover_pause{400};
constexpr Millis check_after{1000};  // a connection of that age may lead to a server that is no longer the master
constexpr Millis late_answer{100};   // takes longer; another server may have become the master meanwhile

bool is_same_server(const Endpoint& one, const Endpoint& other)
{
  return one.host == other.host && one.port == other.port;
}

}  // namespace

Sentinel::Sentinel(const Endpoint& endpoint, const Clock& clock)
    : Direct(endpoint, clock),
      m_name(endpoint.sentinels.master),
      m_discovery(std::make_unique<Discovery>(endpoint, clock))
{
}

Sentinel::~Sentinel() = default;

Result<Subscription> Sentinel::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  std::optional<Subscription> opened;
  const auto reached =
      reach_the_master(limit, [&](const Endpoint& master, Connection sentinel, const CallLimits& until) {
        auto subscription = Subscription::open(master, channels, clock(), until);
        if (!subscription) {
          return Result<Done>(subscription.error());
        }
        opened = *std::move(subscription);
        forget_unless(master);
        *m_moved = false;
        if (auto watch = MasterWatch::open(std::move(sentinel), m_name, {master.host, master.port}, m_moved, until)) {
          opened->set_master_watch(*std::move(watch));
        }
        return Result<Done>(Done{});
      });
  return reached ? Result(*std::move(opened)) : Result<Subscription>(reached.error());
}

void Sentinel::forget_unless(const Endpoint& master)
{
  if (!is_same_server(server(), master)) {
    drop_connection();
  }
}

Result<Done> Sentinel::connect(const CallLimits& limit)
{
  check_the_master(limit);
  if (is_connected()) {
    return Done{};
  }
  return reach_the_master(limit, [&](const Endpoint& master, const Connection&, const CallLimits& until) {
    auto connected = connect_to(master, until);
    m_checked_at = clock().now();
    return connected;
  });
}

// A server that was cut off from its sentinels, or was stopped for a while, says that it is the master until they reach
// it. A check without an answer counts for nothing: the lease of a lock may be so short that a slow sentinel has no time
// to answer, and the next request asks another one.
void Sentinel::check_the_master(const CallLimits& limit)
{
  const Instant now = clock().now();
  const bool has_moved = m_moved->exchange(false);
  if (!is_connected() || (!has_moved && now < m_checked_at + check_after)) {
    return;
  }
  const auto still_named = has_moved ? std::optional(false) : m_discovery->still_names(server(), limit);
  if (!still_named) {
    return;
  }
  m_checked_at = now;
  if (*still_named) {
    return;
  }
  if (const auto found = m_discovery->find(limit)) {
    forget_unless(found->endpoint);
  } else {
    drop_connection();  // a sentinel says that it is no longer the master
  }
}

// A server that was stopped answers what has come meanwhile before it learns that it is no longer the master.
bool Sentinel::believes(Instant::duration took, const CallLimits& limit)
{
  if (took > late_answer) {
    m_checked_at = Instant{};
    check_the_master(limit);
  }
  return is_connected();
}

// The address that the sentinels name may be that of a master that has just died, or of a replica that is about to be
// promoted.
Result<Done> Sentinel::reach_the_master(const CallLimits& limit, const Attempt& attempt)
{
  const Instant start = clock().now();
  for (Millis pause = first_failover_pause;; pause = std::min(2 * pause, longest_failover_pause)) {
    ASSIGN_OR_RETURN(auto found, m_discovery->find(limit));
    const Instant now = clock().now();
    const CallLimits share{.deadline = now + (limit.deadline - now) / 2, .stop = limit.stop, .since = start};
    const auto reached = attempt(found.endpoint, std::move(found.sentinel), share);
    if (reached || !is_passing(reached.error().code)) {
      return reached;
    }
    const Instant next = clock().now() + pause;
    if (next >= limit.deadline) {
      return Error{reached.error().code, "the master " + m_name + " is not there: " + reached.error().text};
    }
    if (clock().sleep_until(next, limit.stop) == Wake::stopped) {
      return interrupted();
    }
  }
}

namespace {

constexpr Millis check_timeout{250};  // of still_names, at most
constexpr Millis least_wait{50};

// 0: the sentinel does not tell it, for example because the user may not call SENTINEL MASTER.
std::uint64_t epoch_in(const Reply& fields)
{
  std::uint64_t epoch = 0;
  for (std::size_t i = 0; i + 1 < fields.elements.size(); i += 2) {
    if (fields.elements[i].text == "config-epoch") {
      const std::string& text = fields.elements[i + 1].text;
      std::from_chars(text.data(), text.data() + text.size(), epoch);
    }
  }
  return epoch;
}

Error sentinel_error(const Error& error, const std::string& where)
{
  if (error.code == ErrorCode::refused) {
    return {ErrorCode::refused,
            "the sentinel " + where +
                " wants another user or password (sentinel_username= and "
                "sentinel_password= in the URL, or RLOCK_SENTINEL_USERNAME and RLOCK_SENTINEL_PASSWORD)"};
  }
  return error;
}

// The answer with the greatest epoch, and among equal ones the most common; nullptr: no sentinel knows the master.
SentinelReply* best_of(std::vector<Result<SentinelReply>>& answers)
{
  SentinelReply* best = nullptr;
  std::pair<std::uint64_t, std::ptrdiff_t> rank;
  for (auto& answer : answers) {
    if (!answer || !answer->master) {
      continue;
    }
    const auto agreeing = std::count_if(answers.begin(), answers.end(), [&](const Result<SentinelReply>& other) {
      return other && other->epoch == answer->epoch && other->master == answer->master;
    });
    if (const std::pair mine{answer->epoch, agreeing}; best == nullptr || mine > rank) {
      best = &*answer;
      rank = mine;
    }
  }
  return best;
}

bool has_value(const Replies<Result<SentinelReply>>& replies)
{
  return std::any_of(replies.begin(), replies.end(), [](const auto& reply) { return reply && *reply; });
}

}  // namespace

Discovery::Discovery(const Endpoint& endpoint, const Clock& clock) : m_endpoint(endpoint), m_clock(&clock) {}

// Both commands are sent, because at the end of a fail-over GET-MASTER-ADDR-BY-NAME knows the new master before
// SENTINEL MASTER.
Result<SentinelReply> Discovery::ask(const HostPort& at, const CallLimits& limit) const
{
  const std::string& name = m_endpoint.sentinels.master;
  auto sentinel = Connection::open(sentinel_at(m_endpoint, at), *m_clock, limit);
  if (!sentinel) {
    return sentinel_error(sentinel.error(), show(at));
  }
  std::array<Reply, 2> replies;
  for (const std::string_view question : {"GET-MASTER-ADDR-BY-NAME", "MASTER"}) {
    const std::array<std::string_view, 3> argv{"SENTINEL", question, name};
    RETURN_IF_ERROR(sentinel->send(argv, limit));
  }
  for (Reply& reply : replies) {
    ASSIGN_OR_RETURN(auto answer, sentinel->answer(limit));
    reply = std::move(answer);
  }
  if (replies[0].is_error()) {
    const bool is_none = is_unknown_command(replies[0].text);
    return is_none ? Error{ErrorCode::config, sentinel->where() + " is no sentinel (their port is 26379 as a rule)"}
                   : sentinel_error(error_from_reply(replies[0].text, sentinel->where()), show(at));
  }
  return SentinelReply{
      .sentinel = *std::move(sentinel), .master = master_address_in(replies[0]), .epoch = epoch_in(replies[1])};
}

// Asks all sentinels. One good answer is enough; the other sentinels get twice the time that this answer took.
Discovery::Answers Discovery::ask_all(const CallLimits& limit) const
{
  const auto& hosts = m_endpoint.sentinels.hosts;
  if (hosts.size() == 1) {
    Answers answers;
    answers.push_back(ask(hosts.front(), limit));
    return answers;
  }
  const auto question = [this](const HostPort& at, const CallLimits& until) { return ask(at, until); };
  return parallel_query(hosts, *m_clock, limit, question, [&](PendingReplies<Result<SentinelReply>>& pending) {
    const Instant start = m_clock->now();
    pending.wait(*m_clock, limit, [](const auto& replies) { return has_value(replies) || all_replied(replies); });
    const Instant now = m_clock->now();
    const Instant::duration longest_wait = std::max<Instant::duration>(least_wait, 2 * (now - start));
    pending.wait(*m_clock, {.deadline = std::min(limit.deadline, now + longest_wait), .stop = limit.stop},
                 [](const auto& replies) { return all_replied(replies); });
  });
}

Result<FoundMaster> Discovery::find(const CallLimits& limit)
try {
  Answers answers = ask_all(limit);
  if (SentinelReply* const best = best_of(answers)) {
    return FoundMaster{.endpoint = server_at(m_endpoint, *best->master), .sentinel = std::move(best->sentinel)};
  }
  return limit.stop.requested() ? interrupted() : no_master_known(answers);
} catch (const std::system_error& refused) {
  return Error{ErrorCode::os, "cannot ask several sentinels at once: " + refused.code().message()};
}

// An error that the user must correct goes before one that may pass.
Error Discovery::no_master_known(const Answers& answers) const
{
  const std::string where = m_endpoint.shown();
  const Error* worst = nullptr;
  for (const auto& answer : answers) {
    if (answer) {
      return {ErrorCode::config, "the sentinels of " + where + " know no master " + m_endpoint.sentinels.master +
                                     " (its name is the one in their `sentinel monitor`)"};
    }
    const Error& error = answer.error();
    if (worst == nullptr || (is_passing(worst->code) && !is_passing(error.code))) {
      worst = &error;
    }
  }
  if (worst == nullptr) {
    return {ErrorCode::unreachable, "no sentinel of " + where + " was asked"};
  }
  return is_passing(worst->code) ? Error{worst->code, "no sentinel of " + where + " answers; the first: " + worst->text}
                                 : *worst;
}

std::optional<bool> Discovery::still_names(const Endpoint& master, const CallLimits& limit)
{
  const auto& hosts = m_endpoint.sentinels.hosts;
  const Instant now = m_clock->now();
  const Instant by = std::min(now + check_timeout, now + (limit.deadline - now) / 4);
  const auto answer = ask(hosts[m_next], {.deadline = by, .stop = limit.stop});
  if (!answer || !answer->master) {
    m_next = (m_next + 1) % hosts.size();
    return std::nullopt;
  }
  return *answer->master == HostPort{master.host, master.port};
}

std::optional<HostPort> master_address_in(const Reply& reply)
{
  if (reply.elements.size() != 2) {
    return std::nullopt;
  }
  HostPort at{.host = reply.elements[0].text, .port = 0};
  const std::string& port = reply.elements[1].text;
  std::from_chars(port.data(), port.data() + port.size(), at.port);
  return at.port != 0 && is_host(at.host) ? std::optional(std::move(at)) : std::nullopt;
}

Endpoint sentinel_at(const Endpoint& group, const HostPort& at)
{
  Endpoint sentinel;
  sentinel.host = at.host;
  sentinel.port = at.port;
  sentinel.user = group.sentinels.user;
  sentinel.password = group.sentinels.password;
  sentinel.tls = group.sentinels.tls;
  return sentinel;
}

Endpoint server_at(const Endpoint& group, const HostPort& at)
{
  Endpoint server = group;
  server.kind = Endpoint::Kind::tcp;
  server.host = at.host;
  server.port = at.port;
  server.nodes.clear();
  server.sentinels = {};
  server.must_be_master = group.kind == Endpoint::Kind::sentinel;
  if (group.kind == Endpoint::Kind::sentinel) {
    server.named_by = Endpoint::NamedBy::sentinels;
  } else if (std::ranges::find(group.nodes, at) == group.nodes.end()) {
    server.named_by = Endpoint::NamedBy::cluster;
  }
  return server;
}

}  // namespace rlock
