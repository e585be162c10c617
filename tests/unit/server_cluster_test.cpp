// SPDX-License-Identifier: Apache-2.0
// A cluster whose nodes reply what the test says. Over 300 lines: every case needs the scripted nodes.
#include "redis/cluster.h"

#include "redis/slot_map.h"
#include "support/scripted_server.h"
#include "support/test.h"
#include "support/wait_until.h"

#include <array>
#include <mutex>

using namespace rlock::test;

namespace {

using Words = std::vector<std::string>;

std::string line_from(const Peer& peer)
{
  std::string line;
  for (std::string c = peer.hear(1); !c.empty() && c != "\n"; c = peer.hear(1)) {
    line += c;
  }
  return line;
}

// Empty when the client has hung up.
Words request_from(const Peer& peer)
{
  Words words;
  const std::string count = line_from(peer);
  for (int left = count.empty() ? 0 : std::stoi(count.substr(1)); left > 0; --left) {
    const auto size = static_cast<std::size_t>(std::stoi(line_from(peer).substr(1)));
    words.push_back(peer.hear(size + 2).substr(0, size));
  }
  return words;
}

// Replies to each request with the function's result, and hangs up where that is nothing.
class Node {
 public:
  explicit Node(std::function<std::string(const std::string&)> answer)
      : m_answer(std::move(answer)), m_server([this](const Peer& peer) { serve(peer); }, Endpoint::Kind::tcp)
  {
  }

