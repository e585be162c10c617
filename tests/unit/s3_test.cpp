// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_checks.h"
#include "stores/s3/s3_connection.h"
#include "stores/s3/s3_listener.h"
#include "stores/s3/s3_object.h"

#include "stores/s3/libcurl.h"
#include "support/limits.h"
#include "support/scripted_server.h"
#include "support/skip.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::s3;

namespace {

constexpr std::int64_t date_us = 1'795'927'909'000'000;

HttpAnswer http(long status, const std::string& code = "", const std::string& message = "")
{
  HttpAnswer answer;
  answer.status = status;
  answer.etag = "\"1\"";
  answer.body = code.empty() ? "" : "<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>";
  return answer;
}

// Answers one request; the session of any other token than the valid one is over.
void serve_session(const Peer& peer, char valid)
{
  std::string request;
  while (!has(request, "\r\n\r\n")) {
    const std::string more = peer.hear_some();
    if (more.empty()) {
      return;
    }
    request += more;
  }
  const bool is_over = !has(request, std::string("X-Amz-Security-Token: ") + valid);
  const std::string body = is_over ? http(400, "ExpiredToken").body : "";
  peer.say(std::string("HTTP/1.1 ") + (is_over ? "400 Bad Request" : "200 OK") +
           "\r\nDate: Sun, 29 Nov 2026 09:00:00 GMT\r\nETag: \"1\"\r\nConnection: close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body);
}

std::int64_t us(std::chrono::microseconds time) { return time.count(); }

}  // namespace

TEST_CASE("s3 errors: an answer to a condition is no error")
{
  struct Row {
    HttpAnswer answer;
    Answer::Kind kind;
  };
  for (const Row& row :
       {Row{http(200), Answer::Kind::done}, Row{http(204), Answer::Kind::done},
        Row{http(304), Answer::Kind::not_modified}, Row{http(404, "NoSuchKey"), Answer::Kind::not_there},
        Row{http(412, "PreconditionFailed"), Answer::Kind::condition_failed},
        Row{http(412), Answer::Kind::condition_failed},
        Row{http(409, "ConditionalRequestConflict"), Answer::Kind::condition_failed}}) {
    CAPTURE(row.answer.status);
    CHECK(must(answer_of(row.answer, "s3://b", date_us)).kind == row.kind);
  }
  CHECK(answer_of(http(200), "s3://b", 0).error().code == ErrorCode::config);  // without a Date
}

TEST_CASE("s3 errors: each has its exit code, its cause and what to do")
{
  struct Row {
    long status;
    const char* code;
    ErrorCode means;
    const char* advice;
  };
  for (const Row& row : {
           Row{404, "NoSuchBucket", ErrorCode::server_not_ready, "make the bucket"},
           Row{404, "", ErrorCode::config, "is this a store with the API of Amazon S3"},
           Row{301, "PermanentRedirect", ErrorCode::config, "?region="},
           Row{307, "", ErrorCode::config, "?region="},
           Row{400, "AuthorizationHeaderMalformed", ErrorCode::config, "?region="},
           Row{403, "SignatureDoesNotMatch", ErrorCode::refused, "secret"},
           Row{403, "InvalidAccessKeyId", ErrorCode::refused, "access key"},
           Row{403, "AccessDenied", ErrorCode::refused, "rlock acl"},
           Row{403, "", ErrorCode::refused, "secret"},
           Row{400, "ExpiredToken", ErrorCode::refused, "new credentials"},
           Row{403, "RequestTimeTooSkewed", ErrorCode::server_not_ready, "clock"},
           Row{400, "KeyTooLongError", ErrorCode::config, "shorter"},
           Row{501, "NotImplemented", ErrorCode::config, "keeps no locks"},
           Row{500, "InternalError", ErrorCode::unreachable, "later"},
           Row{503, "SlowDown", ErrorCode::unreachable, "later"},
           Row{502, "", ErrorCode::unreachable, "HTTP status 502"},
           Row{400, "SomethingNew", ErrorCode::config, "SomethingNew"},
       }) {
    CAPTURE(row.status);
    CAPTURE(row.code);
    const auto answer = answer_of(http(row.status, row.code, "why\n"), "s3://b", date_us);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == row.means);
    CHECK(answer.error().was_there == (row.means == ErrorCode::unreachable));
    CHECK_MESSAGE(has(answer.error().text, row.advice), answer.error().text);
    CHECK_FALSE(has(answer.error().text, "\n"));
  }
  HttpAnswer elsewhere = http(301, "PermanentRedirect");
  elsewhere.region = "eu-west-1";
  CHECK(has(answer_of(elsewhere, "s3://b", date_us).error().text, "the bucket is in eu-west-1"));
}

TEST_CASE(
    "s3 errors: a session that is over is followed by the next one in the shared files, and is an error without it")
{
  skip_if(!libcurl(), "no libcurl");
  std::atomic<char> valid = '1';
  char shared = '1';
  const ScriptedServer server([&valid](const Peer& peer) { serve_session(peer, valid); }, rlock::Endpoint::Kind::tcp);
  const std::string url = "s3://bucket?endpoint=http://127.0.0.1:" + std::to_string(server.endpoint().port);
  rlock::s3::Connection connection(
      connection_spec(must(parse_s3_url(url))), real_clock,
      {.variable = [](const char*) { return std::string(); },
       .file =
           [&shared](const std::string&) {
             return "[default]\naws_access_key_id=A\naws_secret_access_key=S\naws_session_token=" +
                    std::string(1, shared) + "\n";
           }});
  const auto ask = [&] { return connection.ask({.key = "k"}, soon()); };
  CHECK(ask());
  valid = shared = '2';
  CHECK(ask());
  valid = '3';
  const auto refused = ask();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::refused);
}

