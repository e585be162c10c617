// SPDX-License-Identifier: Apache-2.0
// A request to stop: a descriptor that becomes readable and stays readable.
//
// A signalfd, an eventfd or a socket can be a StopToken, so every wait in rlock is one poll(2) on its subject and on
// the token. A token does not own the descriptor; the creator of the token keeps the descriptor open for longer.
#pragma once

#include "base/clock.h"
#include "base/fd.h"

namespace rlock {

class StopToken {
 public:
  static constexpr StopToken never() { return StopToken(-1); }
  explicit constexpr StopToken(int readable_fd) : m_fd(readable_fd) {}

  [[nodiscard]] constexpr int fd() const { return m_fd; }  // -1: never; poll(2) ignores that
  [[nodiscard]] bool requested() const;

 private:
  int m_fd;
};

// Asks the users of its tokens to stop. Thread-safe. Throws std::system_error when there is no free descriptor.
class StopSource {
 public:
  StopSource();
  void request();
  [[nodiscard]] StopToken token() const { return StopToken(m_event.get()); }

 private:
  Fd m_event;
};

// Several tokens as one token, which is requested as long as any of them is. Not thread-safe. Throws std::system_error when
// there is no free descriptor or memory.
class AnyStop {
 public:
  AnyStop();
  void add(StopToken stop);  // the caller keeps `stop` open until remove()
  void remove(StopToken stop);
  [[nodiscard]] StopToken token() const { return StopToken(m_set.get()); }

 private:
  Fd m_set;
};

}  // namespace rlock
