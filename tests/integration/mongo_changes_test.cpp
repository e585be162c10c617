// SPDX-License-Identifier: Apache-2.0
// A change stream wakes a listener in a replica set of MongoDB; where there is none, or it fails, the listener looks by itself. The
// server is a script (support/scripted_mongo.h), or one on which a test runs jobs (mongojava).
#include "store/mongo/mongo_backend.h"
#include "store/mongo/mongo_pauses.h"
#include "store/mongo/mongo_url.h"
#include "support/integration.h"
#include "support/mongo_fixture.h"
#include "support/scripted_mongo.h"
#include "support/test.h"

#include <poll.h>

using namespace rlock::test;

namespace {

// A listener of the lock "k" on the channel "mine".
class Ear {
 public:
  explicit Ear(const ScriptedMongo& server) : Ear(server.url()) {}
  explicit Ear(const std::string& url)
  {
    const auto endpoint = mongo::parse_mongo_url(url);
    REQUIRE(endpoint);
    const auto backend =
        mongo::open_backend(mongo::connection_spec(*endpoint), real_clock, std::make_unique<SystemRng>());
    auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, within(plenty));
    REQUIRE_MESSAGE(source, source.error().text);
    m_source = *std::move(source);
  }

  // The next message; empty: none came within the time.
  std::string hear(Millis time)
  {
    const auto heard = m_source->next(within(time));
    REQUIRE_MESSAGE(heard, heard.error().text);
    return *heard ? (*heard)->text : "";
  }
  void listen_until(const std::function<bool()>& holds, const std::string& what)
  {
    wait_until([&] { return !hear(10ms).empty() || holds(); }, what);
  }
  [[nodiscard]] int fd() const { return m_source->fd(); }

 private:
  std::unique_ptr<MessageSource> m_source;
};

Millis since(Instant start) { return std::chrono::duration_cast<Millis>(real_clock.now() - start); }

// Sends a message, and returns how long the listener took to hear it.
Millis time_to_hear(ScriptedMongo& server, Ear& ear, const std::string& text)
{
  const Instant start = real_clock.now();
  server.send(text);
  CHECK(ear.hear(plenty) == text);
  return since(start);
}

}  // namespace

TEST_CASE("mongo changes: a change wakes the listener, which looks once a second otherwise")
{
  need_libmongoc();
  ScriptedMongo server;
  Ear ear(server);
  ear.listen_until([&] { return server.waits() > 0; }, "the stream is open");
  CHECK(ear.hear(20ms).empty());
  const int looks = server.looks();
  const Instant start = real_clock.now();
  constexpr int rounds = 10;
  for (int i = 1; i <= rounds; ++i) {
    server.send(std::to_string(i));
    server.report_change();
    pollfd wait{.fd = ear.fd(), .events = POLLIN, .revents = 0};
    CHECK(::poll(&wait, 1, static_cast<int>(plenty.count())) == 1);
    CHECK(ear.hear(plenty) == std::to_string(i));
  }
  const Millis time = since(start);
  MESSAGE("a message was heard after " << time.count() / rounds << " ms");
  CHECK(time < rounds * mongo::longest_pause / 2);  // without the stream each round takes a whole pause
  CHECK(server.looks() <= looks + rounds + 1 + time / mongo::longest_pause);
  // The stream was not given up for messages of which it did not tell.
  const int waits = server.waits();
  server.report_change();
  ear.listen_until([&] { return server.waits() > waits; }, "the stream goes on");
  CHECK(server.openings() == 1);
}

TEST_CASE("mongo changes: the listeners of processes that are over do not keep one from a stream, and are no company")
{
  need_libmongoc();
  ScriptedMongo server({.silent_listeners = 10});
  Ear ear(server);
  ear.listen_until([&] { return server.waits() > 0; }, "the stream is open");
  ScriptedMongo quiet({.has_other_listener = false, .silent_listeners = 1});
  Ear alone(quiet);
  CHECK(alone.hear(3 * mongo::listening_before_stream).empty());
  CHECK(quiet.openings() == 0);
}

TEST_CASE("mongo changes: a listener that is alone, or only just there, opens no stream")
{
  need_libmongoc();
  {
    ScriptedMongo server({.has_other_listener = false});
    Ear ear(server);
    CHECK(ear.hear(3 * mongo::listening_before_stream).empty());
    CHECK(server.openings() == 0);
  }
  ScriptedMongo server;
  const Instant start = real_clock.now();
  Ear ear(server);
  ear.listen_until([&] { return server.looks() > 2; }, "it has looked");
  if (since(start) < mongo::listening_before_stream) {
    CHECK(server.openings() == 0);
  }
}

