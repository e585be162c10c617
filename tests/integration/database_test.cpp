// SPDX-License-Identifier: Apache-2.0
// Locks in each database that this machine has, by rlock as a process.
#include "support/databases.h"
#include "support/integration.h"
#include "support/job_lines.h"
#include "support/limits.h"

using namespace rlock::test;

namespace {

struct Write {
  std::string bytes = "x";
  std::string holder = {};
  record::LogChange log = {};
  std::vector<Message> messages = {};
};

// The version after the commit; empty: a conflict.
std::string write(record::Backend& backend, const std::string& version, const Write& what = {})
{
  const std::int64_t until_us = what.holder.empty() ? 0 : 4'000'000'000'000'000;
  const auto commit =
      must(backend.write_if("k", version,
                            {.bytes = what.bytes,
                             .face = {.holder = what.holder, .until_us = until_us, .forget_us = until_us},
                             .log = what.log,
                             .messages = what.messages},
                            soon()));
  const auto* const done = std::get_if<record::Committed>(&commit);
  return done == nullptr ? "" : done->version;
}

}  // namespace

DATABASE_CASE("the job runs under the lock, and its exit code is returned")
{
  expect_end(run_on(server, {"run", "-k", "k", "--", "sh", "-c", "echo job; exit 7"}), 7,
             {out_is("job\n"), err_is("")});
  CHECK(server.lock_names() == std::vector<std::string>{"k"});
  CHECK_FALSE(is_held(server));
  const std::string history = run_on(server, {"history", "k"}).out;
  CHECK(history.find("failed") != std::string::npos);
}

DATABASE_CASE("a second run is busy, waits in line, and gets the lock by a message")
{
  const auto go = home_dir() / "go";
  Process first = start_on(server, with_job({"run", "-k", "k"}, shell(until_exists(go))));
  wait_until([&] { return is_held(server); }, "the lock is held");
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  std::vector<Process> waiters;
  for (int i = 1; i <= 3; ++i) {
    waiters.push_back(start_on(server, with_job({"run", "-k", "k"}, shell(noting(std::to_string(i))))));
    await_place(server.url(), i);
  }
  create(go);
  CHECK(first.wait() == success);
  expect_ends(waiters);
  CHECK(order() == "1\n2\n3\n");
}

DATABASE_CASE("after kill -9 of the runner the job is dead before the next one runs")
{
  const auto alive = home_dir() / "alive";
  Process holder = held_run(server, {"--ttl", "3s"}, {"flock", alive.string(), "sleep", "60"});
  holder.signal(SIGKILL);
  const Finished next = run_on(server, {"run", "-k", "k", "--", "flock", "-n", alive.string(), "true"});
  CHECK(next.code == 0);
}

DATABASE_CASE("a crash of the server during the job does not lose the lock")
{
  Process holder = held_run(server, {"--ttl", "6s"});
  server.kill();
  server.start();
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 0);
}

DATABASE_CASE("when the server stands still, the job is stopped before its lease is over")
{
  const auto started = home_dir() / "started";
  Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--server-timeout", "500ms", "--", "sh", "-c",
                                     "touch " + started.string() + "; exec sleep 60"});
  wait_until([&] { return std::filesystem::exists(started); }, "the job runs");
  server.stop();
  CHECK(holder.wait() == exited(121));
  server.resume();
}

DATABASE_CASE("deleted rows end the job, and it says what happened")
{
  Process holder = held_run(server, {"--ttl", "3s"});
  const auto is_over = [&] {
    server
        .delete_locks();  // again, because a renewal may come between the deletions of two nodes and write the record anew
    return !holder.running();
  };
  wait_until(is_over, "the loss is noticed");
  expect_end(holder, exited(121), {err_has("was lost: the server no longer has its data")});
}

