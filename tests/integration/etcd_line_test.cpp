// SPDX-License-Identifier: Apache-2.0
// The line of etcdctl lock as the backend of etcd sees and changes it, on a real node.
#include "stores/etcd/etcd_backend.h"
#include "support/etcd_fixture.h"
#include "support/integration.h"
#include "support/limits.h"

using namespace rlock::test;
using record::LineChange;
using record::LineView;

namespace {

const BootClock the_clock;

const LockName lock = *LockName::parse("k");

struct Client {
  explicit Client(const EtcdServer& server)
      : backend(server.open_backend(the_clock)),
        presence(must(backend->presences()->make(60s, record::Keeping::kept, soon())).id)
  {
  }

  [[nodiscard]] LineView look(const std::string& own = {}) const
  {
    return must(backend->native_lines().front()->look(lock, {.own = own}, soon()));
  }
  // The order of a new contender; nullopt: a conflict.
  [[nodiscard]] std::optional<std::int64_t> commit(const LineChange& change) const
  {
    const auto state = must(backend->read("k", soon()));
    const std::vector<record::PresenceId> needed{presence};
    const auto done = must(backend->write_if(
        "k", state.version, {.bytes = "x", .face = {}, .log = {}, .messages = {}, .needed = needed, .line = &change},
        soon()));
    const auto* const committed = std::get_if<record::Committed>(&done);
    return committed == nullptr ? std::nullopt : std::optional(committed->order);
  }
  [[nodiscard]] std::string name() const { return backend->native_lines().front()->contender_for(presence); }
  [[nodiscard]] LineChange standing(bool is_new = true) const
  {
    return {.stand = LineChange::Stand{.name = name(), .presence = presence, .is_new = is_new}};
  }

  std::unique_ptr<record::Backend> backend;
  record::PresenceId presence;
};

void put(const EtcdServer& server, const std::string& key, const std::string& lease = {})
{
  [[maybe_unused]] const std::string out =
      server.etcdctl(lease.empty() ? Words{"put", key, "v"} : Words{"put", "--lease=" + lease, key, "v"});
}

}  // namespace

ETCD_CASE("etcd line: a contender stands behind those that came before, and ends with its presence")
{
  const Client one(server);
  CHECK_FALSE(one.look().first);
  const auto order = one.commit(one.standing());
  REQUIRE(order);
  const Client two(server);
  const auto second = two.commit(two.standing());
  REQUIRE(second);
  CHECK(*second > *order);
  const LineView view = two.look(two.name());
  CHECK(view.first->name == one.name());
  CHECK(view.first->order == *order);
  CHECK(view.first->is_lock);
  CHECK(view.first->lasts > 50s);
  CHECK(view.own->order == *second);
  CHECK(view.next->name == one.name());
  CHECK(one.look(one.name()).next->name == two.name());
  must(one.backend->presences()->remove(one.presence, soon()));
  CHECK(two.look(two.name()).first->name == two.name());
  CHECK(two.commit({.leaves = {two.name()}}));
  CHECK_FALSE(two.look().first);
}

ETCD_CASE("etcd line: a commit depends on what it says of the line")
{
  const Client client(server);
  LineChange change = client.standing();
  change.none_came_since = client.look().state;
  put(server, "k/another");
  CHECK_FALSE(client.commit(change));  // somebody came
  CHECK_FALSE(client.look().first->is_lock);
  change.none_came_since = client.look().state;
  [[maybe_unused]] std::string out = server.etcdctl({"del", "k/another"});
  CHECK(client.commit(change));                   // somebody went
  CHECK_FALSE(client.commit(client.standing()));  // it stands there already
  const LineView view = client.look(client.name());
  LineChange needs;
  needs.needed = view.own;
  CHECK(client.commit(needs));
  out = server.etcdctl({"del", "k/" + client.name()});
  CHECK_FALSE(client.commit(needs));
  CHECK_FALSE(client.commit(client.standing(false)));  // it is not made again
  CHECK(client.commit(client.standing()));
  CHECK_FALSE(client.commit(needs));  // it has another place now
}

ETCD_CASE("etcd line: a contender that gets another presence keeps its place")
{
  const Client client(server);
  const auto order = client.commit(client.standing());
  REQUIRE(order);
  put(server, "k/behind");
  const auto other = must(client.backend->presences()->make(60s, record::Keeping::unkept, soon())).id;
  const auto state = must(client.backend->read("k", soon()));
  const std::vector<record::PresenceId> needed{other};
  const LineChange moved{.stand = LineChange::Stand{.name = client.name(), .presence = other, .is_new = false}};
  const auto done = must(client.backend->write_if(
      "k", state.version, {.bytes = "x", .face = {}, .log = {}, .messages = {}, .needed = needed, .line = &moved},
      soon()));
  CHECK(std::holds_alternative<record::Committed>(done));
  must(client.backend->presences()->remove(client.presence, soon()));
  const LineView view = client.look(client.name());
  REQUIRE(view.own);
  CHECK(view.own->order == *order);
  CHECK(view.first->name == client.name());
  must(client.backend->presences()->remove(other, soon()));
  CHECK_FALSE(client.look(client.name()).own);
}

ETCD_CASE("etcd line: those who listen are told when a contender is gone, also if it went before they asked")
{
  const Client client(server);
  put(server, "k/first");
  put(server, "k/second");
  const std::string own = "channel";
  const LineView view = client.look();
  auto* const line = client.backend->native_lines().front();
  CHECK_FALSE(line->tell_when_gone(lock, "first", view.state, {.channel = own, .text = "look 0"}, soon()));
  const std::vector<LockChannel> channels{{"k", own}};
  const auto source = must(client.backend->listen(channels, soon()));
  CHECK(line->tell_when_gone(lock, "first", view.state, {.channel = own, .text = "look 0"}, soon()));
  put(server, "k/first");
  [[maybe_unused]] std::string out = server.etcdctl({"del", "k/first"});
  auto message = must(source->next(soon()));
  REQUIRE(message);
  CHECK(message->channel == own);
  CHECK(message->text == "look 0");
  out = server.etcdctl({"del", "k/second"});
  CHECK(line->tell_when_gone(lock, "second", view.state, {.channel = own, .text = "gone"}, soon()));
  message = must(source->next(soon()));
  REQUIRE(message);
  CHECK(message->text == "gone");
}

ETCD_CASE("etcd line: a lock whose line would contain rlock's own keys, or be among them, has none")
{
  const auto backend = server.open_backend(the_clock);  // with the prefix app
  const auto permits = [&](const char* name) {
    return static_cast<bool>(backend->native_lines().front()->check_name(*LockName::parse(name)));
  };
  CHECK_FALSE(permits("app"));
  CHECK_FALSE(permits("app/lock"));
  CHECK(permits("apps"));
  CHECK(permits("ap"));
  CHECK(permits("k/app"));
}
