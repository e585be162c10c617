// SPDX-License-Identifier: Apache-2.0
// Messages to a client that listens: watches on the connection that the requests use as well. Private to stores/etcd.
//
// A listener is a key of each lock with its channels, and a message is a Put that a watch tells. Both have the lease of the
// listener, so they vanish with it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "engine/script_host.h"
#include "stores/etcd/etcd_connection.h"
#include "stores/etcd/etcd_layout.h"

namespace rlock::etcd {

// A living listener, as its key says.
struct Listener {
  std::vector<std::string> channels;
  std::int64_t lease = 0;
};
Listener listener_in(const KeyValue& key);

// The connection of a backend, with what the sources of messages share. They are used by one thread at a time.
class Listeners : public std::enable_shared_from_this<Listeners> {
 public:
  Listeners(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng);

  // Backend::listen.
  Result<std::unique_ptr<MessageSource>> open(std::span<const LockChannel> channels, const CallLimits& limit);

  // The sources that listen to the channel get the message when the key is deleted, after this revision. False: none listens. An
  // earlier call for the channel counts no more.
  bool tell_deletion(const std::string& key, std::int64_t revision, const Message& message, const CallLimits& limit);

  // Renews the lease of the listeners when it is time to. Backends call this with each request, sources when they wait.
  Result<Done> beat(const CallLimits& limit);
  // Ends the lease of the listeners without waiting for the answer, because this client may end now. The next request or wait makes
  // them known again; the watches go on.
  void suspend();
  // A lease of listeners that is made from now on lasts at least so long, because its client may send no request for a third of it.
  void last_at_least(Millis lease) { m_lease_length = std::max(m_lease_length, lease); }

  [[nodiscard]] Connection& connection() { return m_connection; }
  [[nodiscard]] const Layout& layout() const { return m_layout; }
  [[nodiscard]] Rng& rng() { return *m_rng; }

 private:
  class Source;
  struct Watch {
    std::string channel;
    std::size_t source;    // its number
    std::string key = {};  // of which the deletion is told; empty: each Put is a message
    std::string text_of_deletion = {};
  };

  Result<Done> listen(std::size_t source, std::span<const LockChannel> channels, const CallLimits& limit);
  Result<Done> ensure_lease(const CallLimits& limit);
  Result<Done> grant_lease(const CallLimits& limit);
  void put_keys(Txn& txn, std::size_t source, const std::string& lock);
  Result<Done> commit(const Txn& txn, const CallLimits& limit);
  Result<Done> resume(const CallLimits& limit);
  Result<Done> take_events(const CallLimits& limit);
  [[nodiscard]] bool is_connected() const;
  [[nodiscard]] Instant next_beat() const { return m_renewed_at + m_lease_given / 3; }

  const Clock& m_clock;
  std::unique_ptr<Rng> m_rng;
  const Layout m_layout;
  Connection m_connection;
  Millis m_lease_length;
  Millis m_lease_given{0};
  std::int64_t m_lease = 0;        // 0: none
  bool m_is_suspended = false;     // the lease was ended by suspend()
  std::uint64_t m_generation = 0;  // of the connection on which the watches are
  Instant m_renewed_at{};
  std::int64_t m_last_watch = 0;
  std::size_t m_last_source = 0;
  std::map<std::int64_t, Watch> m_watches;
  std::map<std::size_t, std::deque<Message>> m_heard;                              // of each source that is there
  std::map<std::size_t, std::map<std::string, std::set<std::string>>> m_listened;  // of each source: lock, channels
};

}  // namespace rlock::etcd