DATABASE_CASE("twenty at once exclude each other, with kill -9 among them")
{
  const std::string lock = (home_dir() / "judge").string();
  const std::string bad = (home_dir() / "overlap").string();
  const std::string job = "flock -n " + lock + " sh -c 'sleep 0.02' || echo overlap >> " + bad;
  std::vector<Process> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "sh", "-c", job}));
    if (i % 7 == 3) {
      all[all.size() - 3].signal(SIGKILL);
    }
  }
  for (Process& each : all) {
    const Exit end = each.wait(60s);
    CHECK((end == success || end == died_of(SIGKILL)));
  }
  CHECK(!std::filesystem::exists(bad));
}

DATABASE_CASE("a commit replaces exactly the state that was read")
{
  const BootClock clock;
  const auto one = server.open_backend(clock);
  const auto two = server.open_backend(clock);
  using Which = record::Backend::Which;
  const auto empty = must(one->read("k", soon()));
  CHECK(empty.bytes.empty());
  const std::string first = write(*one, empty.version, {.bytes = "first", .holder = "me"});
  CHECK_FALSE(first.empty());
  CHECK(write(*two, empty.version, {.bytes = "late"}).empty());
  CHECK(must(two->read("k", soon())).bytes == "first");
  CHECK(must(two->list("*", Which::held, soon())) == std::vector<std::string>{"k"});
  CHECK(must(two->list("other*", Which::held, soon())).empty());
  const std::string second = write(*one, first, {.bytes = "second"});  // without another read
  CHECK_FALSE(second.empty());
  CHECK(must(two->list("*", Which::held, soon())).empty());
  CHECK(write(*two, first, {.bytes = "late"}).empty());
  must(one->erase("k", soon()));
  CHECK(write(*one, second, {.bytes = "late"}).empty());
  CHECK(server.lock_names().empty());
}

DATABASE_CASE("the event log is written, changed and cut with the commits, and found")
{
  using Texts = std::vector<std::string>;
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  const auto events = [&] { return must(backend->events("k", soon())); };
  std::string version =
      write(*backend, must(backend->read("k", soon())).version, {.log = {.written = {{1, "a"}, {2, "b\xff"}}}});
  CHECK(events() == Texts{"a", "b\xff"});
  for (int id = 3; id <= 11; ++id) {
    version = write(*backend, version, {.log = {.written = {{id, std::to_string(id)}}}});
  }
  CHECK(events() == Texts{"a", "b\xff", "3", "4", "5", "6", "7", "8", "9", "10", "11"});
  version = write(*backend, version, {.log = {.written = {{11, "x"}, {12, "y"}}, .first_kept = 10}});
  CHECK(events() == Texts{"10", "x", "y"});
  const std::string last =
      write(*backend, version, {.log = {.written = {{11, "new"}}, .first_kept = 11, .last_kept = 11}});
  CHECK(events() == Texts{"new"});
  CHECK(write(*backend, version, {.log = {.written = {}, .first_kept = 12}}).empty());
  CHECK(events() == Texts{"new"});
  CHECK(must(backend->events("another", soon())).empty());
  CHECK(must(backend->list("*", record::Backend::Which::with_events, soon())) == Texts{"k"});
  must(backend->erase("k", soon()));
  CHECK(events().empty());
  CHECK(server.lock_names().empty());
}

DATABASE_CASE("a commit that was decided before a waiter began to listen is refused, and the waiter hears what comes")
{
  const BootClock clock;
  const auto sender = server.open_backend(clock);
  const auto hearer = server.open_backend(clock);
  const auto state = [&] { return must(sender->read("k", soon())); };
  REQUIRE(state().listeners.empty());
  const std::string before = write(*sender, state().version, {.messages = {{"a", "before"}}});
  REQUIRE_FALSE(before.empty());
  auto source = must(hearer->listen(std::array{LockChannel{"k", "a"}, LockChannel{"k", "b"}}, soon()));
  CHECK(write(*sender, before).empty());
  CHECK(write(*sender, "").empty());
  CHECK(state().listeners == std::vector<std::string>{"a", "b"});
  CHECK_FALSE(must(source->next(within(20ms))));
  const std::string first =
      write(*sender, state().version, {.messages = {{"a", "1"}, {"b", "2"}, {"a", "3"}, {"c", "-"}}});
  CHECK_FALSE(write(*sender, first, {.messages = {{"a", "4"}}}).empty());
  std::vector<std::string> heard;
  while (heard.size() < 4) {
    const auto message = must(source->next(soon()));
    REQUIRE(message);
    heard.push_back(message->channel + message->text);
  }
  std::ranges::sort(heard);
  CHECK(heard == std::vector<std::string>{"a1", "a3", "a4", "b2"});
  CHECK_FALSE(must(source->next(within(500ms))));
  must(hearer->read("k", soon()));  // the same connection
  source.reset();
  wait_until([&] { return state().listeners.empty(); }, "the listener that has ended is gone");
  CHECK_FALSE(write(*sender, state().version).empty());
}

