// SPDX-License-Identifier: Apache-2.0
// What an operator of MongoDB does with rlock: doctor, acl, bench; and what is refused.
#include "support/integration.h"
#include "support/mongo_fixture.h"
#include "support/skip.h"

using namespace rlock::test;

MONGO_CASE("mongo doctor: a server whose updates are not atomic fails")
{
  const Finished text = run_on(server, {"doctor"});
  CHECK(has(run_on(server, {"doctor", "--json"}).out, R"({"check":"messages","status":"ok")"));
  if (server.is_ferretdb()) {
    expect_end(text, 1, {out_has("fail     version       FerretDB v1.")});
  }
}

TEST_CASE("mongo doctor: the only member of a replica set")
{
  const MongoServer server({.replica_set = "rs0"});
  const Finished text = run_at(server.url(), {"doctor"});
  CHECK(has(text.out, "ok       role          primary of the replica set rs0"));
  CHECK(has(text.out, "ok       messages      a waiter looks for messages"));
}

TEST_CASE("mongo acl: prints what mongosh makes a role and a user with, without a request")
{
  skip_if(!has_mongo(), "no libmongoc");
  const Finished printed = run_at("mongodb://127.0.0.1:1/app", {"acl", "--user", "de\"ploy"});
  CHECK(printed.code == 0);
  CHECK(printed.out.starts_with("db = db.getSiblingDB(\"app\")\n"));
  CHECK(has(printed.out, "db.createRole({role: \"rlock\""));
  CHECK(has(printed.out, R"(actions: ["find", "insert", "update", "remove"])"));
  CHECK(has(printed.out, R"(db.createUser({user: "de\"ploy", pwd: passwordPrompt(), roles: ["rlock"]}))"));
  CHECK(has(printed.out, R"(db.getCollection("rlock_lock").createIndex({locked_by: 1}, {sparse: true}))"));
}

TEST_CASE("mongo acl: prints the collection of the URL")
{
  skip_if(!has_mongo(), "no libmongoc");
  const Finished own = run_at("mongodb://127.0.0.1:1/app?collection=my%2Dlocks", {"acl", "--user", "deploy"});
  CHECK(has(own.out, R"(db.getCollection("my-locks").createIndex)"));
  CHECK(has(own.out, R"({resource: {db: db.getName(), collection: "my-locks"})"));
  CHECK(has(own.out, R"(roles: ["rlock_my-locks"])"));
  CHECK_FALSE(has(own.out, "rlock_lock"));
  const Finished shared = run_at("mongodb://127.0.0.1:1/app?table=shedLock", {"acl", "--user", "deploy"});
  CHECK(has(shared.out, R"({resource: {db: db.getName(), collection: "shedLock"})"));
  CHECK_FALSE(has(shared.out, "createCollection"));
}

MONGO_CASE("mongo: locks of another collection are other locks")
{
  Process holder = start_rlock({"run", "-S", server.url("collection=locks"), "-k", "k", "--", "sleep", "60"});
  wait_until([&] { return has(run_at(server.url("collection=locks"), {"list"}).out, "k"); }, "the lock is held");
  CHECK(run_at(server.url(), {"run", "-n", "-k", "k", "--", "true"}).code == 0);
  CHECK(run_at(server.url("collection=locks"), {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  holder.signal(SIGTERM);
  CHECK(holder.wait() == died_of(SIGTERM));
}
