// SPDX-License-Identifier: Apache-2.0
// A key of rlock's records holds foreign data: the error names the key, and says what to do.
#include "support/queue_fixture.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using namespace rlock;
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
  return std::count(error.begin(), error.end(), '\n') == 1 &&
         error.find(key + " is a " + row.there + ", where a " + row.wanted + " of rlock's belongs") !=
             std::string::npos &&
         error.find("(delete it: DEL " + key + "; ") != std::string::npos;
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
    std::vector<std::string> words = row.kind;
    words.insert(words.end(), {"-n", "--", "true"});
    Process taking(queue.rlock("run", words));
    CHECK(taking.wait().code == (row.hinders_taking ? 78 : 0));
    CHECK_MESSAGE((!row.hinders_taking || names(taking.err(), row)), taking.err());
  }
  for (const Row& row : rows) {
    CAPTURE(row.key);
    const QueueFixture queue;
    const auto go = make_temp_dir("wrong-type") / "go";
    std::vector<std::string> words = row.kind;
    words.insert(words.end(), {"--", "sh", "-c", "until [ -e " + go.string() + " ]; do sleep 0.02; done"});
    Process holder(queue.rlock("run", words));
    wait_until([&] { return as_int(queue.server.command({"EXISTS", "rlock:holder:{k}"})) == 1; }, "it is held");
    put(queue, row);
    std::ofstream(go) << "go";
    holder.wait();
    CHECK_MESSAGE((row.hinders_letting_go ? names(holder.err(), row) : holder.err().empty()), holder.err());
  }
}

TEST_CASE("wrong type: the lock's own key is not offered for deletion")
{
  const QueueFixture queue;
  queue.server.command({"SADD", "k", "x"});
  Process refused(queue.rlock("run", {"-n", "--", "true"}));
  CHECK(refused.wait() == Exit{.code = 78, .signal = 0});
  CHECK(refused.err().find("DEL") == std::string::npos);
}
