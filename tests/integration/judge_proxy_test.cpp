// SPDX-License-Identifier: Apache-2.0
// The proxy of the judge really does what it says: each disturbance as a client of a real server sees it.
#include "judge/proxy.h"

#include "redis/connection.h"
#include "support/integration.h"
#include "support/limits.h"

using namespace std::chrono_literals;

using namespace rlock;
using namespace rlock::judge;

namespace {

const BootClock boot_clock;

struct ProxyFixture {
  test::RedisServer server{{.alone = true}};
  Proxy proxy{server.socket_path(), Proxy::Listens::unix_socket};
  std::optional<rlock::Connection> client = connect();

  std::optional<rlock::Connection> connect() const
  {
    Endpoint endpoint;
    endpoint.kind = Endpoint::Kind::unix_socket;
    endpoint.path = proxy.url().substr(std::string_view("unix://").size());
    auto opened = rlock::Connection::open(endpoint, boot_clock, test::within(500ms));
    const bool answers = opened && opened->call(std::vector<std::string_view>{"PING"}, test::within(500ms));
    return answers ? std::optional(*std::move(opened)) : std::nullopt;
  }
  bool send(const std::string& word)
  {
    return bool(client->send(std::vector<std::string_view>{word, "k"}, test::within(1s)));
  }
  bool answers(Millis time) { return bool(client->answer(test::within(time))); }
  std::int64_t count() const { return std::stoll("0" + server.command({"GET", "k"}).text); }
  bool has_clients(std::size_t others) const  // besides the one that asks
  {
    const std::string list = test::as_text(server.command({"CLIENT", "LIST"}));
    return static_cast<std::size_t>(std::count(list.begin(), list.end(), '\n')) == others + 1;
  }
};

}  // namespace

TEST_CASE_FIXTURE(ProxyFixture, "judge: the proxy passes everything on, also when a disturbance is over")
{
  CHECK((send("INCR") && answers(5s)));
  proxy.begin({.harm = Harm::delay, .pause = 1ms});
  CHECK((send("INCR") && answers(5s)));
  CHECK(proxy.end() == 2);
  CHECK((send("INCR") && answers(5s)));
  CHECK(count() == 3);
  CHECK(proxy.end() == 0);
}

TEST_CASE_FIXTURE(ProxyFixture, "judge: the proxy delays")
{
  proxy.begin({.harm = Harm::delay, .pause = 150ms});
  const Instant from = boot_clock.now();
  CHECK((send("INCR") && answers(5s)));
  CHECK(boot_clock.now() - from >= 300ms);
  proxy.begin({.harm = Harm::delay, .direction = Direction::to_client, .pause = 10s});
  CHECK(send("INCR"));
  test::wait_until([&] { return count() == 2; }, "the request arrives at once");
  proxy.end();
  CHECK(answers(1s));
}

TEST_CASE_FIXTURE(ProxyFixture, "judge: the proxy drips")
{
  server.command({"SET", "k", std::string(200, 'x')});
  proxy.begin({.harm = Harm::drip, .direction = Direction::to_client, .pause = 10ms});
  const Instant from = boot_clock.now();
  CHECK((send("GET") && answers(5s)));
  CHECK(boot_clock.now() - from >= 200ms);
}

TEST_CASE_FIXTURE(ProxyFixture, "judge: the proxy holds requests or replies, and delivers them at the end")
{
  SUBCASE("requests")
  {
    proxy.begin({.harm = Harm::hold, .direction = Direction::to_server});
    CHECK(send("INCR"));
    CHECK_FALSE(answers(200ms));
    CHECK(count() == 0);
  }
  SUBCASE("replies")
  {
    proxy.begin({.harm = Harm::hold, .direction = Direction::to_client});
    CHECK(send("INCR"));
    CHECK_FALSE(answers(200ms));
    CHECK(count() == 1);
  }
  SUBCASE("the end of a client too")
  {
    proxy.begin({.harm = Harm::hold});
    CHECK(send("INCR"));
    client.reset();
    CHECK_FALSE(connect());  // its PING has no answer
    CHECK(count() == 0);
  }
  CHECK(proxy.end() >= 1);
  test::wait_until([&] { return count() == 1; }, "the request arrives late");
}

TEST_CASE_FIXTURE(ProxyFixture, "judge: the proxy swallows, and a connection that lost bytes does not go on")
{
  proxy.begin({.harm = Harm::swallow, .direction = Direction::to_server});
  CHECK(send("INCR"));
  CHECK_FALSE(answers(200ms));
  CHECK(proxy.end() == 1);
  test::wait_until([&] { return has_clients(0); }, "the connection ends");
  CHECK(count() == 0);
  client = connect();
  CHECK((send("INCR") && answers(5s)));
}

TEST_CASE_FIXTURE(ProxyFixture, "judge: the proxy cuts, for both ends or for one")
{
  SUBCASE("both")
  {
    proxy.begin({.harm = Harm::cut});
    test::wait_until([&] { return has_clients(0); }, "the server has no client");
    CHECK_FALSE((send("INCR") && answers(200ms)));
    CHECK_FALSE(connect());
    CHECK(proxy.end() == 2);
  }
  SUBCASE("the server's")
  {
    proxy.begin({.harm = Harm::cut, .direction = Direction::to_server});
    test::wait_until([&] { return has_clients(0); }, "the server has no client");
    CHECK(send("INCR"));
    CHECK_FALSE(answers(200ms));
  }
  SUBCASE("the client's")
  {
    proxy.begin({.harm = Harm::cut, .direction = Direction::to_client});
    CHECK_FALSE((send("INCR") && answers(200ms)));
    CHECK(has_clients(1));
  }
  proxy.end();
  test::wait_until([&] { return has_clients(0); }, "nothing is left of the connection");
  client = connect();
  CHECK((send("INCR") && answers(5s)));
}

TEST_CASE_FIXTURE(ProxyFixture, "judge: the proxy disturbs a share of the connections")
{
  std::vector<std::optional<rlock::Connection>> clients;
  for (int i = 0; i < 40; ++i) {
    REQUIRE(clients.emplace_back(connect()));
  }
  test::wait_until([&] { return has_clients(41); }, "all are connected");
  proxy.begin({.harm = Harm::cut, .percent = 50, .seed = 7});
  const auto cut = proxy.end();
  CHECK(cut > 5);
  CHECK(cut < 36);
  test::wait_until([&] { return has_clients(41 - cut); }, "the others are still there");
}
