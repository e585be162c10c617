// SPDX-License-Identifier: Apache-2.0
// What runner and guardian say to each other over a SOCK_SEQPACKET pair: one value, one message.
// Both are the same program, forked, so the bytes of the value are the message.
#pragma once

#include "job/job.h"
#include "job/launch.h"
#include "job/stopping.h"

#include <cerrno>
#include <type_traits>
#include <variant>

#include <sys/socket.h>

namespace rlock {

struct Forward {
  int signal;
};
struct Go {
  LateValue value;
};
using Command = std::variant<Go, Forward, Order, Leave>;  // from the runner; the guardian answers in JobEvents

struct NothingYet {};
struct PeerGone {};
template <typename Message>
using Received = std::variant<NothingYet, PeerGone, Message>;

// Never blocks. A peer that reads nothing for hundreds of messages loses some; it finds out at EOF.
template <typename Message>
void send_message(int channel, const Message& message)
{
  static_assert(std::is_trivially_copyable_v<Message>);
  ::send(channel, &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

template <typename Message>
Received<Message> receive_message(int channel)
{
  static_assert(std::is_trivially_copyable_v<Message>);
  Message message;
  const ssize_t got = ::recv(channel, &message, sizeof message, MSG_DONTWAIT);
  if (got == sizeof message) {
    return message;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return NothingYet{};
  }
  return PeerGone{};  // ECONNRESET too: it went away without having read everything
}

}  // namespace rlock
