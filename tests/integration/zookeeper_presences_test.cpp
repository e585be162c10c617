// SPDX-License-Identifier: Apache-2.0
// Presences in ZooKeeper whose session has ended, or whose node was made by a request that got no answer.
#include "stores/zookeeper/zookeeper_presences.h"
#include "stores/zookeeper/jute.h"
#include "stores/zookeeper/zookeeper_backend.h"
#include "support/hostile_server.h"
#include "support/limits.h"
#include "support/stepped_clock.h"
#include "support/test.h"
#include "support/wait_until.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;
using zookeeper::JuteReader;
using zookeeper::JuteWriter;

namespace {

const BootClock the_clock;

// Records in the nodes of a server, and a client that looks at the nodes.
struct Store {
  ZookeeperServer nodes{{.longest_session = 2s}};
  std::unique_ptr<zookeeper::Client> eye = nodes.client(nodes.url(), 2s, the_clock);
  std::unique_ptr<record::Backend> backend =
      zookeeper::open_backend(zookeeper::connection_spec(*zookeeper::parse_zookeeper_url(nodes.url())), the_clock,
                              std::make_unique<SystemRng>());

  [[nodiscard]] std::string node(const record::PresenceId& id) const { return zookeeper::Layout("").presence(id); }
  void await_gone(const record::PresenceId& id) const
  {
    wait_until(
        [&] { return must(eye->ask(zookeeper::exists(node(id), false), soon())).code == zookeeper::Code::no_node; },
        "the session has ended");
  }
  record::Commit commit(const record::PresenceId& id) const
  {
    const auto state = must(backend->read("k", soon()));
    const record::LogChange none;
    return must(backend->write_if(
        "k", state.version, {.bytes = "bytes", .face = {}, .log = none, .messages = {}, .needed = std::span(&id, 1)},
        soon()));
  }
  record::PresenceId unkept(Millis lease) const
  {
    must(backend->read("k", soon()));  // makes the directories
    auto id = must(backend->presences()->make(lease, record::Keeping::unkept, soon())).id;
    CHECK(std::holds_alternative<record::Committed>(commit(id)));
    return id;
  }
  [[nodiscard]] std::optional<Millis> lasts() const { return backend->presences()->lasts_without_keeper(); }
};

constexpr std::int64_t the_session = 7;

std::string framed(const JuteWriter& frame) { return JuteWriter().text(frame.bytes()).bytes(); }

std::string connected()
{
  return framed(JuteWriter().small(0).small(10'000).number(the_session).text(std::string(16, 'x')).flag(false));
}

std::string answer_to(std::int32_t number, std::int32_t type)
{
  constexpr std::int32_t type_create = 15;
  const auto code = type == type_create ? zookeeper::Code::node_exists : zookeeper::Code::ok;
  JuteWriter answer;
  answer.small(number).number(1).small(static_cast<std::int32_t>(code));
  if (code == zookeeper::Code::ok) {  // the Stat
    answer.number(1).number(2).number(0).number(0).small(1).small(0).small(0).number(the_session);
    answer.small(0).small(0).number(1);
  }
  return framed(answer);
}

// A server that makes a node for its first connection and hangs up instead of the answer. Then the node is there.
Behavior loses_first_answer(std::atomic<int>& connections)
{
  return [&connections](const Peer& peer) {
    const bool is_first = connections++ == 0;
    const auto next_frame = [&] {
      const std::string length = peer.hear(zookeeper::size_of_length);
      return length.size() < zookeeper::size_of_length
                 ? std::string()
                 : peer.hear(static_cast<std::size_t>(JuteReader(length).small()));
    };
    next_frame();
    peer.say(connected());
    for (std::string frame = next_frame(); !frame.empty() && !is_first; frame = next_frame()) {
      JuteReader head(frame);
      const std::int32_t number = head.small();
      peer.say(answer_to(number, head.small()));
    }
  };
}

}  // namespace

TEST_CASE("zookeeper presences: one whose session has ended needs no keeper")
{
  const Store store;
  const auto id = store.unkept(60s);
  CHECK(store.lasts() == 2s);
  store.await_gone(id);
  SUBCASE("its proof finds out")
  {
    const auto proof = must(store.backend->presences()->prove(id, soon()));
    CHECK(std::holds_alternative<record::NoLonger>(proof));
  }
  SUBCASE("a commit finds out") { CHECK(std::holds_alternative<record::PresenceGone>(store.commit(id))); }
  CHECK_FALSE(store.lasts());
  const auto next = store.unkept(1s);  // shorter than the session
  CHECK_FALSE(store.lasts());
  must(store.backend->presences()->remove(next, soon()));
}

TEST_CASE("zookeeper presences: the node of one is there when the answer to its creation was lost")
{
  std::atomic<int> connections = 0;
  const HostileServer server(loses_first_answer(connections), Endpoint::Kind::tcp);
  const std::string host = "127.0.0.1:" + std::to_string(server.port());
  const auto spec = zookeeper::connection_spec(*zookeeper::parse_zookeeper_url("zookeeper://" + host + "," + host));
  SteppedClock clock;
  const CallLimits limit{.deadline = clock.now() + 60s, .stop = StopToken::never()};
  constexpr Millis lease{10'000};
  const auto client = std::make_shared<zookeeper::Client>(spec, lease, clock, std::make_unique<SystemRng>());
  const zookeeper::Layout layout("");
  const zookeeper::SharedClient shared{.client = client, .changed = {}};
  zookeeper::NodePresences presences(shared, layout, clock);
  SUBCASE("in a new session") {}
  SUBCASE("in a session that was proven some time ago")
  {
    connections = 1;
    must(client->ask(zookeeper::exists("/", false), limit));
    connections = 0;
    clock.add(lease / 2);
  }
  const auto made = must(presences.make(lease, record::Keeping::kept, limit));
  CHECK(made.lease.from + made.lease.length > clock.now() + lease / 2);
  CHECK(std::holds_alternative<LeaseTerm>(must(presences.prove(made.id, limit))));
}

TEST_CASE("zookeeper presences: a commit whose presence is there already knows it at its next try")
{
  const Store store;
  must(store.backend->read("k", soon()));
  const auto id = must(store.backend->presences()->make(default_ttl, record::Keeping::kept, soon())).id;
  must(store.eye->ask(zookeeper::create(store.node(id), {}, zookeeper::CreateMode::ephemeral, false), soon()));
  CHECK(std::holds_alternative<record::Conflict>(store.commit(id)));
  CHECK(std::holds_alternative<record::Committed>(store.commit(id)));
}
