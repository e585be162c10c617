// SPDX-License-Identifier: Apache-2.0
#include "store/quorum/server_worker.h"

#include "support/scripted_server.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <atomic>

#include <sys/resource.h>
#include <unistd.h>

using namespace rlock;
using namespace rlock::test;

namespace {

struct NoMoreDescriptors {
  rlimit before{};
  NoMoreDescriptors()
  {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;
};

}  // namespace

TEST_CASE("quorum member: what is asked after it was cut off is asked, also where there is no descriptor to be had")
{
  ServerWorker member({.shown = {}, .store = nullptr, .marker = nullptr});
  std::atomic<bool> hangs = false;
  std::atomic<int> asked = 0;
  member.post("one", ServerWorker::Word::last, [&](QuorumServer&, StopToken stop) {
    hangs = true;
    while (!stop.requested()) {
    }
    return false;
  });
  wait_until([&] { return hangs.load(); }, "it is asked");
  const NoMoreDescriptors none;
  for (const int urgent : {1, 2}) {
    member.post("one", ServerWorker::Word::urgent, [&](QuorumServer&, StopToken stop) {
      asked += stop.requested() ? 100 : 1;
      return true;
    });
    wait_until([&] { return asked == urgent; }, "the next is asked, and not cut off");
  }
}
