// SPDX-License-Identifier: Apache-2.0
// A ttl runs out by the server's wall clock, which may be set while a job runs. The tests step the clock of one server
// alone.
#include "support/integration.h"
#include "support/scripted_server.h"

using namespace rlock::test;

namespace {

struct Holder {
  RedisServer server{{.own_clock = true}};
  const std::filesystem::path go = make_temp_dir("clock") / "go";
  Process rlock;

  explicit Holder(const Words& kind) : rlock(rlock_argv(words(kind)))
  {
    wait_until([&] { return listening(server) == 1; }, "it is held, and its watchdog listens");
    wait_until([&] { return calls_of(server, "eval") >= 2 && calls_of(server, "evalsha") >= 3; },
               "it was renewed twice, so that the server's clock was seen");
  }
  [[nodiscard]] Words words(const Words& kind) const
  {
    return joined({"run", "-v", "-S", server.url(), "-k", "k", "--ttl", "3s"},
                  with_job(kind, {"sh", "-c", "until test -e " + go.string() + "; do sleep 0.02; done"}));
  }
  [[nodiscard]] bool says(const std::string& words) const { return has(rlock.err(), words); }
};

const std::vector<Words> kinds{{}, {"-s"}, {"-x"}, {"--permits", "2"}, {"--format", "string"}};

}  // namespace

TEST_CASE("server's clock: a step past the lease is a lost lock, and the message says so")
{
  for (const Words& kind : kinds) {
    CAPTURE(kind.empty() ? "" : kind.front());
    Holder holder(kind);
    holder.server.step_clock(10s);
    const Instant stepped = real_clock.now();
    CHECK_MESSAGE(holder.rlock.wait() == Exit{121}, holder.rlock.err());
    CHECK(real_clock.now() - stepped < 3s);  // at the next renewal, a second later, not by the local clock
    CHECK_MESSAGE(holder.says("the lock k was lost: expired or deleted: the server's clock jumped 10s ahead"),
                  holder.rlock.err());
  }
}

TEST_CASE("server's clock: a step that the lease outlives is mended by the next renewal")
{
  Holder holder({});
  holder.server.step_clock(1500ms);
  wait_until([&] { return holder.says("k is still held: the server's clock jumped "); }, "the step is seen");
  const Instant seen = real_clock.now();
  wait_until([&] { return real_clock.now() - seen > 4s; }, "more than a lease has passed");
  CHECK(holder.rlock.running());
  std::ofstream(holder.go).close();
  CHECK_MESSAGE(holder.rlock.wait() == Exit{0}, holder.rlock.err());
}

TEST_CASE("server's clock: a step back costs nothing, and the lock goes with its job")
{
  Holder holder({});
  holder.server.step_clock(-10min);
  wait_until([&] { return holder.says("k is still held: the server's clock jumped 10m back"); }, "the step is seen");
  std::ofstream(holder.go).close();
  CHECK_MESSAGE(holder.rlock.wait() == Exit{0}, holder.rlock.err());
  CHECK_FALSE(is_held(holder.server));
}

TEST_CASE("server's clock: the fencing number grows even after a step back")
{
  const RedisServer server({.own_clock = true});
  const auto fence = [&] {
    return std::stoll(rlock_on(server, {"run", "-k", "k", "--", "sh", "-c", "echo $RLOCK_FENCE"}).out);
  };
  const auto first = fence();
  server.step_clock(-1h);
  CHECK(fence() == first + 1);
}
