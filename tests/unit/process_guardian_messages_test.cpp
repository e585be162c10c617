// SPDX-License-Identifier: Apache-2.0
#include "process/guardian.h"

#include "base/fd.h"
#include "support/test.h"

#include <array>
#include <cstring>
#include <new>

#include <sys/socket.h>

using namespace rlock::test;

namespace {

struct Pair {
  Pair()
  {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    here = Fd(ends[0]);
    there = Fd(ends[1]);
  }
  Fd here;
  Fd there;
};

}  // namespace

TEST_CASE("guardian messages: what is sent arrives, of each kind")
{
  const Pair pair;
  send_message(pair.here.get(), Command(StopOrder{Millis{750}}));
  send_message(pair.here.get(), Command(ForwardSignal{SIGHUP}));
  send_message(pair.here.get(), Command(StartJob{FenceValue("41")}));
  const auto order = receive_message<Command>(pair.there.get());
  CHECK(std::get<StopOrder>(std::get<Command>(order)).kill_after == Millis{750});
  const auto forward = receive_message<Command>(pair.there.get());
  CHECK(std::get<ForwardSignal>(std::get<Command>(forward)).signal == SIGHUP);
  const auto go = receive_message<Command>(pair.there.get());
  CHECK(std::string(std::get<StartJob>(std::get<Command>(go)).value.c_str()) == "41");
  CHECK(std::holds_alternative<NothingYet>(receive_message<Command>(pair.there.get())));
  send_message(pair.there.get(), JobEvent(JobEnd{.wait_status = 3, .why = Stopped::order, .killed = true}));
  const auto ended = std::get<JobEnd>(std::get<JobEvent>(receive_message<JobEvent>(pair.here.get())));
  CHECK(ended.wait_status == 3);
  CHECK(ended.why == Stopped::order);
  CHECK(ended.killed);
}

TEST_CASE("guardian messages: no byte of a message is what happened to lie in memory")
{
  const Pair pair;
  alignas(JobEvent) std::array<unsigned char, sizeof(JobEvent)> memory{};
  memory.fill(0xaa);
  const auto* const event =
      new (memory.data()) JobEvent(JobEnd{.wait_status = 0, .why = Stopped::none, .killed = false});
  send_message(pair.here.get(), *event);
  std::array<unsigned char, 512> sent{};
  const auto size = ::recv(pair.there.get(), sent.data(), sent.size(), 0);
  REQUIRE(size > 0);
  CHECK(std::count(sent.begin(), sent.begin() + size, 0xaa) == 0);
}
