// SPDX-License-Identifier: Apache-2.0
// Servers that claim to be MongoDB: they say nothing, say nonsense, or say what they are, and rlock keeps no locks there.
#include "support/deaf_port.h"
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/mongo_fixture.h"
#include "support/scripted_mongo.h"

#include "stores/mongo/mongo_document.h"

using namespace rlock::test;
using rlock::mongo::Document;

namespace {

Finished run_at(std::uint16_t port)
{
  const std::string url = "mongodb://127.0.0.1:" + std::to_string(port) + "/app";
  return run_rlock({"run", "-S", url, "-k", "k", "--server-timeout", "1s", "--", "true"});
}

Behavior says_hello(const Document& hello)
{
  return [document = hello.bytes()](const Peer& peer) {
    for (std::string request = peer.hear_some(); request.size() >= 16; request = peer.hear_some()) {
      peer.say(reply_to(request, document));
    }
  };
}

// Refuses each command but hello. `hello` must outlive the script, and may be filled until a client comes.
Behavior refuses(const std::string& hello, std::int32_t code)
{
  const std::string refusal =
      Document().add_small("ok", 0).add("errmsg", "nothing goes").add_small("code", code).bytes();
  return [&hello, refusal](const Peer& peer) {
    for (std::string request = peer.hear_some(); request.size() >= 16; request = peer.hear_some()) {
      const bool is_message = request.substr(12, 2) == "\xdd\x07";
      const bool is_hello = !is_message || request.find("hello") != std::string::npos;
      const std::string& answer = is_hello ? hello : refusal;
      peer.say(is_message ? message_for(request, answer) : reply_to(request, answer));
    }
  };
}

}  // namespace

TEST_CASE("mongo hostile: a server that says nothing, hangs up or says nonsense is 69 within the time")
{
  need_libmongoc();
  struct Row {
    const char* name;
    Behavior script;
  };
  const std::string huge("\xff\xff\xff\x7f", 4);
  const Row rows[]{
      {"nothing", says("")},
      {"nonsense", answers_with("HTTP/1.1 400 Bad Request\r\n\r\nthis is no MongoDB, and the answer is long enough")},
      {"nonsense at once", says(std::string(4096, '\xff'))},
      {"a message without an end", answers_with(huge + std::string(64, '\0'))},
      {"drips", drips(std::string(1000, '\x20'))},
      {"hangs up", [](const Peer& peer) { [[maybe_unused]] const auto request = peer.hear_some(); }},
      {"a document that is none",
       [](const Peer& peer) {
         peer.say(reply_to(peer.hear_some(), std::string("\x10\x00\x00\x00\x02\xff\xff\xff\xff", 9)));
       }},
      {"an empty document", says_hello(Document())},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    const HostileServer server(row.script, Endpoint::Kind::tcp);
    const auto start = std::chrono::steady_clock::now();
    const Finished run = run_at(server.port());
    CHECK_MESSAGE(run.code == 69, run.err);
    CHECK(std::chrono::steady_clock::now() - start < 8s);
  }
}

TEST_CASE("mongo hostile: what is no fit server says so")
{
  need_libmongoc();
  struct Row {
    Document document;
    int code;
    const char* why;
  };
  Document mongos = mongo_hello(17, true);
  mongos.add("msg", "isdbgrid");
  Row rows[]{{std::move(mongos), 78, "mongos"},
             {mongo_hello(8, true), 69, "MongoDB 4.4 or later"},
             {mongo_hello(2, true), 69, "MongoDB"},
             {mongo_hello(17, true), 70, "does not tell its time"}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.why));
    const HostileServer server(says_hello(row.document), Endpoint::Kind::tcp);
    expect_end(run_at(server.port()), row.code, {err_has(row.why)});
  }
}

TEST_CASE("mongo hostile: an error that will pass, or that does not tell what was done, is 69")
{
  need_libmongoc();
  const std::string fit = mongo_hello(17, true).add_time("localTime", 1'700'000'000'000).bytes();
  // InternalError (FerretDB: the time of the request is over), HostUnreachable, NetworkTimeout, WriteConflict,
  // ReadConcernMajorityNotAvailableYet, ExceededTimeLimit, SocketException, Interrupted, ShutdownInProgress, PrimarySteppedDown,
  // InterruptedAtShutdown, InterruptedDueToReplStateChange; and FailedToParse, which rlock does not know
  for (const std::int32_t code : {9, 1, 6, 89, 91, 112, 134, 189, 262, 9001, 11600, 11601, 11602}) {
    CAPTURE(code);
    const HostileServer server(refuses(fit, code), Endpoint::Kind::tcp);
    expect_end(run_at(server.port()), 69, {err_has("nothing goes")});
  }
}

TEST_CASE("mongo hostile: a member of the replica set whose host is off does not hide the primary server")
{
  need_libmongoc();
  const DeafPort off;
  std::string primary;
  constexpr std::int32_t write_conflict = 112;
  const HostileServer server(refuses(primary, write_conflict), Endpoint::Kind::tcp);
  const std::string there = "127.0.0.1:" + std::to_string(server.port());
  const std::string away = "127.0.0.1:" + std::to_string(off.port());
  primary = mongo_hello(17, true)
                .add_time("localTime", 1'700'000'000'000)
                .add("setName", "rs0")
                .add_small("setVersion", 1)
                .add("hosts", std::vector<std::string>{there, away})
                .add("me", there)
                .bytes();
  for (const std::string& hosts : {there + "," + away, away + "," + there, there}) {
    CAPTURE(hosts);
    const std::string url = "mongodb://" + hosts + "/app?replicaSet=rs0";
    expect_end(run_rlock({"run", "-S", url, "-k", "k", "--server-timeout", "2s", "--", "true"}), 69,
               {err_has("nothing goes")});
  }
}

TEST_CASE("mongo hostile: no server is 69, and a parameter that libmongoc does not know is 64")
{
  need_libmongoc();
  expect_end(run_at(1), 69, {err_has("connection refused")});
  expect_end(run_rlock({"run", "-S", "mongodb://bob:hunter2@db/x?colour=blue", "-k", "k", "--", "true"}), 64,
             {err_has("colour"), err_lacks("hunter2")});
  CHECK(run_rlock({"run", "--sync", "1", "-S", "mongodb://db/x", "-k", "k", "--", "true"}).code == 64);
}

TEST_CASE("mongo hostile: a server that does not answer to TLS is told from one that is slow")
{
  need_libmongoc();
  const HostileServer silent([](std::uint16_t) { return says(""); });
  expect_end(run_rlock({"run", "-S", "mongodb://127.0.0.1:" + std::to_string(silent.port()) + "/app?tls=true", "-k",
                        "k", "--server-timeout", "1s", "--", "true"}),
             69, {err_has("see that the server has TLS")});
}
