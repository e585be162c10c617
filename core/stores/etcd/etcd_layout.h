// SPDX-License-Identifier: Apache-2.0
// Where rlock keeps what in etcd, below the prefix of the URL. Private to stores/etcd and its tests.
//
//   PREFIX/lock/NAME             the record of a lock
//   PREFIX/held/NAME             who holds the lock, for people and for `list`; there is no such key for a free lock
//   PREFIX/event/NAME\0NUMBER    an entry of the event log; the number has event_digits digits
//   PREFIX/presence/ID           the presence of a client, with its lease
//   PREFIX/listener/NAME\0ID     the channels to which a client listens, each before a byte 0; with the lease of the client
//   PREFIX/message/CHANNEL\0N    the last message to a listener of the channel, with the lease of the listener
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include "stores/etcd/etcd_messages.h"

namespace rlock::etcd {

inline constexpr std::size_t event_digits = 19;

enum class Kind { lock, held, event, presence, listener, message };

class Layout {
 public:
  explicit Layout(std::string_view prefix) : m_prefix(std::string(prefix) + "/") {}

  // What the keys of one kind begin with: "rlock/lock/".
  [[nodiscard]] std::string begin_of(Kind kind) const
  {
    constexpr std::string_view names[] = {"lock/", "held/", "event/", "presence/", "listener/", "message/"};
    return m_prefix + std::string(names[static_cast<std::size_t>(kind)]);
  }
  [[nodiscard]] std::string key(Kind kind, std::string_view name) const { return begin_of(kind).append(name); }
  // A key of several ones of a name.
  [[nodiscard]] std::string key(Kind kind, std::string_view name, std::string_view part) const
  {
    return key(kind, name).append(1, '\0').append(part);
  }
  [[nodiscard]] std::string event(std::string_view name, std::int64_t id) const
  {
    const std::string digits = std::to_string(id);
    return key(Kind::event, name, std::string(event_digits - digits.size(), '0') + digits);
  }
  // All keys of the kind, or of one name.
  [[nodiscard]] Range all(Kind kind) const { return with_prefix(begin_of(kind)); }
  [[nodiscard]] Range all(Kind kind, std::string_view name) const { return with_prefix(key(kind, name, "")); }
  // All keys of rlock.
  [[nodiscard]] Range all() const { return with_prefix(m_prefix); }

 private:
  static Range with_prefix(const std::string& prefix) { return {.key = prefix, .range_end = end_of_prefix(prefix)}; }

  std::string m_prefix;
};

}  // namespace rlock::etcd
