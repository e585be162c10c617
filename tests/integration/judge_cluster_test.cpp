// SPDX-License-Identifier: Apache-2.0
// A cluster that faults have left in pieces can be mended: otherwise a storm of the judge ends at the first such fault.
#include "redis/slot_map.h"
#include "support/integration.h"
#include "support/redis_cluster.h"

using namespace rlock::test;

namespace {

bool is_master(const RedisServer& node)
{
  const auto role = node.try_command({"ROLE"});
  return role && !role->elements.empty() && role->elements[0].text == "master";
}

std::int64_t number_after(const std::string& text, const std::string& mark)
{
  const auto at = text.find(mark);
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + mark.size()));
}

// WAIT would not tell, because it looks at the writes of its own connection only.
bool replica_has_all(const RedisServer& master)
{
  const std::string info = as_text(master.command({"INFO", "replication"}));
  return number_after(info, ",offset=") >= number_after(info, "master_repl_offset:");
}

Reply set(const RedisServer& node, const std::string& key) { return node.command({"SET", key, key}); }

}  // namespace

// The node that gets the slot does not believe a new owner while it is in that state.
TEST_CASE("judge: a slot that was half moved when its owner died is mended")
{
  const RedisCluster cluster({.replicas = true, .node_timeout = 3s, .args = {"--appendonly", "yes"}});
  RedisServer& source = cluster.owner("{k}");
  RedisServer& target = cluster.other_than(source);
  REQUIRE(set(source, "{k}:moved").text == "OK");
  REQUIRE(set(source, "{k}:stayed").text == "OK");
  cluster.begin_to_move_slot("{k}", target);
  REQUIRE(source.command({"MIGRATE", "127.0.0.1", std::to_string(target.port()), "{k}:moved", "0", "10000"}).text ==
          "OK");
  wait_until([&] { return replica_has_all(source); }, "the replica that takes over has it all");

  source.kill_hard();
  const auto is_replaced = [&] {
    const auto& nodes = cluster.nodes();
    return std::count_if(nodes.begin(), nodes.end(), is_master) == 3;
  };
  wait_until(is_replaced, "a replica is the master", 60s);
  source.restart();
  wait_until([&] { return !is_master(source); }, "the old master follows the new one", 60s);

  cluster.mend_slots();
  cluster.wait_until_served();
  CHECK(cluster.command({"GET", "{k}:moved"}).text == "{k}:moved");
  CHECK(cluster.command({"GET", "{k}:stayed"}).text == "{k}:stayed");
}

CLUSTER_CASE("judge: a slot move of which only the first half was said is given up")
{
  RedisServer& source = cluster.owner("{k}");
  RedisServer& target = cluster.other_than(source);
  REQUIRE(set(source, "{k}").text == "OK");
  cluster.begin_to_move_slot("{k}", target);
  const auto slot = std::to_string(slot_of("{k}"));
  REQUIRE(target.command({"CLUSTER", "SETSLOT", slot, "STABLE"}).text == "OK");
  cluster.mend_slots();
  cluster.wait_until_served();
  CHECK(&cluster.owner("{k}") == &source);
  CHECK(cluster.command({"GET", "{k}"}).text == "{k}");
  CHECK(cluster.command({"GET", "{k}:absent"}).kind == Reply::Kind::nil);  // no -ASK
}
