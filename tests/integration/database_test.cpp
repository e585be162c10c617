// SPDX-License-Identifier: Apache-2.0
// Locks in each database that this machine has, by rlock as a process.
#include "support/databases.h"
#include "support/integration.h"
#include "support/skip.h"

using namespace rlock::test;

namespace {

// Runs the test on a new server of each database that is installed.
template <typename Test>
void on_each_database(const Test& test)
{
  int count = 0;
  for (const DatabaseRow& row : databases) {
    if (row.by_default && row.is_installed()) {
      ++count;
      CAPTURE(row.name);
      const auto server = row.start();
      test(*server);
    }
  }
  if (count == 0) {
    skip("no database server (packaging/install-deps.sh databases)");
  }
}

Words with_server(const DatabaseServer& server, Words args)
{
  args.insert(args.begin() + 1, {"-S", server.url()});
  return args;
}

Finished run_on(const DatabaseServer& server, Words args) { return run_rlock(with_server(server, std::move(args))); }
Process start_on(const DatabaseServer& server, Words args) { return start_rlock(with_server(server, std::move(args))); }

bool holds(const DatabaseServer& server, const std::string& key)
{
  return run_on(server, {"status", "--json", key}).out.find("\"held\":true") != std::string::npos;
}

}  // namespace

TEST_CASE("databases: the job runs under the lock, and its exit code is returned")
{
  on_each_database([](DatabaseServer& server) {
    const Finished run = run_on(server, {"run", "-k", "k", "--", "sh", "-c", "echo job; exit 7"});
    CHECK(run.code == 7);
    CHECK(run.out == "job\n");
    CHECK(run.err.empty());
    CHECK_FALSE(holds(server, "k"));
    const std::string history = run_on(server, {"history", "k"}).out;
    CHECK(history.find("failed") != std::string::npos);
  });
}

TEST_CASE("databases: a second run is busy, waits in line, and gets the lock by a message")
{
  on_each_database([](DatabaseServer& server) {
    const auto dir = make_temp_dir("files");
    const auto go = dir / "go";
    Process first =
        start_on(server, {"run", "-k", "k", "--", "sh", "-c", "until [ -e " + go.string() + " ]; do sleep 0.02; done"});
    wait_until([&] { return holds(server, "k"); }, "the lock is held");
    CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 75);
    std::vector<Process> waiters;
    for (int i = 1; i <= 3; ++i) {
      const std::string line = "echo " + std::to_string(i) + " >> " + (dir / "order").string();
      waiters.push_back(start_on(server, {"run", "-k", "k", "--", "sh", "-c", line}));
      wait_until(
          [&] {
            return run_on(server, {"status", "--json", "k"}).out.find("\"place\":" + std::to_string(i)) !=
                   std::string::npos;
          },
          "the waiter is in the queue");
    }
    std::ofstream(go).flush();
    CHECK(first.wait() == success);
    expect_ends(waiters);
    CHECK(text_of(dir / "order") == "1\n2\n3\n");
  });
}

TEST_CASE("databases: after kill -9 of the runner the job is dead before the next one runs")
{
  on_each_database([](DatabaseServer& server) {
    const auto dir = make_temp_dir("files");
    const auto alive = dir / "alive";
    Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "flock", alive.string(), "sleep", "60"});
    wait_until([&] { return holds(server, "k"); }, "the lock is held");
    holder.signal(SIGKILL);
    const Finished next = run_on(server, {"run", "-k", "k", "--", "flock", "-n", alive.string(), "true"});
    CHECK(next.code == 0);
  });
}

TEST_CASE("databases: a crash of the server during the job does not lose the lock")
{
  on_each_database([](DatabaseServer& server) {
    Process holder = start_on(server, {"run", "-k", "k", "--ttl", "6s", "--", "sleep", "60"});
    wait_until([&] { return holds(server, "k"); }, "the lock is held");
    server.kill();
    server.start();
    CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 75);
    holder.signal(SIGTERM);
    CHECK(holder.wait() == died_of(SIGTERM));
    CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 0);
  });
}

TEST_CASE("databases: when the server stands still, the job is stopped before its lease is over")
{
  on_each_database([](DatabaseServer& server) {
    const auto dir = make_temp_dir("files");
    const auto started = dir / "started";
    Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--server-timeout", "500ms", "--", "sh", "-c",
                                       "touch " + started.string() + "; exec sleep 60"});
    wait_until([&] { return std::filesystem::exists(started); }, "the job runs");
    server.stop();
    CHECK(holder.wait() == exited(121));
    server.resume();
  });
}

