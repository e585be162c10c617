// SPDX-License-Identifier: Apache-2.0
#include "redis/slot_map.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

const HostPort asked{"db1", 7000};

Reply node(std::string host, std::int64_t port)
{
  return Reply::array({Reply::of(std::move(host)), Reply::of(port), Reply::of("id")});
}

std::string show(const std::optional<Redirection>& found)
{
  if (!found) {
    return "none";
  }
  return (found->kind == Redirection::Kind::ask ? "ask " : "moved ") + std::to_string(found->slot) + " " +
         found->to.host + " " + std::to_string(found->to.port);
}

std::string show(const std::optional<HostPort>& found)
{
  return found ? found->host + " " + std::to_string(found->port) : "nobody";
}

}  // namespace

TEST_CASE("redirection: where a node redirects to")
{
  struct Row {
    const char* why;
    Reply reply;
    const char* expect;
  };
  const Row rows[] = {
      {"moved", Reply::error("MOVED 3999 127.0.0.1:6381"), "moved 3999 127.0.0.1 6381"},
      {"this once", Reply::error("ASK 16383 db2.example:7001"), "ask 16383 db2.example 7001"},
      {"an address with colons", Reply::error("MOVED 0 ::1:7001"), "moved 0 ::1 7001"},
      {"no host: where we asked", Reply::error("MOVED 5 :7001"), "moved 5 db1 7001"},
      {"a host that is not known there", Reply::error("MOVED 5 ?:7001"), "moved 5 db1 7001"},
      {"no port", Reply::error("MOVED 5 db2"), "none"},
      {"no such port", Reply::error("MOVED 5 db2:70000"), "none"},
      {"no such slot", Reply::error("MOVED 16384 db2:1"), "none"},
      {"half of it", Reply::error("MOVED"), "none"},
      {"another error", Reply::error("TRYAGAIN Multiple keys request during rehashing of slot"), "none"},
      {"no error at all", Reply::of("MOVED 5 db2:1"), "none"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(show(redirection_in(row.reply, asked)) == row.expect);
  }
}

TEST_CASE("cluster map: masters by slot, replicas known, what makes no sense left out")
{
  SlotMap map(Reply::array({Reply::array({Reply::of(0), Reply::of(99), node("db1", 7000), node("db3", 7002)}),
                            Reply::array({Reply::of(100), Reply::of(100), node("", 7001)}),
                            Reply::array({Reply::of(200), Reply::of(20000), node("db9", 1)}),
                            Reply::array({Reply::of(300)}), Reply::of(7)}),
              asked);
  CHECK(show(map.owner(0)) == "db1 7000");
  CHECK(show(map.owner(99)) == "db1 7000");
  CHECK(show(map.owner(100)) == "db1 7001");
  CHECK(show(map.owner(101)) == "nobody");
  CHECK(show(map.owner(300)) == "nobody");
  CHECK(map.owners().size() == 2);
  CHECK(map.nodes().size() == 3);

  map.moved(50, {"db4", 7003});
  CHECK(show(map.owner(50)) == "db4 7003");
  CHECK(show(map.owner(51)) == "db1 7000");
  CHECK(map.nodes().size() == 4);
  CHECK(show(SlotMap(Reply::error("NOPERM"), asked).owner(1)) == "nobody");
}
