// SPDX-License-Identifier: Apache-2.0
// The line of Curator as the backend of ZooKeeper sees and changes it, on a real server, and what the engine makes of a native client
// that comes at the worst moment.
#include "engine/bound_owners.h"
#include "engine/record_host.h"
#include "engine/script_store.h"
#include "stores/zookeeper/zookeeper_backend.h"
#include "stores/zookeeper/zookeeper_native_line.h"
#include "support/forwarding_backend.h"
#include "support/integration.h"
#include "support/limits.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;

namespace {

const BootClock the_clock;
const std::string native = "_c_00000000-0000-4000-8000-000000000000";
const std::string directory = "/k";

std::unique_ptr<record::Backend> backend_on(const ZookeeperServer& nodes)
{
  return zookeeper::open_backend(zookeeper::connection_spec(*zookeeper::parse_zookeeper_url(nodes.url())), the_clock,
                                 std::make_unique<SystemRng>());
}

// A native client comes before the first commit of a backend arrives.
class Surprised final : public ForwardingBackend {
 public:
  Surprised(std::unique_ptr<record::Backend> real, std::function<void()> surprise)
      : ForwardingBackend(std::move(real)), m_surprise(std::move(surprise))
  {
  }
  Result<record::Commit> write_if(std::string_view name, const record::Version& version, const record::Change& change,
                                  const CallLimits& limit) override
  {
    if (m_surprise) {
      std::exchange(m_surprise, nullptr)();
    }
    return ForwardingBackend::write_if(name, version, change, limit);
  }

 private:
  std::function<void()> m_surprise;
};

class Line {
 public:
  [[nodiscard]] const ZookeeperServer& nodes() const { return m_nodes; }
  // Stands in the line as Curator does.
  void come(const std::string& mark = "-lock-") const
  {
    must(m_native->ask(zookeeper::create(directory, {}, zookeeper::CreateMode::container, false), soon()));
    const auto made = must(m_native->ask(
        zookeeper::create(directory + "/" + native + mark, {}, zookeeper::CreateMode::ephemeral_sequential, false),
        soon()));
    REQUIRE(made.is_ok());
  }
  void go() const { must(m_native->close(soon())); }
  [[nodiscard]] std::size_t length() const
  {
    return must(m_native->ask(zookeeper::get_children(directory), soon())).children.size();
  }
  [[nodiscard]] ScriptStore surprised_store() const
  {
    auto backend = std::make_unique<Surprised>(backend_on(m_nodes), [this] { come(); });
    return {std::make_unique<record::RecordHost>(std::move(backend), the_clock, std::make_unique<SystemRng>()),
            the_clock};
  }

 private:
  const ZookeeperServer m_nodes;
  const std::unique_ptr<zookeeper::Client> m_native = m_nodes.client(m_nodes.url(), 60s, the_clock);
};

// Of a caller that has forgotten --format.
LockSpec plainly(LockKind kind = Plain{})
{
  return {.name = *LockName::parse("k"),
          .kind = kind,
          .ttl = 30s,
          .who = {.lease = 30s, .automatic = true},
          .once = {},
          .beside = NativeFormat::none};
}

const LockSpec request{.name = *LockName::parse("k"),
                       .kind = Plain{},
                       .ttl = 30s,
                       .who = {.lease = 30s, .automatic = true},
                       .once = {},
                       .beside = NativeFormat::curator};

}  // namespace

TEST_CASE("zookeeper line: a waiter stands behind a native client that came between its look and its commit")
{
  const Line line;
  ScriptStore store = line.surprised_store();
  const auto attempt = must(store.acquire(request, Owner::of("a"), {.queues = true}, soon()));
  const auto* busy = std::get_if<Busy>(&attempt);
  REQUIRE(busy != nullptr);
  REQUIRE(busy->holder);
  CHECK(busy->holder->owner.text() == native);
  CHECK(line.length() == 2);
  line.go();
  const auto again = must(store.acquire(request, Owner::of("a"), {.queues = true}, soon()));
  CHECK(std::holds_alternative<Granted>(again));
  CHECK(line.length() == 1);
}

TEST_CASE("zookeeper line: a caller that does not wait leaves again when a native client came before its commit")
{
  const Line line;
  ScriptStore store = line.surprised_store();
  const auto attempt = must(store.acquire(request, Owner::of("a"), {.queues = false}, soon()));
  CHECK(std::holds_alternative<Busy>(attempt));
  CHECK(line.length() == 1);
  line.go();
  ScriptStore other(
      std::make_unique<record::RecordHost>(backend_on(line.nodes()), the_clock, std::make_unique<SystemRng>()),
      the_clock);
  const auto granted = must(other.acquire(request, Owner::of("b"), {.queues = false}, soon()));
  CHECK(std::holds_alternative<Granted>(granted));
}

