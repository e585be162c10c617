// SPDX-License-Identifier: Apache-2.0
// A key of rlock's records holds foreign data: the error names the key, and says what to do.
#include "support/integration.h"
#include "support/queue_fixture.h"

using namespace rlock::test;

namespace {

struct Row {
  const char* key;
  std::vector<std::string> kind;
  const char* there;
  const char* wanted;
  bool hinders_taking = true;  // false: it is overwritten
  bool hinders_letting_go = true;
};

bool names(const std::string& error, const Row& row)
{
  const std::string key(row.key);
  return count(error, "\n") == 1 &&
         has(error, key + " is a " + row.there + ", where a " + row.wanted + " of rlock's belongs") &&
         has(error, "(see rlock status " + key + "; or choose another key") && !has(error, "DEL");
}

void put(const QueueFixture& queue, const Row& row)
{
  queue.server.command({"DEL", row.key});
  queue.server.command(std::string(row.there) == "string" ? std::vector<std::string>{"SET", row.key, "x"}
                                                          : std::vector<std::string>{"LPUSH", row.key, "x"});
}

}  // namespace

TEST_CASE("wrong type: what stands in the place of a record is named when a lock is taken or let go, with what helps")
{
  const std::vector<Row> rows{{"rlock:queue:{k}", {}, "string", "zset"},
                              {"rlock:holder:{k}", {}, "string", "hash", false},
                              {"rlock:queue-rw:{k}", {"-x"}, "string", "zset"},
                              {"rlock:events:{k}", {}, "string", "list"},
                              {"redisson_lock_token:{k}", {}, "list", "string", true, false},
                              {"{k}:timeout", {"--permits", "2"}, "list", "zset"}};
  for (const Row& row : rows) {
    CAPTURE(row.key);
    const QueueFixture queue;
    put(queue, row);
    Process taking = queue.start(joined(row.kind, {"-n"}), {"true"});
    CHECK(taking.wait().code == (row.hinders_taking ? 78 : 0));
    CHECK_MESSAGE((!row.hinders_taking || names(taking.err(), row)), taking.err());
  }
  for (const Row& row : rows) {
    CAPTURE(row.key);
    const QueueFixture queue;
    const auto go = make_temp_dir("wrong-type") / "go";
    Process holder = queue.start(row.kind, {"sh", "-c", "until [ -e " + go.string() + " ]; do sleep 0.02; done"});
    wait_until([&] { return as_int(queue.server.command({"EXISTS", "rlock:holder:{k}"})) == 1; }, "it is held");
    put(queue, row);
    std::ofstream(go) << "go";
    holder.wait();
    CHECK_MESSAGE((row.hinders_letting_go ? names(holder.err(), row) : holder.err().empty()), holder.err());
  }
}

QUEUE_CASE("wrong type: what may be a lock is looked at, not deleted, where it stands in the place of a record")
{
  const std::string key = "rlock:queue:{k}";
  queue.server.command({"HSET", key, "6f2b1a7e-0000-4000-8000-000000000001:1", "1"});  // a Java lock of that name
  queue.server.command({"PEXPIRE", key, "60000"});
  Process refused(queue.rlock("run", {"-n", "--", "true"}));
  CHECK(refused.wait() == Exit{78});
  CHECK_MESSAGE(names(refused.err(), {key.c_str(), {}, "hash", "zset"}), refused.err());
  CHECK(rlock_on(queue.server, {"status", key}).code == 0);
}

QUEUE_CASE("wrong type: the lock's own key is not offered for deletion")
{
  queue.server.command({"SADD", "k", "x"});
  Process refused(queue.rlock("run", {"-n", "--", "true"}));
  expect_end(refused, exited(78), {err_lacks("DEL")});
}

TEST_CASE("wrong type: a run notices it before other runs are stopped or replaced for it")
{
  for (const Row& row : std::vector<Row>{{"rlock:events:{k}", {}, "string", "list"},
                                         {"redisson_lock_token:{k}", {}, "list", "string"},
                                         {"rlock:holder:{k}", {}, "list", "hash"}}) {
    CAPTURE(row.key);
    QueueFixture queue;
    Process holder = queue.hold("30s");
    queue.add_waiter("30s", "", {"--latest"});
    put(queue, row);
    Process latest(queue.rlock("run", {"--latest", "--cancel-in-progress", "--", "true"}));
    CHECK(latest.wait() == Exit{78});
    CHECK(names(latest.err(), row));
    CHECK(queue.queue_length() == 1);
    Process cancelling(queue.rlock("run", {"--cancel-in-progress", "-w", "1s", "--", "true"}));
    const bool hinders_waiting = std::string(row.wanted) == "hash";
    expect_end(cancelling, Exit{hinders_waiting ? 78 : 75}, {err_has(row.key)});
    CHECK(holder.running());
    CHECK(queue.waiters.front().running());
    CHECK(as_int(queue.server.command({"EXISTS", "rlock:force:{k}"})) == 0);
  }
}

TEST_CASE("wrong type: a release passes the lock on whatever stands in the place of the requests to its holder")
{
  for (const std::vector<std::string>& kind :
       std::vector<std::vector<std::string>>{{"-x"}, {"-s"}, {"--permits", "1"}}) {
    CAPTURE(kind.front());
    QueueFixture queue;
    queue.server.command({"RPUSH", "rlock:force:{k}", "x"});
    Words words = joined(kind, {"--", "true"});
    Process run(queue.rlock("run", words));
    expect_end(run, Exit{0}, {err_is("")});
  }
}