TEST_CASE("databases: deleted rows end the job, and it says what happened")
{
  on_each_database([](DatabaseServer& server) {
    Process holder = start_on(server, {"run", "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
    wait_until([&] { return holds(server, "k"); }, "the lock is held");
    server.delete_locks();
    CHECK(holder.wait() == exited(121));
    CHECK_MESSAGE(has(holder.err(), "was lost: the server no longer has its data"), holder.err());
  });
}

TEST_CASE("databases: twenty at once exclude each other, with kill -9 among them")
{
  on_each_database([](DatabaseServer& server) {
    const auto dir = make_temp_dir("files");
    const std::string lock = (dir / "judge").string();
    const std::string bad = (dir / "overlap").string();
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
  });
}

TEST_CASE("databases: a commit that was decided before a waiter began to listen is refused")
{
  on_each_database([](DatabaseServer& server) {
    const BootClock clock;
    const auto limit = [&] { return CallLimits{.deadline = clock.now() + 10s, .stop = StopToken::never()}; };
    const auto backend = server.open_backend(clock);
    const auto write = [&](const std::string& version) {
      const record::LogChange no_log;
      auto commit = backend->write_if("k", version, {.bytes = "x", .face = {}, .log = no_log, .messages = {}}, limit());
      REQUIRE_MESSAGE(commit, commit.error().text);
      const auto* done = std::get_if<record::Committed>(&*commit);
      return done == nullptr ? "" : done->version;
    };
    const auto listeners = [&] { return backend->read("k", limit())->listeners; };

    REQUIRE(listeners().empty());
    const std::string first = write("");
    REQUIRE_FALSE(first.empty());
    auto source = backend->listen(std::array{LockChannel{"k", "mine"}}, limit());
    REQUIRE(source);
    CHECK(write(first).empty());
    CHECK(write("").empty());
    CHECK(listeners() == std::vector<std::string>{"mine"});
    source->reset();
    wait_until([&] { return listeners().empty(); }, "the listener that has ended is gone");
    CHECK_FALSE(write(backend->read("k", limit())->version).empty());
  });
}

TEST_CASE("databases: each message arrives once and in order, however fast they follow each other")
{
  on_each_database([](DatabaseServer& server) {
    constexpr int count = 200;
    const BootClock clock;
    const auto limit = [&] { return CallLimits{.deadline = clock.now() + 10s, .stop = StopToken::never()}; };
    const auto hearer = server.open_backend(clock);
    REQUIRE(hearer->read("k", limit()));  // makes the tables
    auto source = hearer->listen(std::array{LockChannel{"k", "other"}}, limit());
    REQUIRE(source);
    REQUIRE((*source)->add(std::array{LockChannel{"k", "mine"}}, limit()));
    std::thread sender([&] {
      const auto backend = server.open_backend(clock);
      const record::LogChange no_log;
      for (int i = 0; i < count;) {
        const std::array message{Message{"mine", std::to_string(i)}};
        const auto state = backend->read("k", limit());
        const auto commit = backend->write_if("k", state->version,
                                              {.bytes = "x", .face = {}, .log = no_log, .messages = message}, limit());
        i += commit && std::holds_alternative<record::Committed>(*commit) ? 1 : 0;
      }
    });
    for (int i = 0; i < count; ++i) {
      const auto heard = (*source)->next(limit());
      const bool is_next = heard && *heard && (*heard)->text == std::to_string(i);
      CHECK(is_next);
      if (!is_next) {
        break;
      }
    }
    sender.join();
  });
}

TEST_CASE("databases: states and logs that are read together are those that are read one by one")
{
  const BootClock clock;
  const auto limit = [&] { return CallLimits{.deadline = clock.now() + 10s, .stop = StopToken::never()}; };
  const std::array<std::string_view, 4> names{"a", "it's \"b\"", "held", "none"};
  for (const DatabaseRow& row : databases) {
    if (!row.is_installed() || row.name.ends_with('3')) {
      continue;
    }
    CAPTURE(row.name);
    const auto server = row.start();
    for (const std::string_view name : std::span(names).first(2)) {
      CHECK(run_on(*server, {"run", "-k", std::string(name), "--", "true"}).code == 0);
    }
    Process holder = start_on(*server, {"run", "-k", "held", "--", "sleep", "60"});
    wait_until([&] { return holds(*server, "held"); }, "the lock is held");
    const auto backend = server->open_backend(clock);
    for (const bool with_logs : {false, true}) {
      const auto states = backend->read_each(names, with_logs, limit());
      REQUIRE_MESSAGE(states, states.error().text);
      CHECK(states->size() >= 3);
      for (const auto& [name, known] : *states) {
        CAPTURE(name);
        const auto one = backend->read(name, limit());
        REQUIRE(one);
        CHECK(known.state.version == one->version);
        CHECK(known.state.bytes == one->bytes);
        CHECK(known.state.listeners == one->listeners);
        CHECK(known.state.time_us > 0);
        CHECK(known.log == (with_logs ? std::optional(*backend->events(name, limit())) : std::nullopt));
      }
    }
    const Finished listed = run_on(*server, {"list", "--all", "--json"});
    CHECK(count(listed.out, "\"outcome\":\"succeeded\"") == 2);
    CHECK(count(listed.out, "\"held\":true") == 1);
    CHECK(run_on(*server, {"history", "--json"}).code == 0);
    holder.signal(SIGTERM);
    holder.wait();
  }
}
