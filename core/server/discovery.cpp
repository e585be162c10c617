// SPDX-License-Identifier: Apache-2.0
#include "server/discovery.h"

#include "base/parallel_query.h"
#include "net/errors.h"
#include "net/wait.h"
#include "server/group.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace rlock {
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
    if (const auto sent = sentinel->send(argv, limit); !sent) {
      return sent.error();
    }
  }
  for (Reply& reply : replies) {
    auto answer = sentinel->answer(limit);
    if (!answer) {
      return answer.error();
    }
    reply = *std::move(answer);
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

}  // namespace rlock
