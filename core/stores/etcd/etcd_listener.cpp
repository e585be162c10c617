// SPDX-License-Identifier: Apache-2.0
#include "stores/etcd/etcd_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <algorithm>
#include <utility>
#include "base/fd.h"
#include "base/wait.h"
#include "stores/etcd/etcd_presences.h"

namespace rlock::etcd {
namespace {

// The lease of listeners, unless the client has a presence with a longer one. A holder or waiter sends a request more often than
// every third of it.
constexpr Millis listener_lease{30000};
// How long a wait for messages may last beyond its deadline, when it must renew the lease.
constexpr Millis beat_time{1000};
// How long the end of a source may keep its thread, if the socket takes no more bytes.
constexpr Millis farewell{0};

std::string text_of(const std::set<std::string>& channels)
{
  std::string text;
  for (const std::string& channel : channels) {
    text.append(channel).append(1, '\0');
  }
  return text;
}

}  // namespace

Listener listener_in(const KeyValue& key)
{
  Listener listener{.channels = {}, .lease = key.lease};
  std::string_view rest = key.value;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\0'), rest.size());
    listener.channels.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return listener;
}

class Listeners::Source final : public MessageSource {
 public:
  Source(std::shared_ptr<Listeners> all, std::size_t number)
      : m_all(std::move(all)), m_number(number), m_readable(::open("/dev/null", O_RDONLY | O_CLOEXEC))
  {
    m_all->m_heard[m_number];
  }
  // The last source ends the lease, and with it the keys.
  ~Source() override
  {
    m_all->m_heard.erase(m_number);
    m_all->m_listened.erase(m_number);
    const CallLimits limit{m_all->m_clock.now() + farewell, StopToken::never()};
    std::erase_if(m_all->m_watches, [&](const auto& each) {
      return each.second.source == m_number && (m_all->m_connection.cancel_watch(each.first, limit), true);
    });
    if (m_all->m_heard.empty() && m_all->m_lease != 0 && m_all->is_connected()) {
      m_all->m_connection.revoke_ahead(std::exchange(m_all->m_lease, 0));
    }
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    return m_all->is_connected() ? m_all->listen(m_number, channels, limit) : lost();
  }

  Result<std::optional<Message>> next(const CallLimits& limit) override
  {
    std::deque<Message>& heard = m_all->m_heard[m_number];
    for (bool is_late = false; heard.empty(); is_late = m_all->m_clock.now() >= limit.deadline) {
      if (is_late) {
        return std::optional<Message>();
      }
      if (!m_all->is_connected()) {
        return lost();
      }
      RETURN_IF_ERROR(m_all->beat({m_all->m_clock.now() + beat_time, limit.stop}));
      const Instant until = std::min(limit.deadline, m_all->next_beat());
      RETURN_IF_ERROR(m_all->take_events({until, limit.stop}));
    }
    std::optional<Message> first(std::move(heard.front()));
    heard.pop_front();
    return first;
  }

  // A message that came with an answer, or the end of the connection, is to be noticed as well.
  [[nodiscard]] int fd() const override
  {
    const auto heard = m_all->m_heard.find(m_number);
    const bool has_news = !m_all->is_connected() || m_all->m_connection.has_events() || !heard->second.empty();
    return has_news ? m_readable.get() : m_all->m_connection.fd();
  }

 private:
  [[nodiscard]] Error lost() const
  {
    return {ErrorCode::unreachable, "lost the connection to " + m_all->m_connection.where() + " that listens"};
  }