TEST_CASE("zookeeper line: no contender joins a line in which a writer of a read-write lock of Curator stands")
{
  const Line line;
  ScriptStore store(
      std::make_unique<record::RecordHost>(backend_on(line.nodes()), the_clock, std::make_unique<SystemRng>()),
      the_clock);
  line.come("-__WRIT__");
  const auto refused = store.acquire(request, Owner::of("a"), {.queues = true}, soon());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::config);
  CHECK(refused.error().text.find("cannot exclude " + native + "-__WRIT__") != std::string::npos);
  CHECK(line.length() == 1);
  line.go();
  CHECK(std::holds_alternative<Granted>(must(store.acquire(request, Owner::of("a"), {.queues = true}, soon()))));
}

TEST_CASE("zookeeper line: those who listen are told when a contender is gone, also after a lost connection")
{
  const Line line;
  const auto backend = backend_on(line.nodes());
  auto* const nodes = backend->native_lines().front();
  line.come();
  const std::string own = "channel";
  const record::NativeLine::News news{.channel = own, .text = "look 0"};
  const auto view = must(nodes->look(request.name, {}, soon()));
  REQUIRE(view.first);
  CHECK(view.first->name == native);
  CHECK(view.first->is_lock);
  CHECK_FALSE(nodes->tell_when_gone(request.name, native, 0, news, soon()));
  const std::vector<LockChannel> channels{{"k", own}};
  const auto source = must(backend->listen(channels, soon()));
  CHECK(nodes->tell_when_gone(request.name, native, 0, news, soon()));
  bool drops = false;
  SUBCASE("told") {}
  SUBCASE("told after a lost connection") { drops = true; }
  if (drops) {
    backend->drop_connection();
  }
  line.go();
  const auto message = must(source->next(soon()));
  REQUIRE(message);
  CHECK(message->channel == own);
  CHECK(message->text == "look 0");
}

TEST_CASE("zookeeper line: a caller without the format is refused where native clients stand")
{
  struct Row {
    const char* mark;
    const char* advice;
  };
  const Line line;
  ScriptStore store(
      std::make_unique<record::RecordHost>(backend_on(line.nodes()), the_clock, std::make_unique<SystemRng>()),
      the_clock);
  for (const Row& row : {Row{"-lock-", "(try --format curator;"}, Row{"__lock__", "(try --format kazoo;"},
                         Row{"-__READ__", "(try --format curator with --shared or --exclusive;"}}) {
    CAPTURE(std::string(row.mark));
    line.come(row.mark);
    for (const LockKind& kind : {LockKind(Plain{}), LockKind(Reader{})}) {
      const auto refused = store.acquire(plainly(kind), Owner::of("a"), {.queues = true}, soon());
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == ErrorCode::config);
      CHECK_MESSAGE(has(refused.error().text, row.advice), refused.error().text);
    }
    CHECK(line.length() == 1);
    line.go();
  }
  line.come("-other-");  // is no contender
  CHECK(std::holds_alternative<Granted>(must(store.acquire(plainly(), Owner::of("b"), {.queues = true}, soon()))));
}

TEST_CASE("zookeeper line: a caller without the format is refused beside a native client that came after a dead holder")
{
  const Line line;
  const auto store = [&] {
    return ScriptStore(
        std::make_unique<record::RecordHost>(backend_on(line.nodes()), the_clock, std::make_unique<SystemRng>()),
        the_clock);
  };
  ScriptStore dead = store();
  REQUIRE(std::holds_alternative<Granted>(must(dead.acquire(plainly(), Owner::of("a"), {.queues = true}, soon()))));
  const auto backend = backend_on(line.nodes());
  const auto record = must(record::decode(must(backend->read("k", soon())).bytes));
  for (const record::PresenceId& id : record::presences_in(record.bindings)) {
    must(backend->presences()->remove(id, soon()));
  }
  line.come();
  ScriptStore living = store();
  const auto refused = living.acquire(plainly(), Owner::of("b"), {.queues = true}, soon());
  REQUIRE_FALSE(refused);
  CHECK_MESSAGE(has(refused.error().text, "(try --format curator;"), refused.error().text);
}
