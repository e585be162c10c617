// SPDX-License-Identifier: Apache-2.0
#include "support/server_state.h"

#include "support/scripted_server.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <filesystem>

namespace rlock::test {
namespace {

using Words = std::vector<std::string>;

Connection connection_to(const RedisServer& server)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = server.socket_path();
  auto connection = Connection::open(endpoint, real_clock, within(plenty));
  REQUIRE(connection);
  return *std::move(connection);
}

std::vector<std::string_view> views(const Words& words) { return {words.begin(), words.end()}; }

// Until an answer to PING begins so.
void await(Scene& scene, const std::string& start)
{
  wait_until([&] { return scene.tell({"PING"}).text.starts_with(start); }, "the server says " + start);
}

// A save that fails, for there is a directory where the file should be.
void cannot_save(Scene& scene)
{
  std::filesystem::create_directory(scene.server.log_path().parent_path() / "dump.rdb");
  scene.must({"BGSAVE"});
  wait_until(
      [&] {
        return scene.tell({"INFO", "persistence"}).text.find("last_bgsave_status:err") != std::string::npos;
      },
      "the save has failed");
  scene.must({"CONFIG", "SET", "save", "3600 1"});
}

// It reads its own keys anew, slowly.
void load(Scene& scene)
{
  scene.must({"DEBUG", "POPULATE", "20000", "ballast", "100"});
  scene.must({"CONFIG", "SET", "loading-process-events-interval-bytes", "1024"});
  scene.must({"CONFIG", "SET", "key-load-delay", "3000"});
  scene.send({"DEBUG", "RELOAD"});
  await(scene, "LOADING");
}

void finish_loading(Scene& scene)
{
  scene.must({"CONFIG", "SET", "key-load-delay", "0"});
  await(scene, "PONG");
}

void run_a_script(Scene& scene)
{
  scene.must({"CONFIG", "SET", "lua-time-limit", "1"});
  scene.send({"EVAL", "while true do end", "0"});
  await(scene, "BUSY");
}

void end_the_script(Scene& scene)
{
  scene.must({"SCRIPT", "KILL"});
  await(scene, "PONG");
}

std::function<void(Scene&)> saying(std::vector<Words> requests)
{
  return [all = std::move(requests)](Scene& scene) {
    for (const Words& words : all) {
      scene.must(words);
    }
  };
}

std::function<void(Scene&)> saying_and_cutting(std::vector<Words> requests)
{
  return [say = saying(std::move(requests))](Scene& scene) {
    say(scene);
    scene.cut();
  };
}

const Words shop{"--user", "shop", "on", ">hunter2", "~*", "&*", "+@all"};
const Words a_cluster{"--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"};

const std::vector<ServerState>& all()
{
  static const std::vector<ServerState> states{
      {"loading", {"--enable-debug-command", "yes"}, "", load, finish_loading, 69, "LOADING"},
      {"busy", {}, "", run_a_script, end_the_script, 69, "BUSY"},
      {"paused",
       {},
       "",
       saying({{"CLIENT", "PAUSE", "600000", "WRITE"}}),
       saying({{"CLIENT", "UNPAUSE"}}),
       69,
       "no answer from"},
      {"a replica",
       {},
       "",
       saying({{"REPLICAOF", "127.0.0.1", "1"}}),
       saying({{"REPLICAOF", "NO", "ONE"}}),
       69,
       "(it is a replica; name the master)"},
      {"a replica cut off",
       {"--replica-serve-stale-data", "no"},
       "",
       saying({{"REPLICAOF", "127.0.0.1", "1"}}),
       saying({{"REPLICAOF", "NO", "ONE"}}),
       69,
       "MASTERDOWN"},
      {"cannot save", {}, "", cannot_save, saying({{"CONFIG", "SET", "save", ""}}), 69, "MISCONF"},
      {"too few replicas",
       {},
       "",
       saying({{"CONFIG", "SET", "min-replicas-to-write", "1"}}),
       saying({{"CONFIG", "SET", "min-replicas-to-write", "0"}}),
       69,
       "NOREPLICAS"},
      {"full",
       {},
       "",
       saying({{"CONFIG", "SET", "maxmemory", "1"}}),
       saying({{"CONFIG", "SET", "maxmemory", "0"}}),
       69,
       "(its memory is full; raise maxmemory)",
       true},
      {"too many clients",
       {},
       "",
       saying_and_cutting({{"CONFIG", "SET", "maxclients", "1"}}),
       saying({{"CONFIG", "SET", "maxclients", "1000"}}),
       69,
       "max number of clients reached (raise maxclients there)"},
      {"a slot unserved", a_cluster, "", saying({{"CLUSTER", "DELSLOTS", "7629"}}),
       saying({{"CLUSTER", "ADDSLOTS", "7629"}}), 69, "CLUSTERDOWN"},
      {"a password",
       {},
       "",
       saying_and_cutting({{"ACL", "SETUSER", "default", "resetpass", ">pw"}}),
       saying({{"ACL", "SETUSER", "default", "nopass"}}),
       77,
       "(give the password in the URL, RLOCK_PASSWORD or"},
      {"another password", shop, "shop:hunter2@",
       saying_and_cutting({{"ACL", "SETUSER", "shop", "resetpass", ">other"}}),
       saying({{"ACL", "SETUSER", "shop", ">hunter2"}}), 77, "refused the user or password"},
      {"fewer rights", shop, "shop:hunter2@", saying({{"ACL", "SETUSER", "shop", "-evalsha", "-eval"}}),
       saying({{"ACL", "SETUSER", "shop", "+evalsha", "+eval"}}), 77, "(rlock acl prints the rules that a user needs)"},
      {"no scripts known", {}, "", saying({{"SCRIPT", "FLUSH"}}), saying({}), 0, "", true},
  };
  return states;
}

}  // namespace

Scene::Scene(const Words& args)
    : server({.args = args, .tcp = args == a_cluster}),  // its second port is made of the first
      admin(connection_to(server))
{
  if (args == a_cluster) {
    must({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
    wait_until([&] { return !tell({"GET", "k"}).is_error(); }, "the cluster is up");
  }
}

Reply Scene::tell(const Words& words)
{
  auto reply = admin.call(views(words), within(plenty));
  REQUIRE_MESSAGE(reply, words.front() << ": " << reply.error().text);
  return *std::move(reply);
}

void Scene::must(const Words& words)
{
  const Reply reply = tell(words);
  REQUIRE_MESSAGE(!reply.is_error(), words.front() << ": " << show(reply));
}

void Scene::send(const Words& words)
{
  second.emplace(connection_to(server));
  REQUIRE(second->send(views(words), within(plenty)));
}

void Scene::cut()
{
  second.reset();
  tell({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  tell({"CLIENT", "KILL", "TYPE", "pubsub"});
}

std::span<const ServerState> server_states() { return all(); }

}  // namespace rlock::test
