// SPDX-License-Identifier: Apache-2.0
// rlock runs no job under data of another program, and leaves that data alone.
#include "support/integration.h"
#include "support/queue_fixture.h"

using namespace rlock::test;

namespace {

std::string content(const RedisServer& server) { return as_text(server.command({"DUMP", "k"})); }

}  // namespace

TEST_SUITE_BEGIN("topology");

QUEUE_CASE("foreign data: no kind of lock is taken on a hash with a field `mode`, 78")
{
  queue.server.command({"HSET", "k", "mode", "read", "user", "ann"});
  const std::string before = content(queue.server);
  for (const Words& kind : std::vector<Words>{{"-s"}, {"-x"}, {}, {"--permits", "3"}, {"--format", "string"}}) {
    CAPTURE(kind.empty() ? "plain" : kind.back());
    Process refused = queue.start(kind, {"true"});
    expect_end(refused, Exit{78}, {err_has("holds a hash that is no lock")});
  }
  CHECK_FALSE(has(rlock_on(queue.server, {"list"}).out, "k"));
  CHECK(content(queue.server) == before);
  CHECK(as_int(queue.server.command({"PTTL", "k"})) == -1);
}

QUEUE_CASE("foreign data: a counter is no number of permits, 78, also after a plain lock of that name")
{
  CHECK(queue.start({}, {"true"}).wait() == Exit{0});
  queue.server.command({"SET", "k", "1000"});
  Process refused = queue.start({"--permits", "3"}, {"true"});
  expect_end(refused, Exit{78},
             {err_has("holds the number 1000, of which rlock has no record (give --permits 1000 if that many "
                      "permits are meant, else another --key)")});
  CHECK(as_text(queue.server.command({"GET", "k"})) == "1000");
}

TEST_SUITE_END();
