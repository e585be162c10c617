// SPDX-License-Identifier: Apache-2.0
// Messages during failing renewals and after a lost lock: few, early, and with the true reason.
#include "support/integration.h"

using namespace rlock::test;

namespace {

std::string last_line(const std::string& text)
{
  const auto begin = text.rfind('\n', text.size() - 2);
  return text.substr(begin == std::string::npos ? 0 : begin + 1);
}

}  // namespace

TEST_CASE("outage: one line when it lasts a second, one when it is over")
{
  RedisServer server({.args = {"--appendonly", "yes", "--appendfsync", "always"}});
  Process job = held_run(server, {"--ttl", "12s"});
  server.kill_hard();
  wait_until([&] { return has(job.err(), "\n"); }, "it is told", 30s);
  CHECK(job.err().starts_with("rlock: cannot renew k: cannot reach "));
  CHECK(has(job.err(), "; the job will be stopped in "));
  CHECK_FALSE(has(job.err(), "local:"));
  server.restart();
  wait_until([&] { return has(job.err(), "rlock: renewed k again, after "); }, "it is renewed again", 30s);
  CHECK(count(job.err(), "\n") == 2);
  CHECK(job.running());
}

SERVER_CASE("outage: with -v there is no more than a line a second")
{
  Process job = held_run(server, {"--ttl", "6s", "-v"});
  const auto from = std::chrono::steady_clock::now();
  server.kill_hard();
  CHECK(job.wait(30s) == exited(121));
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - from).count();
  CHECK(count(job.err(), "rlock: cannot ") <= static_cast<std::size_t>(seconds) + 1);
}

TEST_CASE("outage: the last line is plain, and no time is spent on a release that cannot succeed")
{
  for (const bool killed : {true, false}) {
    CAPTURE(killed);
    RedisServer server;
    Process job = held_run(server, {"--ttl", "6s"});
    killed ? server.kill_hard() : server.stop_signal();
    const auto from = std::chrono::steady_clock::now();
    CHECK(job.wait(30s) == exited(121));
    CHECK(std::chrono::steady_clock::now() - from < 6s);  // it ends with its lease, not seconds later
    const std::string line = last_line(job.err());
    CHECK_MESSAGE(line.starts_with("rlock: the lock k was lost: no renewal for "), job.err());
    CHECK_MESSAGE(has(line, "; noticed at 20"), line);
    CHECK(count(line, "(") <= 1);
    CHECK_FALSE(has(line, "local:"));
    CHECK_FALSE(has(job.err(), "cannot release"));
  }
}

TEST_CASE("outage: a server that refuses to write is the reason of the loss")
{
  struct Row {
    std::vector<std::string> words;
    std::string says;
  };
  const Row rows[] = {
      {{"CONFIG", "SET", "min-replicas-to-write", "1"}, "NOREPLICAS"},
      {{"REPLICAOF", "127.0.0.1", "1"}, "READONLY"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.says);
    const RedisServer server({.alone = true});
    Process job = held_run(server, {"--ttl", "4s"});
    server.command(row.words);
    CHECK(job.wait(30s) == exited(121));
    const std::string line = last_line(job.err());
    CHECK_MESSAGE(line.starts_with("rlock: the lock k was lost: no renewal for "), job.err());
    CHECK_MESSAGE(has(line, row.says), line);
    CHECK(count(line, "(") <= 1);
  }
}
