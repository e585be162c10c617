// SPDX-License-Identifier: Apache-2.0
// A malicious node of a cluster, sentinel or TLS server.
#include "support/clean_text.h"
#include "support/hostile_server.h"
#include "support/integration.h"
#include "support/refusal.h"

using namespace rlock::test;
using namespace std::string_literals;

namespace {

const std::vector<Words> three{{"run", "-k", "k", "--", "echo", "ran"}, {"status", "k"}, {"events", "k"}};

// Ends within the time for one request and some more, with this code and one line; no job ran.
void check_each_refused(const std::string& url, int code, const std::string& says,
                        const std::vector<Words>& verbs = three)
{
  for (const Words& words : verbs) {
    CAPTURE(words.front());
    Words all = words;
    all.insert(all.begin() + 1, {"-S", url, "--server-timeout", "1s"});
    Process rlock = start_rlock(all);
    const Exit exit = rlock.wait(10s);
    check_refused({.code = exit.code, .signal = exit.signal, .out = rlock.out(), .err = rlock.err()}, code, says);
  }
}

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

std::string array(const std::vector<std::string>& parts)
{
  std::string all = "*" + std::to_string(parts.size()) + "\r\n";
  for (const std::string& part : parts) {
    all += part;
  }
  return all;
}

std::string url_of(const std::string& scheme, const HostileServer& server)
{
  return scheme + "://127.0.0.1:" + std::to_string(server.port());
}

}  // namespace

TEST_CASE("hostile: a cluster that redirects in circles")
{
  for (const std::string word : {"MOVED", "ASK"}) {
    CAPTURE(word);
    const HostileServer server([&](std::uint16_t port) {
      const std::string here = "127.0.0.1:" + std::to_string(port);
      const std::string slots =
          "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(port) + "\r\n";
      return answers_by_word({{.word = "SLOTS", .reply = slots},
                              {.word = "EVALSHA", .reply = "-" + word + " 7629 " + here + "\r\n"},
                              {.word = "", .reply = "-" + word + " 7629 " + here + "\r\n"}});
    });
    check_each_refused(url_of("redis+cluster", server), 69, "127.0.0.1");
  }
}

TEST_CASE("hostile: a cluster whose map makes no sense")
{
  const std::string maps[] = {
      "*1\r\n*3\r\n:-1\r\n:99999999\r\n*2\r\n$4\r\n\x1b[2J\r\n:70000\r\n",
      "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$5\r\n\x1b[2J\n\r\n:1\r\n",
      "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n" + bulk(std::string(100'000, 'a')) + ":1\r\n",
      ":1\r\n",
      "*3\r\n*0\r\n*-1\r\n+x\r\n",
  };
  for (const std::string& map : maps) {
    CAPTURE(map.substr(0, 40));
    const HostileServer server([&](std::uint16_t) {
      return answers_by_word({{.word = "SLOTS", .reply = map}, {.word = "", .reply = "-\x1b[2J\xff\r\n"}});
    });
    for (const Words& words : {Words{"run", "-k", "k", "--", "echo", "ran"}, Words{"list"}}) {
      Words all = words;
      all.insert(all.begin() + 1, {"-S", url_of("redis+cluster", server), "--server-timeout", "1s"});
      Process rlock = start_rlock(all);
      const Exit exit = rlock.wait(10s);
      CHECK_MESSAGE((exit.code >= 69 && exit.code <= 78), rlock.err());
      CHECK_MESSAGE(is_clean(rlock.out() + rlock.err()), rlock.err());
      CHECK_FALSE(has(rlock.out(), "ran"));
      CHECK(rlock.err().size() < 2000);
    }
  }
}

TEST_CASE("hostile: a sentinel that names an absurd address")
{
  struct Row {
    std::string host;
    std::string port;
    const char* says;
  };
  const Row rows[] = {
      {"127.0.0.1", "1", "refused"},
      {"127.0.0.1", "0", "know no master"},
      {"127.0.0.1", "99999", "know no master"},
      {"", "6379", "know no master"},
      {"\x1b[2J", "6379", "know no master"},
      {"a\nb", "6379", "know no master"},
      {std::string(100'000, 'a'), "6379", "know no master"},
      {"999.1.1.1\xff", "6379", "know no master"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.host.substr(0, 20));
    const HostileServer sentinel([&](std::uint16_t) {
      return answers_by_word({{.word = "GET-MASTER", .reply = array({bulk(row.host), bulk(row.port)}) + "*0\r\n"},
                              {.word = "", .reply = "-ERR no such thing\r\n"}});
    });
    const bool is_refused = row.port == "1";
    check_each_refused(url_of("redis+sentinel", sentinel) + "/mymaster", is_refused ? 69 : 78, row.says);
  }
}

TEST_CASE("hostile: TLS that is none, half of it, or no end of it")
{
  const Behavior scripts[] = {
      says_for_ever("", "\x16\x03\x03\x40\x00"s),
      says("\x16\x03\x03\x00\x7a\x02"s),
      says_for_ever("", "+OK\r\n"),
  };
  for (const Behavior& script : scripts) {
    const HostileServer server(script, Endpoint::Kind::tcp);
    check_each_refused(url_of("rediss", server), 69, "127.0.0.1", {three.front()});
  }
}
