// SPDX-License-Identifier: Apache-2.0
#include "support/server_state.h"

#include "support/scripted_server.h"
#include "support/wait_until.h"

#include <doctest/doctest.h>

#include <filesystem>

namespace rlock::test {
namespace {

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
void await(ServerStateFixture& fixture, const std::string& start)
{
  wait_until([&] { return fixture.command({"PING"}).text.starts_with(start); }, "the server says " + start);
}

// A save that fails, because there is a directory in place of the file.
void cannot_save(ServerStateFixture& fixture)
{
  std::filesystem::create_directory(fixture.server.log_path().parent_path() / "dump.rdb");
  fixture.must_succeed({"BGSAVE"});
  wait_until(
      [&] {
        return fixture.command({"INFO", "persistence"}).text.find("last_bgsave_status:err") != std::string::npos;
      },
      "the save has failed");
  fixture.must_succeed({"CONFIG", "SET", "save", "3600 1"});
}

// The server loads its own keys again, slowly.
void load(ServerStateFixture& fixture)
{
  fixture.must_succeed({"DEBUG", "POPULATE", "20000", "ballast", "100"});
  fixture.must_succeed({"CONFIG", "SET", "loading-process-events-interval-bytes", "1024"});
  fixture.must_succeed({"CONFIG", "SET", "key-load-delay", "3000"});
  fixture.send_only({"DEBUG", "RELOAD"});
  await(fixture, "LOADING");
}

void finish_loading(ServerStateFixture& fixture)
{
  fixture.must_succeed({"CONFIG", "SET", "key-load-delay", "0"});
  await(fixture, "PONG");
}

void run_a_script(ServerStateFixture& fixture)
{
  fixture.must_succeed({"CONFIG", "SET", "lua-time-limit", "1"});
  fixture.send_only({"EVAL", "while true do end", "0"});
  await(fixture, "BUSY");
}

void end_the_script(ServerStateFixture& fixture)
{
  fixture.must_succeed({"SCRIPT", "KILL"});
  await(fixture, "PONG");
}

std::function<void(ServerStateFixture&)> saying(std::vector<Words> requests)
{
  return [all = std::move(requests)](ServerStateFixture& fixture) {
    for (const Words& words : all) {
      fixture.must_succeed(words);
    }
  };
}

std::function<void(ServerStateFixture&)> saying_and_cutting(std::vector<Words> requests)
{
  return [say = saying(std::move(requests))](ServerStateFixture& fixture) {
    say(fixture);
    fixture.cut_connections();
  };
}

const Words shop_user{"--user", "shop", "on", ">hunter2", "~*", "&*", "+@all"};
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
       "(give the password by --password-file, RLOCK_PASSWORD_FILE,"},
      {"another password", shop_user, "shop:hunter2@",
       saying_and_cutting({{"ACL", "SETUSER", "shop", "resetpass", ">other"}}),
       saying({{"ACL", "SETUSER", "shop", ">hunter2"}}), 77, "refused the user or password"},
      {"fewer rights", shop_user, "shop:hunter2@", saying({{"ACL", "SETUSER", "shop", "-evalsha", "-eval"}}),
       saying({{"ACL", "SETUSER", "shop", "+evalsha", "+eval"}}), 77, "(rlock acl prints the rules that a user needs)"},
      {"no scripts known", {}, "", saying({{"SCRIPT", "FLUSH"}}), saying({}), 0, "", true},
  };
  return states;
}

}  // namespace

ServerStateFixture::ServerStateFixture(const Words& args)
    : server({.args = args, .tcp = args == a_cluster}),  // the second port is derived from the first
      admin(connection_to(server))
{
  if (args == a_cluster) {
    must_succeed({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
    wait_until([&] { return !command({"GET", "k"}).is_error(); }, "the cluster is up");
  }
}

Reply ServerStateFixture::command(const Words& words)
{
  auto reply = admin.call(views(words), within(plenty));
  REQUIRE_MESSAGE(reply, words.front() << ": " << reply.error().text);
  return *std::move(reply);
}

void ServerStateFixture::must_succeed(const Words& words)
{
  const Reply reply = command(words);
  REQUIRE_MESSAGE(!reply.is_error(), words.front() << ": " << show(reply));
}

void ServerStateFixture::send_only(const Words& words)
{
  second.emplace(connection_to(server));
  REQUIRE(second->send(views(words), within(plenty)));
}

void ServerStateFixture::cut_connections()
{
  second.reset();
  command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  command({"CLIENT", "KILL", "TYPE", "pubsub"});
}

std::span<const ServerState> server_states() { return all(); }

}  // namespace rlock::test
