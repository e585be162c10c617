// SPDX-License-Identifier: Apache-2.0
// A server that turns malicious while rlock holds a lock or waits for one.
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/relay.h"

#include <atomic>

using namespace rlock::test;

namespace {

// Publishes on all channels of the owners of locks, as fast as the server takes it.
class Flood {
 public:
  Flood(const RedisServer& server, std::vector<std::string> channels)
      : m_thread([this, endpoint = *parse_url(server.direct_url()), channels = std::move(channels)] {
          auto connection = Connection::open(endpoint, real_clock, within(plenty));
          while (!m_over && connection) {
            for (const std::string& channel : channels) {
              const std::array<std::string_view, 3> argv{"PUBLISH", channel, "look 0"};
              m_sent += connection->call(argv, within(plenty)) ? 1 : 0;
            }
          }
        })
  {
  }
  ~Flood()
  {
    m_over = true;
    m_thread.join();
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;
  [[nodiscard]] int sent() const { return m_sent; }

 private:
  std::atomic<bool> m_over = false;
  std::atomic<int> m_sent = 0;
  std::thread m_thread;
};

std::string job_until(const std::filesystem::path& go)
{
  return "until test -e " + go.string() + "; do sleep 0.02; done";
}

}  // namespace

TEST_CASE("hostile: a flood of messages to a holder delays no renewal and costs few requests")
{
  const RedisServer server({.alone = true});
  const auto go = make_temp_dir("flood") / "go";
  Process job =
      start_rlock({"run", "-S", server.direct_url(), "-k", "k", "--ttl", "2s", "--", "sh", "-c", job_until(go)});
  std::vector<std::string> heard;
  wait_until(
      [&] {
        heard = as_texts(server.command({"PUBSUB", "CHANNELS", "rlock:owner:*"}));
        return heard.size() == 1;
      },
      "the holder listens");
  const std::int64_t before = calls_of(server, "evalsha");
  const Instant begin = real_clock.now();
  {
    const Flood flood(server, heard);
    const Instant enough = begin + 3s;  // longer than the ttl
    wait_until(
        [&] {
          CHECK(as_int(server.command({"PTTL", "k"})) > 0);
          return real_clock.now() > enough && flood.sent() > 2000;
        },
        "messages are sent for longer than the ttl");
  }
  // At most one renewal each 50 ms.
  CHECK(calls_of(server, "evalsha") - before <= (real_clock.now() - begin) / 50ms + 10);
  std::ofstream(go).close();
  expect_end(job, Exit{0}, {err_is("")});
}

TEST_CASE("hostile: a flood of messages to a waiter does not keep it from its limit of time")
{
  const std::string busy = "*8\r\n$4\r\nbusy\r\n:60000\r\n$12\r\n8743c9c0:999\r\n:1\r\n$-1\r\n:0\r\n$1\r\n7\r\n:0\r\n";
  const std::string confirmed = "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
  const std::string message = "*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$4\r\nnext\r\n";
  for (const std::string& again : {message, confirmed + message}) {
    const HostileServer server(answers_by_word({{.word = "SUBSCRIBE", .reply = again, .for_ever = true},
                                                {.word = "ZSCORE", .reply = "$1\r\n7\r\n"},
                                                {.word = "", .reply = busy}}));
    Process waiter =
        start_rlock({"run", "-S", server.url(), "-w", "2s", "--server-timeout", "1s", "-k", "k", "--", "echo", "ran"});
    const Exit exit = waiter.wait(10s);
    CHECK_MESSAGE((exit.code == 75 || exit.code == 69), waiter.err());
    CHECK(waiter.out() == "");
  }
}

TEST_CASE("hostile: a server that turns malicious while a job runs ends the job before its lease")
{
  const std::string harms[] = {"$999999999999\r\n",
                               "*2147483647\r\n",
                               "+OK\r\n",
                               ":-1\r\n",
                               "-\x1b[2J\r\n",
                               "*2\r\n$4\r\nlost\r\n$4\r\n\x1b[2J\r\n",
                               "*1\r\n$4\r\nlost\r\n"};
  for (const std::string& harm : harms) {
    CAPTURE(harm);
    const RedisServer server({.alone = true});
    Relay relay(server);
    const auto dir = make_temp_dir("turned");
    Process job = start_rlock({"run", "-S", relay.url(), "-k", "k", "--ttl", "2s", "--kill-after", "200ms", "--", "sh",
                               "-c", "echo > " + (dir / "runs").string() + "; sleep 60; echo ran"});
    wait_until([&] { return std::filesystem::exists(dir / "runs"); }, "the job runs");
    relay.answer(harm);
    const Exit exit = job.wait(10s);
    CHECK_MESSAGE(exit == Exit{121}, job.err());
    CHECK_FALSE(has(job.out(), "ran"));
    CHECK_FALSE(has(job.err(), "\x1b"));
  }
}