TEST_CASE("mongo changes: a server that refuses the stream is asked once, and the listener looks by itself")
{
  need_libmongoc();
  // Unauthorized, CommandNotFound, Location40573: only in replica sets, Location40324: no such stage; and a cursor that is over at once
  for (const std::int32_t code : {13, 59, 40573, 40324, 0}) {
    CAPTURE(code);
    ScriptedMongo server({.opening = [&](const std::string& request) {
      return code == 0 ? cursor_answer(request, "firstBatch", {}, 0) : refusal(request, code);
    }});
    Ear ear(server);
    ear.listen_until([&] { return server.openings() > 0; }, "it has asked for a stream");
    for (int i = 1; i <= 4; ++i) {
      CHECK(time_to_hear(server, ear, std::to_string(i)) < mongo::longest_pause);
    }
    CHECK(server.openings() == 1);
    CHECK(server.waits() == 0);
  }
}

TEST_CASE("mongo changes: a stream that ends is opened again, and the listener looks by itself meanwhile")
{
  need_libmongoc();
  std::atomic<int> answered = 0;
  struct Row {
    const char* name;
    std::function<std::string(const std::string&)> first_answer;
  };
  const Row rows[]{
      {"CursorNotFound", [](const std::string& request) { return refusal(request, 43); }},
      {"the connection closes", [](const std::string&) { return std::string(); }},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    answered = 0;
    ScriptedMongo* server_of = nullptr;
    ScriptedMongo server({.more = [&](const std::string& request, const Peer& peer) {
      return answered++ == 0 ? row.first_answer(request) : server_of->answer_at_change(request, peer);
    }});
    server_of = &server;
    Ear ear(server);
    ear.listen_until([&] { return server.waits() > 0; }, "the first stream is there");
    for (int i = 1; i <= 4; ++i) {
      CHECK(time_to_hear(server, ear, std::to_string(i)) < mongo::longest_pause);
    }
    CHECK(server.openings() == 1);
    ear.listen_until([&] { return server.waits() > 1; }, "there is another stream");
    CHECK(server.openings() == 2);
  }
}

TEST_CASE(
    "mongo changes: when the stream is silent, the listener finds a message in time, and then gives the stream up")
{
  need_libmongoc();
  ScriptedMongo server;
  Ear ear(server);
  ear.listen_until([&] { return server.waits() > 0; }, "the stream is open");
  CHECK(time_to_hear(server, ear, "found") < handover_confirmation);
  const int looks = server.looks();
  ear.listen_until([&] { return server.looks() > looks; }, "the next look");
  for (int i = 1; i <= 4; ++i) {
    CHECK(time_to_hear(server, ear, std::to_string(i)) < mongo::longest_pause);
  }
  CHECK(server.openings() == 1);
}

