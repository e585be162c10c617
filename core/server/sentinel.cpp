// SPDX-License-Identifier: Apache-2.0
#include "server/sentinel.h"

#include "net/wait.h"
#include "server/discovery.h"
#include "server/master_watch.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace rlock {
namespace {

constexpr Millis first_pause{50};  // while a fail-over is under way; doubles up to the longest
constexpr Millis longest_pause{400};
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
    forget();
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
    forget();  // a sentinel says that it is no longer the master
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
  for (Millis pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    auto found = m_discovery->find(limit);
    if (!found) {
      return found.error();
    }
    const Instant now = clock().now();
    const CallLimits share{.deadline = now + (limit.deadline - now) / 2, .stop = limit.stop};
    const auto reached = attempt(found->endpoint, std::move(found->sentinel), share);
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

}  // namespace rlock
