// SPDX-License-Identifier: Apache-2.0
// The backend of etcd on a real node: presences, and what other databases do not share (database_test.cpp).
#include "stores/etcd/etcd_backend.h"
#include "support/etcd_fixture.h"
#include "support/integration.h"
#include "support/limits.h"

using namespace rlock::test;
using record::Keeping;
using record::PresenceId;

namespace {

const BootClock the_clock;

struct Write {
  std::vector<Message> messages = {};
  std::vector<PresenceId> needed = {};
};

record::Commit write(record::Backend& backend, const std::string& version, const Write& what)
{
  return must(backend.write_if(
      "k", version, {.bytes = "x", .face = {}, .log = {}, .messages = what.messages, .needed = what.needed}, soon()));
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

ETCD_CASE("etcd backend: a message that arrives with the answer to a request makes the source readable")
{
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

ETCD_CASE("etcd backend: a commit needs the presence, which comes with it, is proven, asked for and removed")
{
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

ETCD_CASE("etcd backend: a presence whose lease ended before its first commit is gone, and the commit does not happen")
{
  const auto mine = server.open_backend(the_clock);
  const auto other = server.open_backend(the_clock);
  const auto presence = must(mine->presences()->make(30s, Keeping::kept, soon()));
  must(other->presences()->remove(presence.id, soon()));
  CHECK(version_after(write(*mine, must(mine->read("k", soon())).version, {.needed = {presence.id}})) == "gone");
  CHECK(server.lock_names().empty());
}

ETCD_CASE("etcd backend: a presence whose lease ended before its first commit is gone, says the proof too")
{
  const auto mine = server.open_backend(the_clock);
  const auto other = server.open_backend(the_clock);
  const auto presence = must(mine->presences()->make(30s, Keeping::kept, soon()));
  must(other->presences()->remove(presence.id, soon()));
  CHECK(std::holds_alternative<record::NoLonger>(must(mine->presences()->prove(presence.id, soon()))));
}

ETCD_CASE("etcd backend: a presence that nobody proves goes with its lease")
{
  const auto mine = server.open_backend(the_clock);
  const auto presence = must(mine->presences()->make(1s, Keeping::unkept, soon()));
  CHECK(presence.lease.length >= 1s);
  write(*mine, must(mine->read("k", soon())).version, {.needed = {presence.id}});
  wait_until([&] { return !gone(*mine, {presence.id}).empty(); }, "the presence is gone");
  CHECK(the_clock.now() >= presence.lease.from + presence.lease.length);
}