TEST_CASE("mongo changes: nonsense in place of the stream ends it, and the listener looks by itself")
{
  need_libmongoc();
  const auto with_size = [](std::string message, std::uint32_t size) {
    for (std::size_t i = 0; i < 4; ++i) {
      message[i] = static_cast<char>(size >> 8 * i & 0xFFU);
    }
    return message;
  };
  const auto of = [](const std::string& request, const Document& document) {
    return message_for(request, document.bytes());
  };
  struct Row {
    const char* name;
    std::function<std::string(const std::string&)> answer;
  };
  const Row rows[]{
      {"it hangs up", [](const std::string&) { return std::string(); }},
      {"not MongoDB",
       [](const std::string&) { return std::string("HTTP/1.1 400 Bad Request\r\n\r\n it is no MongoDB"); }},
      {"a huge answer", [&](const std::string& request) { return with_size(refusal(request, 1), 0x7fffffff); }},
      {"an answer of no length", [&](const std::string& request) { return with_size(refusal(request, 1), 0); }},
      {"an answer that is too short", [&](const std::string& request) { return with_size(refusal(request, 1), 22); }},
      {"the answer to something else",
       [](const std::string& request) { return refusal("xxxx" + std::string("none") + request, 1); }},
      {"another kind of message", [](const std::string& request) { return reply_to(request, Document().bytes()); }},
      {"an empty document", [&](const std::string& request) { return of(request, Document()); }},
      {"no document", [](const std::string& request) { return message_for(request, ""); }},
      {"bytes instead of a document",
       [](const std::string& request) { return message_for(request, std::string(64, '\xff')); }},
      {"a text as the cursor",
       [&](const std::string& request) { return of(request, Document().add_small("ok", 1).add("cursor", "x")); }},
      {"a text as the number of the cursor",
       [&](const std::string& request) {
         return of(request, Document().add_small("ok", 1).add("cursor", Document().add("id", "7")));
       }},
      {"two answers",
       [](const std::string& request) {
         const std::string one = cursor_answer(request, "nextBatch", {}, 7);
         return one + one;
       }},
      {"no change and no wait", [](const std::string& request) { return cursor_answer(request, "nextBatch", {}, 7); }},
      {"a text as the changes",
       [&](const std::string& request) {
         return of(request, Document().add_small("ok", 1).add(
                                "cursor", Document().add("id", std::int64_t{7}).add("nextBatch", "x")));
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    ScriptedMongo server({.more = [&](const std::string& request, const Peer&) { return row.answer(request); }});
    Ear ear(server);
    ear.listen_until([&] { return server.waits() > 0; }, "the stream is asked for changes");
    // The stream ends within the first two messages.
    for (int i = 1; i <= 6; ++i) {
      const Millis time = time_to_hear(server, ear, std::to_string(i));
      CHECK(time < (i <= 2 ? handover_confirmation : mongo::longest_pause));
    }
    CHECK(server.openings() == 1);
    CHECK(server.waits() <= 25);
  }
}

TEST_CASE("mongo changes: in a replica set a message wakes the listener to which it is sent, also with TLS")
{
  MongoOptions options{.has_change_streams = true};
  SUBCASE("without TLS") {}
  SUBCASE("with TLS") { options.certificate = Authority().sign("IP:127.0.0.1"); }
  const MongoServer server(options);
  const auto backend = server.open_backend(real_clock);
  const auto write = [&](const std::vector<Message>& messages) {
    const auto state = backend->read("k", within(plenty));
    REQUIRE(state);
    const auto commit = backend->write_if("k", state->version,
                                          {.bytes = "x", .face = {}, .log = {}, .messages = messages}, within(plenty));
    REQUIRE(commit);
    REQUIRE(std::holds_alternative<record::Committed>(*commit));
  };
  write({});
  Ear ear(server.url());
  const auto other = backend->listen(std::array{LockChannel{"k", "other"}}, within(plenty));
  REQUIRE(other);
  ear.listen_until([&] { return server.change_streams_waiting() == 1; }, "the stream waits");
  constexpr int rounds = 10;
  const Instant start = real_clock.now();
  for (int i = 1; i <= rounds; ++i) {
    write({{"mine", std::to_string(i)}});
    CHECK(ear.hear(plenty) == std::to_string(i));
  }
  const Millis time = since(start);
  MESSAGE("a message was heard after " << time.count() / rounds << " ms");
  CHECK(time < rounds * mongo::longest_pause / 2);
  // The stream was not given up for messages of which it did not tell.
  ear.listen_until([&] { return server.change_streams_waiting() == 1; }, "the stream goes on");
  CHECK(server.change_streams_opened() == 1);
}

TEST_CASE("mongo changes: in a replica set the runs of a line get the lock one after the other")
{
  const MongoServer server({.has_change_streams = true});
  CHECK(has(run_rlock({"doctor", "-S", server.url()}).out, "ok       messages      a change stream wakes a waiter"));
  const auto order = home_dir() / "order";
  const auto go = home_dir() / "go";
  std::vector<Process> runs;
  for (int i = 1; i <= 5; ++i) {
    const std::string line = "echo " + std::to_string(i) + " >> " + order.string() + "; until [ -e " + go.string() +
                             " ]; do sleep 0.02; done";
    runs.push_back(start_rlock({"run", "-S", server.url(), "-k", "k", "--", "sh", "-c", line}));
    const std::string state = i == 1 ? "\"held\":true" : "\"place\":" + std::to_string(i - 1);
    wait_until(
        [&] {
          return has(run_rlock({"status", "-S", server.url(), "--json", "k"}).out, state);
        },
        "it is in line");
  }
  wait_until([&] { return server.change_streams_waiting() >= 3; }, "those in front have streams");
  std::ofstream(go).flush();
  expect_ends(runs);
  CHECK(text_of(order) == "1\n2\n3\n4\n5\n");
}

TEST_CASE("mongo changes: a stream that tells of changes all the time does not keep the listener from answering")
{
  need_libmongoc();
  ScriptedMongo server({.more = [](const std::string& request, const Peer&) {
    std::vector<Document> changes(1);
    changes.front().add("_id", "x");
    return cursor_answer(request, "nextBatch", changes, 7);
  }});
  Ear ear(server);
  ear.listen_until([&] { return server.waits() > 100; }, "there are many changes");
  CHECK(ear.hear(0ms).empty());
  CHECK(time_to_hear(server, ear, "1") < mongo::longest_pause);
}