DATABASE_CASE("each message arrives once and in order, however fast they follow each other")
{
  constexpr int count = 200;
  const BootClock clock;
  const auto hearer = server.open_backend(clock);
  REQUIRE(hearer->read("k", soon()));  // makes the tables
  auto source = hearer->listen(std::array{LockChannel{"k", "other"}}, soon());
  REQUIRE(source);
  REQUIRE((*source)->add(std::array{LockChannel{"k", "mine"}}, soon()));
  std::thread sender([&] {
    const auto backend = server.open_backend(clock);
    const record::LogChange no_log;
    for (int i = 0; i < count;) {
      const std::array message{Message{"mine", std::to_string(i)}};
      const auto state = backend->read("k", soon());
      const auto commit = backend->write_if("k", state->version,
                                            {.bytes = "x", .face = {}, .log = no_log, .messages = message}, soon());
      i += commit && std::holds_alternative<record::Committed>(*commit) ? 1 : 0;
    }
  });
  for (int i = 0; i < count; ++i) {
    const auto heard = (*source)->next(soon());
    const bool is_next = heard && *heard && (*heard)->text == std::to_string(i);
    CHECK(is_next);
    if (!is_next) {
      break;
    }
  }
  sender.join();
}

DATABASE_CASE("states and logs that are read together are those that are read one by one")
{
  const BootClock clock;
  const std::array<std::string_view, 4> names{"a", "it's \"b\"", "held", "none"};
  for (const std::string_view name : std::span(names).first(2)) {
    CHECK(run_on(server, {"run", "-k", std::string(name), "--", "true"}).code == 0);
  }
  Process holder = start_on(server, {"run", "-k", "held", "--", "sleep", "60"});
  const auto backend = server.open_backend(clock);
  wait_until([&] { return is_held(server, "held"); }, "the lock is held");
  for (const bool with_logs : {false, true}) {
    record::StatesAndLogs states;
    std::map<std::string, record::Snapshot> one_by_one;
    const auto is_same_version = [&](const auto& each) {
      one_by_one[each.first] = must(backend->read(each.first, soon()));
      return one_by_one[each.first].version == each.second.state.version;
    };
    const auto are_read = [&] {
      states = must(backend->read_each(names, with_logs, soon()));
      return std::ranges::all_of(states, is_same_version);
    };
    wait_until(are_read, "no record changes between the reads");  // as when the holder begins to listen
    CHECK(states.size() >= 3);
    for (const auto& each : states) {
      const std::string& name = each.first;
      const record::StateAndLog& known = each.second;
      CAPTURE(name);
      CHECK(known.state.bytes == one_by_one[name].bytes);
      CHECK(known.state.listeners == one_by_one[name].listeners);
      CHECK(known.state.time_us > 0);
      CHECK(known.log == (with_logs ? std::optional(must(backend->events(name, soon()))) : std::nullopt));
    }
  }
  const Finished listed = run_on(server, {"list", "--all", "--json"});
  CHECK(count(listed.out, "\"outcome\":\"succeeded\"") == 2);
  CHECK(count(listed.out, "\"held\":true") == 1);
  CHECK(run_on(server, {"history", "--json"}).code == 0);
  holder.signal(SIGTERM);
  holder.wait();
}
