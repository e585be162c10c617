// SPDX-License-Identifier: Apache-2.0
// The backend of etcd on a real node: versions, listeners, messages, the event log, presences.
#include "stores/etcd/etcd_backend.h"
#include "support/etcd_fixture.h"
#include "support/integration.h"

using namespace rlock::test;
using record::Keeping;
using record::PresenceId;

namespace {

const BootClock the_clock;

CallLimits limit_in(Millis time) { return {.deadline = the_clock.now() + time, .stop = StopToken::never()}; }
CallLimits soon() { return limit_in(10s); }

template <typename T>
T must(Result<T> result)
{
  REQUIRE_MESSAGE(result, result.error().text);
  return *std::move(result);
}

struct Write {
  std::string bytes = "x";
  std::string holder = {};
  record::LogChange log = {};
  std::vector<Message> messages = {};
  std::vector<PresenceId> needed = {};
};

record::Commit write(record::Backend& backend, const std::string& version, const Write& what)
{
  return must(backend.write_if("k", version,
                               {.bytes = what.bytes,
                                .face = {.holder = what.holder},
                                .log = what.log,
                                .messages = what.messages,
                                .needed = what.needed},
                               soon()));
}

// "" : a conflict. "gone": a presence is gone.
std::string version_after(const record::Commit& commit)
{
  if (std::holds_alternative<record::PresenceGone>(commit)) {
    return "gone";
  }
  const auto* const done = std::get_if<record::Committed>(&commit);
  return done == nullptr ? "" : done->version;
}

std::vector<PresenceId> gone(record::Backend& backend, const std::vector<PresenceId>& ids)
{
  return must(backend.presences()->gone(ids, soon()));
}

}  // namespace

TEST_CASE("etcd backend: a commit replaces exactly the state that was read")
{
  const EtcdServer server;
  const auto one = server.open_backend(the_clock);
  const auto two = server.open_backend(the_clock);
  const auto empty = must(one->read("k", soon()));
  CHECK(empty.bytes.empty());
  const std::string first = version_after(write(*one, empty.version, {.bytes = "first", .holder = "me"}));
  CHECK_FALSE(first.empty());
  CHECK(version_after(write(*two, empty.version, {.bytes = "late"})).empty());
  CHECK(must(two->read("k", soon())).bytes == "first");
  CHECK(must(two->list("*", record::Backend::Which::held, soon())) == std::vector<std::string>{"k"});
  CHECK(must(two->list("other*", record::Backend::Which::held, soon())).empty());
  const std::string second = version_after(write(*one, first, {.bytes = "second"}));  // without another read
  CHECK_FALSE(second.empty());
  CHECK(must(two->list("*", record::Backend::Which::held, soon())).empty());
  must(one->erase("k", soon()));
  CHECK(version_after(write(*one, second, {.bytes = "late"})).empty());
  CHECK(server.lock_names().empty());
}

TEST_CASE("etcd backend: the event log is written, cut at both ends, and found")
{
  const EtcdServer server;
  const auto backend = server.open_backend(the_clock);
  record::LogChange log;
  for (int id = 1; id <= 12; ++id) {
    log.written.push_back({id, "e" + std::to_string(id)});
  }
  std::string version = version_after(write(*backend, must(backend->read("k", soon())).version, {.log = log}));
  CHECK(must(backend->events("k", soon())).size() == 12);
  version =
      version_after(write(*backend, version, {.log = {.written = {{5, "new"}}, .first_kept = 4, .last_kept = 5}}));
  CHECK(must(backend->events("k", soon())) == std::vector<std::string>{"e4", "new"});
  CHECK(must(backend->events("", soon())).empty());
  CHECK(must(backend->list("*", record::Backend::Which::with_events, soon())) == std::vector<std::string>{"k"});
}

