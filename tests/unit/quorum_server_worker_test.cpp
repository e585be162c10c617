// SPDX-License-Identifier: Apache-2.0
#include "stores/quorum/server_worker.h"

#include "support/integration.h"
#include "support/scripted_server.h"

#include <atomic>

#include <sys/resource.h>
#include <unistd.h>

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

TEST_CASE("server worker: a request after an interrupted one runs, also without a free descriptor")
{
  ServerWorker worker({.shown = {}, .store = nullptr, .marker = nullptr});
  std::atomic<bool> hangs = false;
  std::atomic<int> asked = 0;
  worker.post("one", ServerWorker::PostMode::replace, [&](QuorumServer&, const CallLimits& limit) {
    hangs = true;
    while (!limit.stop.requested()) {
    }
    return false;
  });
  wait_until([&] { return hangs.load(); }, "the request runs");
  const NoMoreDescriptors none;
  for (const int urgent : {1, 2}) {
    worker.post("one", ServerWorker::PostMode::interrupt, [&](QuorumServer&, const CallLimits& limit) {
      asked += limit.stop.requested() ? 100 : 1;
      return true;
    });
    wait_until([&] { return asked == urgent; }, "the next request runs and is not interrupted");
  }
}

TEST_CASE("server worker: a request in progress is interrupted for a release that waits, not for what is repeated")
{
  using Mode = ServerWorker::PostMode;
  for (const Mode mode : {Mode::repeat, Mode::replace}) {
    CAPTURE(mode == Mode::repeat);
    ServerWorker worker({.shown = {}, .store = nullptr, .marker = nullptr});
    std::atomic<bool> runs = false;
    std::atomic<bool> may_end = false;
    std::atomic<bool> was_interrupted = false;
    worker.post("one", Mode::replace, [&](QuorumServer&, const CallLimits& limit) {
      runs = true;
      while (!may_end && !limit.stop.requested()) {
      }
      was_interrupted = limit.stop.requested();
      return true;
    });
    wait_until([&] { return runs.load(); }, "the request runs");
    worker.post("two", mode, [](QuorumServer&, const CallLimits&) { return true; });
    worker.interrupt_for_next();
    may_end = mode == Mode::repeat;
    wait_until([&] { return worker.is_idle(); }, "both have ended");
    CHECK(was_interrupted == (mode == Mode::replace));
  }
}