  std::shared_ptr<Listeners> m_all;
  const std::size_t m_number;
  const Fd m_readable;  // always
};

Listeners::Listeners(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
    : m_clock(clock),
      m_rng(std::move(rng)),
      m_layout(spec.prefix),
      m_connection(std::move(spec), clock, std::make_unique<SystemRng>()),
      m_lease_length(listener_lease)
{
}

bool Listeners::is_connected() const
{
  return (m_lease != 0 || m_is_suspended) && m_connection.is_connected() && m_connection.generation() == m_generation;
}

Result<Done> Listeners::grant_lease(const CallLimits& limit)
{
  const std::int64_t lease = draw_lease(*m_rng);
  ASSIGN_OR_RETURN(const auto granted, m_connection.grant(lease, seconds_of(m_lease_length), limit));
  m_lease = lease;
  m_is_suspended = false;
  m_lease_given = std::chrono::seconds(granted.ttl);
  m_renewed_at = m_clock.now();
  return Done{};
}

Result<Done> Listeners::ensure_lease(const CallLimits& limit)
{
  if (is_connected()) {
    return m_is_suspended && m_listened.empty() ? grant_lease(limit) : beat(limit);
  }
  m_watches.clear();
  const std::int64_t old_lease = std::exchange(m_lease, 0);
  const auto granted = grant_lease(limit);
  m_generation = m_connection.generation();
  if (old_lease != 0) {  // of a connection that was dropped
    m_connection.revoke_ahead(old_lease);
  }
  return granted;
}

void Listeners::suspend()
{
  if (m_lease != 0) {
    const bool goes_on = is_connected();  // else the lease is of a connection that was dropped
    m_connection.revoke_ahead(std::exchange(m_lease, 0));
    m_is_suspended = goes_on;
  }
}

Result<Done> Listeners::resume(const CallLimits& limit)
{
  RETURN_IF_ERROR(grant_lease(limit));
  Txn txn;
  for (const auto& [source, locks] : m_listened) {
    for (const auto& [lock, channels] : locks) {
      put_keys(txn, source, lock);
    }
  }
  return commit(txn, limit);
}

void Listeners::put_keys(Txn& txn, std::size_t source, const std::string& lock)
{
  const std::string name = name_of_lease(m_lease) + "." + std::to_string(source);
  txn.success.emplace_back(Put{
      .key = m_layout.key(Kind::listener, lock, name), .value = text_of(m_listened[source][lock]), .lease = m_lease});
}

Result<Done> Listeners::commit(const Txn& txn, const CallLimits& limit)
{
  for (std::size_t begin = 0; begin < txn.success.size(); begin += most_operations) {
    const auto part = std::span(txn.success).subspan(begin, std::min(most_operations, txn.success.size() - begin));
    if (const auto done = m_connection.txn({.success = {part.begin(), part.end()}}, limit); !done) {
      m_lease = m_connection.refusal().code == GrpcCode::not_found ? 0 : m_lease;
      return done.error();
    }
  }
  return Done{};
}

// A lease that is over is not made again: its keys are gone, and with them perhaps messages.
Result<Done> Listeners::beat(const CallLimits& limit)
{
  if (!is_connected() || (!m_is_suspended && m_clock.now() < next_beat()) || m_listened.empty()) {
    return Done{};
  }
  if (m_is_suspended) {
    return resume(limit);
  }
  ASSIGN_OR_RETURN(const auto kept, m_connection.keep_alive(m_lease, limit));
  if (kept.ttl <= 0) {
    m_lease = 0;
  }
  m_renewed_at = m_clock.now();
  return Done{};
}

// The watches come before the key, so that no message is sent to a client that does not hear it.
Result<Done> Listeners::listen(std::size_t source, std::span<const LockChannel> channels, const CallLimits& limit)
{
  RETURN_IF_ERROR(ensure_lease(limit));
  auto& listened = m_listened[source];
  Txn txn;
  std::set<std::string> locks;
  for (const LockChannel& each : channels) {
    const std::int64_t watch = ++m_last_watch;
    RETURN_IF_ERROR(m_connection.watch(m_layout.all(Kind::message, each.channel), watch, limit));
    m_watches[watch] = {.channel = std::string(each.channel), .source = source};
    listened[std::string(each.lock)].insert(std::string(each.channel));
    locks.emplace(each.lock);
  }
  for (const std::string& lock : locks) {
    put_keys(txn, source, lock);
  }
  return commit(txn, limit);
}

Result<std::unique_ptr<MessageSource>> Listeners::open(std::span<const LockChannel> channels, const CallLimits& limit)
{
  auto source = std::make_unique<Source>(shared_from_this(), ++m_last_source);
  RETURN_IF_ERROR(listen(m_last_source, channels, limit));
  return std::unique_ptr<MessageSource>(std::move(source));
}

bool Listeners::tell_deletion(const std::string& key, std::int64_t revision, const Message& message,
                              const CallLimits& limit)
{
  bool is_told = false;
  for (const auto& listened : m_listened) {
    const std::size_t source = listened.first;
    const bool listens = is_connected() && std::ranges::any_of(listened.second, [&](const auto& lock) {
                           return lock.second.contains(message.channel);
                         });
    if (!listens) {
      continue;
    }
    bool is_watched = false;
    std::erase_if(m_watches, [&](const auto& each) {
      const Watch& watch = each.second;
      const bool is_other =
          watch.source == source && watch.channel == message.channel && !watch.key.empty() && watch.key != key;
      is_watched = is_watched || (watch.source == source && watch.channel == message.channel && watch.key == key);
      return is_other && (m_connection.cancel_watch(each.first, limit), true);
    });
    if (!is_watched) {
      const std::int64_t watch = ++m_last_watch;
      if (!m_connection.watch({.key = key}, watch, revision + 1, Watched::deletions, limit)) {
        return false;
      }
      m_watches[watch] = {.channel = message.channel, .source = source, .key = key, .text_of_deletion = message.text};
    }
    is_told = true;
  }
  return is_told;
}

// Waits for the next events, and gives them to their sources.
Result<Done> Listeners::take_events(const CallLimits& limit)
{
  ASSIGN_OR_RETURN(auto answer, m_connection.next_events(limit));
  if (!answer) {
    return Done{};
  }
  const auto watch = m_watches.find(answer->id);
  if (watch == m_watches.end()) {
    return Done{};
  }
  if (answer->is_canceled) {
    const Error ended{ErrorCode::unreachable, m_connection.where() + " ended the watch of messages"};
    m_connection.drop();
    return ended;
  }
  const bool tells_deletion = !watch->second.key.empty();
  for (WatchEvent& event : answer->events) {
    if (event.is_deletion == tells_deletion) {
      m_heard[watch->second.source].push_back(
          {watch->second.channel, tells_deletion ? watch->second.text_of_deletion : std::move(event.key.value)});
    }
  }
  if (tells_deletion && !answer->events.empty()) {  // a key is deleted once
    m_connection.cancel_watch(watch->first, limit);
    m_watches.erase(answer->id);
  }
  return Done{};
}

}  // namespace rlock::etcd