TEST_CASE(
    "etcd backend: who begins to listen changes the version, hears each message, and is not named any more at its end")
{
  const EtcdServer server;
  const auto sender = server.open_backend(the_clock);
  const auto hearer = server.open_backend(the_clock);
  const auto before = must(sender->read("k", soon()));
  const std::vector<LockChannel> channels{{"k", "a"}, {"k", "b"}};
  auto source = must(hearer->listen(channels, soon()));
  CHECK(version_after(write(*sender, before.version, {})).empty());
  const auto state = must(sender->read("k", soon()));
  CHECK(state.listeners == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(must(source->next(limit_in(20ms))));
  const std::string version =
      version_after(write(*sender, state.version, {.messages = {{"a", "1"}, {"b", "2"}, {"a", "3"}, {"c", "-"}}}));
  CHECK_FALSE(version.empty());
  std::vector<std::string> heard;
  while (heard.size() < 3) {
    const auto message = must(source->next(soon()));
    REQUIRE(message);
    heard.push_back(message->channel + message->text);
  }
  std::ranges::sort(heard);
  CHECK(heard == std::vector<std::string>{"a1", "a3", "b2"});
  must(hearer->read("k", soon()));  // the same connection
  source.reset();
  wait_until([&] { return must(sender->read("k", soon())).listeners.empty(); }, "nobody listens any more");
  const std::string all = server.etcdctl({"get", "--prefix", "--keys-only", "app/"});
  CHECK_FALSE(has(all, "app/message/"));
  CHECK_FALSE(has(all, "app/listener/"));
}

TEST_CASE("etcd backend: a message that arrives with the answer to a request makes the source readable")
{
  const EtcdServer server;
  const auto sender = server.open_backend(the_clock);
  const auto hearer = server.open_backend(the_clock);
  const std::vector<LockChannel> channels{{"k", "a"}};
  const auto source = must(hearer->listen(channels, soon()));
  write(*sender, must(sender->read("k", soon())).version, {.messages = {{"a", "1"}}});
  must(hearer->read("k", soon()));
  must(hearer->read("k", soon()));
  pollfd wait{.fd = source->fd(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&wait, 1, 10'000) == 1);
  CHECK(must(source->next(soon())));
}

TEST_CASE("etcd backend: a commit needs the presence, which comes with it, is proven, asked for and removed")
{
  const EtcdServer server;
  const auto mine = server.open_backend(the_clock);
  const auto other = server.open_backend(the_clock);
  const auto presence = must(mine->presences()->make(30s, Keeping::kept, soon()));
  CHECK(presence.lease.length == 30s);
  const std::string version =
      version_after(write(*mine, must(mine->read("k", soon())).version, {.needed = {presence.id}}));
  CHECK_FALSE(version.empty());
  CHECK(gone(*other, {presence.id}).empty());
  CHECK(gone(*other, {presence.id, "0123456789abcdef"}) == std::vector<PresenceId>{"0123456789abcdef"});
  const Instant before = the_clock.now();
  const auto proof = must(mine->presences()->prove(presence.id, soon()));
  const auto* const term = std::get_if<LeaseTerm>(&proof);
  REQUIRE(term != nullptr);
  CHECK(term->from >= before);
  CHECK(term->length == 30s);
  const std::string second = version_after(write(*mine, version, {.needed = {presence.id}}));
  CHECK_FALSE(second.empty());
  must(other->presences()->remove(presence.id, soon()));
  must(other->presences()->remove(presence.id, soon()));
  CHECK(gone(*other, {presence.id}) == std::vector<PresenceId>{presence.id});
  CHECK(std::holds_alternative<record::NoLonger>(must(mine->presences()->prove(presence.id, soon()))));
  const std::string third = version_after(write(*mine, second, {.needed = {presence.id}}));
  CHECK_MESSAGE((third.empty() || third == "gone"), third);
  CHECK(must(other->read("k", soon())).version.starts_with(second.substr(0, second.find(' '))));
}

TEST_CASE("etcd backend: a presence whose lease ended before its first commit is gone, and the commit does not happen")
{
  const EtcdServer server;
  const auto mine = server.open_backend(the_clock);
  const auto other = server.open_backend(the_clock);
  const auto presence = must(mine->presences()->make(30s, Keeping::kept, soon()));
  must(other->presences()->remove(presence.id, soon()));
  CHECK(version_after(write(*mine, must(mine->read("k", soon())).version, {.needed = {presence.id}})) == "gone");
  CHECK(server.lock_names().empty());
}

TEST_CASE("etcd backend: a presence whose lease ended before its first commit is gone, says the proof too")
{
  const EtcdServer server;
  const auto mine = server.open_backend(the_clock);
  const auto other = server.open_backend(the_clock);
  const auto presence = must(mine->presences()->make(30s, Keeping::kept, soon()));
  must(other->presences()->remove(presence.id, soon()));
  CHECK(std::holds_alternative<record::NoLonger>(must(mine->presences()->prove(presence.id, soon()))));
}

TEST_CASE("etcd backend: a presence that nobody proves goes with its lease")
{
  const EtcdServer server;
  const auto mine = server.open_backend(the_clock);
  const auto presence = must(mine->presences()->make(1s, Keeping::unkept, soon()));
  CHECK(presence.lease.length >= 1s);
  write(*mine, must(mine->read("k", soon())).version, {.needed = {presence.id}});
  wait_until([&] { return !gone(*mine, {presence.id}).empty(); }, "the presence is gone");
  CHECK(the_clock.now() >= presence.lease.from + presence.lease.length);
}
