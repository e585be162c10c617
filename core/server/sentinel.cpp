// SPDX-License-Identifier: Apache-2.0
#include "server/sentinel.h"

#include "net/wait.h"
#include "server/discovery.h"
#include "server/master_watch.h"

#include <algorithm>
#include <utility>

namespace rlock {
namespace {

constexpr Millis first_pause{50};  // while a fail-over is under way; doubles up to the longest
constexpr Millis longest_pause{400};
constexpr Millis check_after{1000};  // a connection of that age may lead to who is the master no longer

bool same_place(const Endpoint& one, const Endpoint& other) { return one.host == other.host && one.port == other.port; }

}  // namespace

Sentinel::Sentinel(const Endpoint& endpoint, const Clock& clock)
    : m_name(endpoint.sentinels.master), m_clock(clock), m_discovery(std::make_unique<Discovery>(endpoint, clock))
{
}

Sentinel::~Sentinel() = default;

Result<Reply> Sentinel::call(std::string_view route_key, std::span<const std::string_view> argv,
                             const CallLimits& limit)
{
  if (const auto connected = connect(limit); !connected) {
    return connected.error();
  }
  auto reply = m_master->call(route_key, argv, limit);
  if (!reply) {
    forget();
  }
  return reply;
}

Result<Reply> Sentinel::follow_up(std::string_view route_key, std::span<const std::string_view> argv,
                                  const CallLimits& limit)
{
  if (!m_master) {
    return cut_off("the master " + m_name);
  }
  auto reply = m_master->follow_up(route_key, argv, limit);
  if (!reply) {
    forget();
  }
  return reply;
}

std::vector<Result<Reply>> Sentinel::call_each(std::span<const Request> requests, const CallLimits& limit)
{
  if (const auto connected = connect(limit); !connected) {
    return std::vector<Result<Reply>>(requests.size(), connected.error());
  }
  auto replies = m_master->call_each(requests, limit);
  if (std::any_of(replies.begin(), replies.end(), [](const Result<Reply>& reply) { return !reply; })) {
    forget();
  }
  return replies;
}

Result<Subscription> Sentinel::subscribe(std::span<const std::string_view> channels, const CallLimits& limit)
{
  std::optional<Subscription> opened;
  const auto reached =
      reach_the_master(limit, [&](const Endpoint& master, Connection sentinel, const CallLimits& until) {
        auto subscription = Subscription::open(master, channels, m_clock, until);
        if (!subscription) {
          return Result<Done>(subscription.error());
        }
        opened = *std::move(subscription);
        forget_unless(master);
        *m_moved = false;
        if (auto watch = MasterWatch::open(std::move(sentinel), m_name, {master.host, master.port}, m_moved, until)) {
          opened->heed(*std::move(watch));
        }
        return Result<Done>(Done{});
      });
  return reached ? Result(*std::move(opened)) : Result<Subscription>(reached.error());
}

void Sentinel::forget() { m_master.reset(); }

void Sentinel::forget_unless(const Endpoint& master)
{
  if (m_master && !same_place(m_address, master)) {
    forget();
  }
}

Result<Done> Sentinel::connect(const CallLimits& limit)
{
  check_the_master(limit);
  if (m_master) {
    return Done{};
  }
  return reach_the_master(limit, [&](const Endpoint& master, const Connection&, const CallLimits& until) {
    m_master.emplace(master, m_clock);
    auto connected = m_master->connect(until);
    if (!connected) {
      forget();
    }
    m_address = master;
    m_checked_at = m_clock.now();
    return connected;
  });
}

// A server that was cut off from its sentinels, or was stopped for a while, takes itself for the master until they get hold of it.
void Sentinel::check_the_master(const CallLimits& limit)
{
  const Instant now = m_clock.now();
  const bool told = m_moved->exchange(false);
  if (!m_master || (!told && now < m_checked_at + check_after)) {
    return;
  }
  m_checked_at = now;
  if (!told && m_discovery->still_names(m_address, limit)) {
    return;
  }
  if (const auto found = m_discovery->find(limit)) {
    forget_unless(found->endpoint);
  }
}

// The address that is named may be that of a master who has just died, or who is told this moment that he is one.
Result<Done> Sentinel::reach_the_master(const CallLimits& limit, const Attempt& attempt)
{
  for (Millis pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    auto found = m_discovery->find(limit);
    if (!found) {
      return found.error();
    }
    const Instant now = m_clock.now();
    const CallLimits share{.deadline = now + (limit.deadline - now) / 2, .stop = limit.stop};
    const auto reached = attempt(found->endpoint, std::move(found->sentinel), share);
    if (reached || !is_passing(reached.error().fault)) {
      return reached;
    }
    const Instant next = m_clock.now() + pause;
    if (next >= limit.deadline) {
      return Error{reached.error().fault, "the master " + m_name + " is not there: " + reached.error().text};
    }
    if (m_clock.sleep_until(next, limit.stop) == Wake::stopped) {
      return interrupted();
    }
  }
}

}  // namespace rlock
