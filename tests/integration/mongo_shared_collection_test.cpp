// SPDX-License-Identifier: Apache-2.0
// The collection of ShedLock in MongoDB. The fixture stands for ShedLock; tests/interop has the real one.
#include "stores/mongo/mongo_backend.h"
#include "support/integration.h"
#include "support/mongo_fixture.h"
#include "support/shared_table.h"

using namespace rlock::test;

namespace {

struct Shared {
  MongoServer server;
  std::string url = server.url("table=shedLock");

  [[nodiscard]] Finished run(Words words) const
  {
    words.insert(words.begin() + 1, {"-S", url});
    return run_rlock(words);
  }
  void wait_for_holder(const std::string& name) const
  {
    wait_until(
        [&] {
          const auto hold = server.shed_hold(name);
          return hold.is_held() && hold.holder != "java";
        },
        "the lock is held");
  }
};

Words try_lock(const std::string& key) { return {"run", "-n", "-k", key, "--", "true"}; }

}  // namespace

TEST_CASE("mongo shared collection: the face says who holds the lock, in both directions")
{
  const Shared shared;
  shared.server.shed_lock("java", 60s);
  const Finished busy = shared.run(try_lock("java"));
  CHECK(busy.code == 75);
  CHECK_MESSAGE(has(busy.err, "held by java"), busy.err);
  CHECK(has(shared.run({"list", "--json"}).out, R"("key":"java","held":true)"));

  Process holder = start_rlock({"run", "-S", shared.url, "-k", "mine", "--", "sleep", "60"});
  shared.wait_for_holder("mine");
  const auto hold = shared.server.shed_hold("mine");
  CHECK(hold.since_ms > 0);
  CHECK(hold.has_record);
  shared.server.shed_lock("mine", 60s);
  CHECK(shared.server.shed_hold("mine").holder == hold.holder);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK_FALSE(shared.server.shed_hold("mine").is_held());
  CHECK(shared.server.shed_hold("mine").holder == hold.holder);  // as ShedLock leaves it
  CHECK(shared.run({"list"}).code == 0);

  shared.server.shed_lock("mine", 2s);
  CHECK(shared.server.shed_hold("mine").holder == "java");
  CHECK(shared.run(try_lock("mine")).code == 75);
  CHECK(shared.run({"run", "-w", "20s", "-k", "mine", "--", "true"}).code == 0);
}

TEST_CASE("mongo shared collection: a waiter keeps the face of ShedLock as it is, and comes after its unlock")
{
  const Shared shared;
  shared.server.shed_lock("k", 60s);
  auto before = shared.server.shed_hold("k");
  CHECK_FALSE(before.has_record);
  Process waiter = start_rlock({"run", "-S", shared.url, "-k", "k", "--", "true"});
  wait_until([&] { return shared.server.shed_hold("k").has_record; }, "it waits");
  before.has_record = true;
  CHECK(shared.server.shed_hold("k") == before);
  shared.server.shed_unlock("k");
  CHECK(waiter.wait(20s) == success);
}

TEST_CASE("mongo shared collection: a lock that only rlock has had and waited for is free for ShedLock")
{
  const Shared shared;
  Process holder = start_rlock({"run", "-S", shared.url, "-k", "k", "--", "sleep", "60"});
  shared.wait_for_holder("k");
  Process waiter = start_rlock({"run", "-S", shared.url, "-k", "k", "--", "true"});
  wait_until([&] { return has(shared.run({"status", "k"}).out, "waiting"); }, "it waits");
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
  CHECK(waiter.wait() == success);
  shared.server.shed_lock("k", 60s);
  CHECK(shared.server.shed_hold("k").holder == "java");
  CHECK(shared.run(try_lock("k")).code == 75);
}

TEST_CASE("mongo shared collection: a commit that was decided before ShedLock wrote is refused")
{
  const Shared shared;
  const BootClock clock;
  const auto backend = mongo::open_backend(mongo::connection_spec(*mongo::parse_mongo_url(shared.url)), clock,
                                           std::make_unique<SystemRng>());
  expect_exact_commits(
      *backend, [&](const std::string& name) { shared.server.shed_lock(name, 60s); },
      [&](const std::string& name) { shared.server.shed_unlock(name); });
}

TEST_CASE("mongo shared collection: an unlock by another program is a loss")
{
  const Shared shared;
  Process holder = start_rlock({"run", "-S", shared.url, "-k", "k", "--ttl", "3s", "--", "sleep", "60"});
  shared.wait_for_holder("k");
  shared.server.shed_unlock("k");
  CHECK(holder.wait() == exited(121));
  CHECK_MESSAGE(has(holder.err(), "was lost"), holder.err());
}

TEST_CASE("mongo shared collection: other kinds, and collections that are another's, are 78")
{
  const Shared shared;
  CHECK(shared.run({"run", "-s", "-k", "k", "--", "true"}).code == 78);
  CHECK(shared.run({"run", "--permits", "2", "-k", "k", "--", "true"}).code == 78);
  shared.server.add_foreign_document("k");
  for (const Words& wait : {Words{"-n"}, Words{"-w", "1s"}}) {
    Words words{"run", "-S", shared.server.url("table=rlock_lock")};
    words.insert(words.end(), wait.begin(), wait.end());
    words.insert(words.end(), {"-k", "k", "--", "true"});
    const Finished foreign = run_rlock(words);
    CHECK(foreign.code == 78);
    CHECK_MESSAGE(has(foreign.err, "is no lock of ShedLock"), foreign.err);
  }
  shared.server.shed_lock("java", 60s);
  const Finished unasked =
      run_rlock({"run", "-n", "-S", shared.server.url("collection=shedLock"), "-k", "java", "--", "true"});
  CHECK(unasked.code == 78);
  CHECK_MESSAGE(has(unasked.err, "table=shedLock if it is that of ShedLock"), unasked.err);
}