  [[nodiscard]] int port() const { return m_server.endpoint().port; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  Words heard()  // without requests for the map
  {
    const std::lock_guard guard(m_mutex);
    return m_heard;
  }

 private:
  void serve(const Peer& peer)
  {
    for (Words words = request_from(peer); !words.empty(); words = request_from(peer)) {
      std::string said;
      for (const std::string& word : words) {
        said += (said.empty() ? "" : " ") + word;
      }
      if (said != "CLUSTER SLOTS") {
        const std::lock_guard guard(m_mutex);
        m_heard.push_back(said);
      }
      const std::string answer = m_answer(said);
      if (answer.empty() || !peer.say(answer)) {
        return;
      }
    }
  }

  std::function<std::string(const std::string&)> m_answer;
  std::mutex m_mutex;
  Words m_heard;
  ScriptedServer m_server;
};

std::string range(int first, int last, int port)
{
  return "*3\r\n:" + std::to_string(first) + "\r\n:" + std::to_string(last) +
         "\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(port) + "\r\n";
}

std::string all_at(int port) { return "*1\r\n" + range(0, 16383, port); }
std::string moved_to(const std::string& address)
{
  return "-MOVED " + std::to_string(slot_of("k")) + " " + address + "\r\n";
}

Cluster cluster_of(std::vector<int> ports)
{
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::cluster;
  for (const int port : ports) {
    endpoint.nodes.push_back({"127.0.0.1", static_cast<std::uint16_t>(port)});
  }
  return {endpoint, real_clock};
}

constexpr std::array<std::string_view, 2> get{"GET", "k"};

std::string ask(Cluster& cluster, Millis time = plenty)
{
  const auto reply = cluster.call("k", get, within(time));
  return reply ? std::to_string(reply->integer) : reply.error().text;
}

int closed_port()
{
  const ScriptedServer gone([](const Peer&) {}, Endpoint::Kind::tcp);
  return gone.endpoint().port;
}

}  // namespace

TEST_CASE("cluster: the owner of a slot is asked for once, then remembered")
{
  Node owner([](const std::string&) { return ":7\r\n"; });
  Node seed(
      [&](const std::string& said) { return said == "CLUSTER SLOTS" ? all_at(owner.port()) : "-ERR not me\r\n"; });
  Cluster cluster = cluster_of({seed.port()});
  CHECK(ask(cluster) == "7");
  CHECK(ask(cluster) == "7");
  CHECK(seed.heard().empty());
  CHECK(owner.heard() == Words{"GET k", "GET k"});
}

TEST_CASE("cluster: MOVED is followed and remembered, also without a host and where the map is not told")
{
  for (const char* how : {"all", "no host", "no map"}) {
    CAPTURE(how);
    const std::string kind = how;
    Node owner([](const std::string&) { return ":7\r\n"; });
    Node seed([&](const std::string& said) {
      if (said == "CLUSTER SLOTS") {
        return kind == "no map" ? "-NOPERM this user has no permissions to run the 'cluster|slots' command\r\n"
                                : all_at(seed.port());
      }
      return moved_to(kind == "no host" ? ":" + std::to_string(owner.port()) : owner.address());
    });
    Cluster cluster = cluster_of({seed.port()});
    CHECK(ask(cluster) == "7");
    CHECK(ask(cluster) == "7");
    CHECK(seed.heard().size() == 1);
    CHECK(owner.heard().size() == 2);
  }
}

TEST_CASE("cluster: ASK is followed once, with ASKING, and not remembered")
{
  Node newcomer([](const std::string& said) { return said == "ASKING" ? "+OK\r\n" : ":7\r\n"; });
  Node owner([&](const std::string& said) {
    return said == "CLUSTER SLOTS" ? all_at(owner.port())
                                   : "-ASK " + std::to_string(slot_of("k")) + " " + newcomer.address() + "\r\n";
  });
  Cluster cluster = cluster_of({owner.port()});
  CHECK(ask(cluster) == "7");
  CHECK(ask(cluster) == "7");
  CHECK(newcomer.heard() == Words{"ASKING", "GET k", "ASKING", "GET k"});
  CHECK(owner.heard().size() == 2);
}

TEST_CASE("cluster: TRYAGAIN is tried again, until the time is over")
{
  int refusals = 3;
  Node owner([&](const std::string& said) {
    return said == "CLUSTER SLOTS" ? all_at(owner.port())
           : refusals-- > 0        ? "-TRYAGAIN Multiple keys request\r\n"
                                   : ":7\r\n";
  });
  Cluster cluster = cluster_of({owner.port()});
  CHECK(ask(cluster) == "7");
  refusals = 1'000'000;
  const auto ends_with = [&] {
    const auto never = cluster.call("k", get, within(Millis{100}));
    REQUIRE_FALSE(never);
    return never.error().code;
  };
  // On a busy machine the time may be over while a try is on its way, whose outcome nobody knows then.
  wait_until([&] { return ends_with() == ErrorCode::server_not_ready; }, "the server has the last word");
}

TEST_CASE("cluster: redirections in circles are given up")
{
  std::array<std::string, 2> addresses;
  const auto answer = [&](int me) {
    return [&addresses, me](const std::string& said) {
      const std::string& mine = addresses[static_cast<std::size_t>(me)];
      return said == "CLUSTER SLOTS" ? all_at(std::stoi(mine.substr(10)))
                                     : moved_to(addresses[static_cast<std::size_t>(1 - me)]);
    };
  };
  Node one(answer(0));
  Node other(answer(1));
  addresses = {one.address(), other.address()};
  Cluster cluster = cluster_of({one.port()});
  const auto never = cluster.call("k", get, within(plenty));
  REQUIRE_FALSE(never);
  CHECK(never.error().code == ErrorCode::server_not_ready);
  CHECK(one.heard().size() + other.heard().size() < 20);
}

TEST_CASE("cluster: a request without an answer is not sent again, and the next one asks another node for the slot")
{
  Node successor([](const std::string&) { return ":7\r\n"; });
  Node witness([&](const std::string& said) { return said == "CLUSTER SLOTS" ? all_at(successor.port()) : ":8\r\n"; });
  Node dying([&](const std::string& said) { return said == "CLUSTER SLOTS" ? all_at(dying.port()) : ""; });
  Cluster cluster = cluster_of({dying.port(), witness.port()});
  const auto lost = cluster.call("k", get, within(plenty));
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == ErrorCode::unreachable);
  CHECK(dying.heard().size() == 1);
  CHECK(witness.heard().empty());
  CHECK(ask(cluster) == "7");
}

TEST_CASE("cluster: nodes that are gone, first and last of the list")
{
  Node owner([&](const std::string& said) { return said == "CLUSTER SLOTS" ? all_at(owner.port()) : ":7\r\n"; });
  Cluster some = cluster_of({closed_port(), closed_port(), owner.port()});
  CHECK(ask(some) == "7");
  Cluster none = cluster_of({closed_port(), closed_port()});
  const auto nobody = none.call("k", get, within(plenty));
  REQUIRE_FALSE(nobody);
  CHECK(nobody.error().code == ErrorCode::unreachable);
  CHECK(has(nobody.error().text, "no node of redis+cluster://127.0.0.1:"));
}

