// SPDX-License-Identifier: Apache-2.0
// Messages between runner and guardian: whatever arrives is a whole message or the end of the peer. Input: the bytes of one
// message; the first of them is the number of an alternative.
#include "base/fd.h"
#include "fuzz/fuzzer.h"
#include "process/guardian.h"

#include <sys/socket.h>

namespace rlock::test {
namespace {

struct Pair {
  Pair()
  {
    std::array<int, 2> ends{};
    promise(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "a pair of sockets");
    here = Fd(ends[0]);
    there = Fd(ends[1]);
  }
  Fd here;
  Fd there;
};

template <typename Message>
void promise_message(std::string_view bytes)
{
  const Pair pair;
  Frame<Message> frame;
  frame.index = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.front() - '0');
  const std::string_view value = bytes.substr(bytes.empty() ? 0 : 1);
  value.copy(reinterpret_cast<char*>(frame.value.data()), frame.value.size());
  const bool is_whole = bytes.size() % 5 != 4;  // else a message of an arbitrary size
  ::send(pair.there.get(), &frame, is_whole ? sizeof frame : bytes.size() % sizeof frame, MSG_NOSIGNAL);

  const auto received = receive_message<Message>(pair.here.get());
  const bool is_known = is_whole && frame.index < std::variant_size_v<Message>;
  const auto* message = std::get_if<Message>(&received);
  promise((message != nullptr) == is_known, "only a whole message of a known kind is taken");
  if (message != nullptr) {
    promise(message->index() == frame.index, "it is of that kind");
    send_message(pair.there.get(), *message);
    const auto again = receive_message<Message>(pair.here.get());
    const auto* same = std::get_if<Message>(&again);
    promise(same != nullptr && framed(*same).value == framed(*message).value, "receive, send, receive is the same");
  }
  promise(std::holds_alternative<NothingYet>(receive_message<Message>(pair.here.get())), "nothing is left of it");
}

}  // namespace

void fuzz_guardian(std::string_view bytes)
{
  promise_message<Command>(bytes);
  promise_message<JobEvent>(bytes);
}

}  // namespace rlock::test
