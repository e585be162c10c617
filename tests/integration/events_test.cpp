// SPDX-License-Identifier: Apache-2.0
// `rlock events`: the event log of a lock.
#include "support/acl_fixture.h"
#include "support/history_reader.h"
#include "support/integration.h"
#include "support/queue_fixture.h"

#include <regex>

using namespace rlock::test;
namespace {

std::vector<Json> events(const RedisServer& server, Words words = {"-k", "k"})
{
  words.insert(words.begin(), {"events", "--json", "-S", server.url()});
  const Finished told = succeeded(run_rlock(words));
  return json_lines(told.out);
}

std::string names(const std::vector<Json>& all)
{
  std::string text;
  for (const Json& event : all) {
    text += (text.empty() ? "" : " ") + event.at("event").text();
  }
  return text;
}

}  // namespace

SERVER_CASE("events: taken and let go, by whom, with its number")
{
  CHECK(events(server).empty());
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--label", "nightly", "--", "true"}).code == 0);
  const auto told = events(server);
  CHECK(names(told) == "acquired released");
  for (const Json& event : told) {
    CHECK(event.at("key") == "k");
    CHECK(event.at("time").text().ends_with("Z"));
    CHECK(event.at("fence") > 1'700'000'000'000'000);
    CHECK(event.at("by").is_null());
    CHECK(event.at("command") == "true");
    CHECK(event.at("label") == "nightly");
  }
  CHECK(told[0].at("token") == told[1].at("token"));
  CHECK(told[0].at("owner") == told[0].at("token"));  // accepted by release
  CHECK(as_int(server.command({"PTTL", "rlock:events:{k}"})) > 0);
  const Finished text = rlock_on(server, {"events", "-k", "k"});
  expect_has(text.out, {"  k  acquired  ", ", running true [nightly], fence "});
}

QUEUE_CASE("events: each hand-over of a line is one event")
{
  Process holder = queue.hold("30s");
  queue.add_waiters(3);
  holder.signal(SIGTERM);
  expect_ends(queue.waiters);
  const auto told = events(queue.server);
  CHECK(names(told) == "acquired handed_over handed_over handed_over released");
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(told[i].at("from") == told[i - 1].at("owner"));
    CHECK(told[i].at("fence") > told[i - 1].at("fence"));
  }
  const std::string text = rlock_on(queue.server, {"events", "-k", "k"}).out;
  CHECK_FALSE(has(text, ", from " + told[0].at("token").text()));
  CHECK(std::regex_search(
      text, std::regex("  handed_over  [^ ]+ \\(pid [0-9]+\\), running [^,]+, from [^ ]+@[^ ]+ \\(pid [0-9]+\\)")));
}

SERVER_CASE("events: a lease that expires, found by a query or by the next holder")
{
  REQUIRE(rlock_on(server, {"acquire", "-k", "k", "--lease", "100ms"}).code == 0);
  wait_until([&] { return as_int(server.command({"EXISTS", "k"})) == 0; }, "it has expired");
  CHECK(names(events(server)) == "acquired expired");
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  CHECK(names(events(server)) == "acquired expired acquired released");
}

SERVER_CASE("events: a name without events is told, and that a pattern is no name")
{
  expect_end(rlock_on(server, {"events", "stock"}), 0, {out_is(""), err_is("rlock: no event of stock is known\n")});
  CHECK(has(rlock_on(server, {"events", "st*"}).err, "no event of st* is known (this verb takes names"));
  CHECK(rlock_on(server, {"events", "--json", "stock"}).err.empty());
  CHECK(rlock_on(server, {"events"}).err.empty());
}

SERVER_CASE("events: of all locks, in the order of time, and as they happen")
{
  REQUIRE(rlock_on(server, {"run", "-k", "b", "--", "true"}).code == 0);
  REQUIRE(rlock_on(server, {"run", "-k", "{x}:a", "--", "true"}).code == 0);
  const auto all = events(server, {});
  REQUIRE(names(all) == "acquired released acquired released");
  CHECK(all[0].at("key") == "b");
  CHECK(all[2].at("key") == "{x}:a");
  CHECK(events(server, {"--prefix", "{x}:"}).size() == 2);
  CHECK(events(server, {"-k", "b", "-k", "none"}).size() == 2);

  Process follower = start_on(server, {"events", "--json", "--follow", "-k", "b"});
  wait_until([&] { return json_lines(follower.out()).size() == 2; }, "what was is told");
  REQUIRE(rlock_on(server, {"run", "-k", "b", "--", "true"}).code == 0);
  wait_until([&] { return json_lines(follower.out()).size() == 4; }, "what is new is told");
  CHECK(names(json_lines(follower.out())) == "acquired released acquired released");
}

SERVER_CASE("events: the log of a busy lock is bounded")
{
  for (int i = 0; i < 3; ++i) {
    REQUIRE(rlock_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  }
  for (int i = 0; i < 1000; ++i) {
    server.command({"RPUSH", "rlock:events:{k}", std::string(100, 'x')});
  }
  REQUIRE(rlock_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  CHECK(as_int(server.command({"LLEN", "rlock:events:{k}"})) < 200);
}

ACL_CASE("events: a user with no more rights than rlock acl gives it reads them")
{
  fixture.allow(acl_line("app:*"));
  REQUIRE(fixture.run({"run", "-k", "app:k", "--", "true"}).code == 0);
  const Finished told = fixture.run({"events", "--json", "-k", "app:k"});
  CHECK(told.code == 0);
  CHECK(names(json_lines(told.out)) == "acquired released");
  const Finished all = fixture.run({"events", "--json"});
  CHECK_MESSAGE(json_lines(all.out).size() == 2, all.err);
  const RedisServer second;
  CHECK(fixture.run({"events", "-S", second.url()}).code == 64);
}

ACL_CASE("events: names the missing right to inspect a lock, and how to ask for less")
{
  fixture.allow(acl_line("app:*"));
  REQUIRE(fixture.run({"run", "-k", "app:k", "--", "true"}).code == 0);
  fixture.server.command({"RPUSH", "rlock:events:{other}", "1"});
  const auto refusal = [&](const Words& words) {
    const Finished told = fixture.run(words);
    expect_end(told, 77, {out_is("")});
    CHECK(count(told.err, "\n") == 1);
    CHECK_MESSAGE(has(told.err, ": rlock:events:{other} (rlock acl prints the rules that a user needs"), told.err);
    return told.err;
  };
  CHECK(refusal({"events", "-k", "other"}).ends_with(" needs)\n"));
  CHECK(refusal({"events"}).ends_with(" needs; -k KEY or --prefix PREFIX limits the locks that rlock reads)\n"));
  CHECK(fixture.run({"events", "--prefix", "app:"}).code == 0);
}