TEST_CASE("cluster: an owner that cannot be reached has been replaced: the other nodes know by whom")
{
  const int dead = closed_port();
  Node successor([](const std::string&) { return ":7\r\n"; });
  bool replaced = false;
  Node seed([&](const std::string& said) {
    const bool first = said == "CLUSTER SLOTS" && !std::exchange(replaced, true);
    return all_at(first ? dead : successor.port());
  });
  Cluster cluster = cluster_of({seed.port()});
  CHECK(ask(cluster) == "7");
}

TEST_CASE("cluster: a server that is none gets no request")
{
  Node single([](const std::string&) { return "-ERR This instance has cluster support disabled\r\n"; });
  Cluster cluster = cluster_of({single.port()});
  const auto refused = cluster.call("k", get, within(plenty));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::config);
  CHECK(refused.error().text ==
        "redis://" + single.address() + " is no node of a cluster (use -S redis://" + single.address() + ")");
  CHECK(single.heard().empty());
}

TEST_CASE("cluster: several requests go to all nodes at once, and a redirected one is repeated there")
{
  const int half = 8192;
  int low_port = 0;
  Node high([](const std::string& said) { return said == "GET k" ? ":3\r\n" : ":2\r\n"; });
  Node low([&](const std::string& said) {
    return said == "CLUSTER SLOTS" ? "*2\r\n" + range(0, half - 1, low_port) + range(half, 16383, high.port())
           : said == "GET k"       ? moved_to(high.address())
                                   : std::string(":1\r\n");
  });
  low_port = low.port();
  REQUIRE(slot_of("k") < half);
  REQUIRE(slot_of("b") < half);
  REQUIRE(slot_of("a") >= half);
  Cluster cluster = cluster_of({low.port()});
  const std::vector<Request> requests{{.route_key = "b", .words = {"GET", "b"}},
                                      {.route_key = "a", .words = {"GET", "a"}},
                                      {.route_key = "k", .words = {"GET", "k"}}};
  const auto answers = cluster.call_each(requests, within(plenty));
  REQUIRE(answers.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(answers[i]);
    CHECK(answers[i]->integer == static_cast<std::int64_t>(i + 1));
  }
}

TEST_CASE("cluster: a route to each of the masters")
{
  Node seed(
      [&](const std::string&) { return "*3\r\n" + range(0, 8000, 1) + range(8001, 8001, 2) + range(8002, 16383, 1); });
  Cluster cluster = cluster_of({seed.port()});
  const auto routes = cluster.routes(within(plenty));
  REQUIRE(routes);
  REQUIRE(routes->size() == 2);
  CHECK(std::count_if(routes->begin(), routes->end(), [](const std::string& key) { return slot_of(key) == 8001; }) ==
        1);
}

TEST_CASE("cluster: a subscriber is told that a slot has moved")
{
  const auto bulk = [](const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; };
  const auto confirmed = [&](const std::string& word) { return "*3\r\n" + bulk(word) + bulk("c{k}") + ":1\r\n"; };
  Node owner([&](const std::string&) {
    return confirmed("ssubscribe") + "*3\r\n" + bulk("smessage") + bulk("c{k}") + bulk("hi") +
           confirmed("sunsubscribe");
  });
  Node seed([&](const std::string&) { return all_at(owner.port()); });
  Cluster cluster = cluster_of({seed.port()});
  const std::array<std::string_view, 1> channels{"c{k}"};
  auto subscription = cluster.subscribe(channels, within(plenty));
  REQUIRE(subscription);
  const auto message = subscription->next(within(plenty));
  REQUIRE(message);
  REQUIRE(message->has_value());
  CHECK((*message)->text == "hi");
  CHECK_FALSE(subscription->next(within(plenty)));
  CHECK(owner.heard() == Words{"SSUBSCRIBE c{k}"});
}

TEST_CASE("cluster: where there are no sharded channels, plain ones do")
{
  const auto bulk = [](const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; };
  Node owner([&](const std::string& said) {
    return said == "CLUSTER SLOTS" ? all_at(owner.port())
           : said[1] == 'S'        ? "-ERR unknown command `SSUBSCRIBE`, with args beginning with: `c{k}`, \r\n"
                                   : "*3\r\n" + bulk("subscribe") + bulk("c{k}") + ":1\r\n";
  });
  Node seed([&](const std::string&) { return all_at(owner.port()); });
  Cluster cluster = cluster_of({seed.port()});
  const std::array<std::string_view, 1> channels{"c{k}"};
  CHECK(cluster.subscribe(channels, within(plenty)));
  CHECK(owner.heard() == Words{"SSUBSCRIBE c{k}", "SUBSCRIBE c{k}"});
}
