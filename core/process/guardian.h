// SPDX-License-Identifier: Apache-2.0
// The guardian: the process between runner and job (see job.h). The guardian has one thread, and only the descriptors that it
// needs. It blocks every signal that can be blocked, because service managers signal all processes of a service at once.
#pragma once

#include <sys/socket.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include "base/fd.h"
#include "base/result.h"
#include "process/job.h"
#include "process/launch.h"
#include "process/shared_deadline.h"
#include "process/signals.h"
#include "process/stopping.h"

namespace rlock {

// All that the task refers to must outlive the guardian.
struct GuardianTask {
  const JobSpec& spec;
  const Signals& signals;
  SharedDeadline& shared_deadline;
  const InheritedPipe& inherited_pipe;
  Grouping grouping;
  Fd socket;  // the socket to the runner
};

// The message of a guardian whose runner was killed. `still_runs`: a process of the job that KILL has not ended.
std::string runner_killed_text(bool still_runs, bool released);

// Runs the guardian. Call this in the forked child.
[[noreturn]] void run_guardian(GuardianTask task);

// The messages between runner and guardian over a SOCK_SEQPACKET pair. A message is the bytes of one value, because both
// processes are forks of one program.

struct ForwardSignal {
  int signal;
};
struct StartJob {
  FenceValue value;
};
// The runner gives the job up: the socket closes because the runner closes it, and not because the runner is dead.
struct DiscardJob {};
// What the runner sends. The guardian sends JobEvent values.
using Command = std::variant<StartJob, ForwardSignal, StopOrder, KillOrder, LeaveProcesses, DiscardJob>;

struct NothingYet {};
struct PeerGone {};
template <typename Message>
using Received = std::variant<NothingYet, PeerGone, Message>;

// One alternative of a message as bytes. Padding is zero, so that all bytes are defined.
template <typename Message>
struct Frame {
  static constexpr std::size_t room = sizeof(Message);
  std::size_t index = 0;
  std::array<std::byte, room> value{};
};

// The frame of a message. Unlike std::visit this cannot throw, so a destructor can send.
template <typename Message, std::size_t index = 0>
Frame<Message> framed(const Message& message)
{
  Frame<Message> frame;
  if constexpr (index < std::variant_size_v<Message>) {
    if (message.index() != index) {
      return framed<Message, index + 1>(message);
    }
    auto alternative = *std::get_if<index>(&message);
    static_assert(std::is_trivially_copyable_v<decltype(alternative)>);
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&alternative);
#endif
    frame.index = index;
    std::memcpy(frame.value.data(), &alternative, sizeof alternative);
  }
  return frame;
}

// The message in a frame; nullopt: there is no such alternative.
template <typename Message, std::size_t index = 0>
std::optional<Message> unframed(const Frame<Message>& frame)
{
  if constexpr (index < std::variant_size_v<Message>) {
    if (frame.index != index) {
      return unframed<Message, index + 1>(frame);
    }
    std::variant_alternative_t<index, Message> alternative{};
    std::memcpy(&alternative, frame.value.data(), sizeof alternative);
    return Message(std::in_place_index<index>, alternative);
  }
  return std::nullopt;
}

// How often a message is tried, because the kernel may be short of memory for a moment.
constexpr int message_tries = 3;

// Sends a message. Never blocks. False: the message is lost, because the peer has not read hundreds of messages.
template <typename Message>
bool send_message(int socket, const Message& message)
{
  const Frame<Message> frame = framed(message);
  bool sent = false;
  for (int i = 0; i < message_tries && !sent; ++i) {
    sent = ::send(socket, &frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof frame;
  }
  return sent;
}

template <typename Message>
Received<Message> receive_message(int socket)
{
  Frame<Message> frame;
  ssize_t got = -1;
  for (int i = 0; i < message_tries && got < 0 && (i == 0 || is_shortage(errno)); ++i) {
    got = ::recv(socket, &frame, sizeof frame, MSG_DONTWAIT);
  }
  if (got == sizeof frame) {
    if (auto message = unframed(frame)) {
      return *std::move(message);
    }
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return NothingYet{};
  }
  return PeerGone{};  // also after ECONNRESET: the peer ended before it had read everything
}

}  // namespace rlock