TEST_CASE("s3 object: what is written is read, whatever the bytes, and no two writes are the same")
{
  const std::string bytes("a:1\n\0\xff", 6);
  LockObject object;
  object.time_us = 7;
  object.record = bytes;
  object.face = {.holder = bytes, .until_us = 8};
  object.events = {{3, "e"}, {4, bytes}};
  object.listeners = {{.id = "l", .seen_us = 5, .channels = {"c", bytes}}, {.id = "m", .seen_us = 6, .channels = {}}};
  object.messages = {{.id = "x", .at_us = 9, .message = {.channel = bytes, .text = "go"}}};
  const std::string all = bytes_of(object, 1);
  CHECK(all != bytes_of(object, 2));
  const auto read = object_in(all);
  REQUIRE(read);
  CHECK(bytes_of(*read, 1) == all);
  CHECK(read->listeners.at(0).channels.at(1) == bytes);
  CHECK(read->events.at(4) == bytes);
  for (std::size_t size = 0; size < all.size(); ++size) {
    const auto cut = object_in(all.substr(0, size));  // whole where a field ends
    CHECK((!cut || bytes_of(*cut, 1) != all));
  }
  for (const char* foreign :
       {"", "hello", "rlock 2\nT1:0", "rlock 1\nZ1:0", "rlock 1\ns1:0", "rlock 1\nT99999999999999999999:0"}) {
    CHECK_FALSE(object_in(foreign));
  }
}

TEST_CASE("s3 object: a commit changes the log, tells listeners, and forgets those that are silent and what is old")
{
  SystemRng rng;
  LockObject object;
  object.time_us = us(100s);
  object.events = {{1, "a"}, {2, "b"}, {3, "c"}};
  object.listeners = {{.id = "dead", .seen_us = us(100s), .channels = {"d"}},
                      {.id = "alive", .seen_us = us(150s), .channels = {"c", "a"}}};
  object.messages = {{.id = "old", .at_us = us(100s), .message = {}},
                     {.id = "young", .at_us = us(150s), .message = {}}};
  const rlock::record::LogChange log{.written = {{4, "d"}}, .first_kept = 2, .last_kept = 2};
  const std::vector<rlock::Message> sent{{.channel = "c", .text = "go"}};
  CHECK(living_channels(object, us(161s)) == std::vector<std::string>{"a", "c"});
  apply({.bytes = "new", .face = {.holder = "h"}, .log = log, .messages = sent}, us(161s), object, rng);
  CHECK(object.time_us == us(161s));
  CHECK(object.record == "new");
  CHECK(object.face.holder == "h");
  CHECK(object.events == std::map<std::int64_t, std::string>{{2, "b"}, {4, "d"}});
  REQUIRE(object.listeners.size() == 1);
  CHECK(object.listeners.front().id == "alive");
  REQUIRE(object.messages.size() == 2);
  CHECK(object.messages.front().id == "young");
  CHECK(object.messages.back().message.text == "go");
  apply({.bytes = "", .face = {}, .log = {}, .messages = {}}, us(50s), object, rng);
  CHECK(object.time_us == us(161s));  // a host whose clock is behind
}

TEST_CASE("s3 checks: the dates of answers prove how far clocks are apart, and no more")
{
  struct Row {
    const char* what;
    std::vector<DateSample> samples;
    Millis apart;
  };
  for (const Row& row : {
           Row{"none", {}, 0ms},
           Row{"one clock, across a second", {{1900ms, 1950ms, 1000ms}, {2010ms, 2030ms, 2000ms}}, 0ms},
           Row{"one clock, the request crosses the second", {{1900ms, 2100ms, 2000ms}, {1990ms, 2990ms, 2000ms}}, 0ms},
           Row{"another host, ahead", {{1000ms, 1000ms, 1000ms}, {1000ms, 1000ms, 5000ms}}, 3000ms},
           Row{"another host, behind", {{10'000ms, 10'100ms, 10'000ms}, {10'200ms, 10'300ms, 5000ms}}, 4100ms},
       }) {
    CAPTURE(row.what);
    CHECK(least_difference(row.samples) == row.apart);
  }
}

TEST_CASE("s3 checks: what makes a store unfit is found")
{
  CheckedFacts good;
  good.uses_tls = true;
  good.clock_skew = 2s;
  good.clock_difference = 2s;
  for (const rlock::Finding& each : findings_of(good)) {
    CHECK_MESSAGE(each.status == rlock::CheckStatus::ok, std::string(each.check) << ": " << each.found);
  }
  struct Row {
    const char* check;
    rlock::CheckStatus status;
    void (*change)(CheckedFacts&);
  };
  constexpr auto fails = rlock::CheckStatus::fail;
  for (const Row& row :
       {Row{"conditions", fails, [](CheckedFacts& facts) { facts.wrong_conditions = "it ignores If-Match"; }},
        Row{"dates", fails, [](CheckedFacts& facts) { facts.clock_difference = 2001ms; }},
        Row{"encryption", rlock::CheckStatus::warn, [](CheckedFacts& facts) { facts.uses_tls = false; }}}) {
    CheckedFacts facts = good;
    row.change(facts);
    const auto all = findings_of(facts);
    const auto found = std::ranges::find(all, std::string_view(row.check), &rlock::Finding::check);
    REQUIRE(found != all.end());
    CHECK(found->status == row.status);
  }
}

TEST_CASE("s3 listener: a waiter looks often enough for a claim, a holder without waiters more rarely")
{
  CHECK(pause_between_looks(false) <= rlock::handover_confirmation / 2);
  CHECK(pause_between_looks(true) > pause_between_looks(false));
}
