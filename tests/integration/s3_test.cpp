// SPDX-License-Identifier: Apache-2.0
// Locks in a bucket, by rlock as a process, on moto.
#include "engine/record_store.h"
#include "support/integration.h"
#include "support/job_lines.h"
#include "support/limits.h"
#include "support/paths.h"
#include "support/s3_fixture.h"

using namespace rlock::test;

namespace {

// The environment of a process whose wall clock is so far ahead.
ProcessOptions with_clock_ahead(std::chrono::nanoseconds ahead)
{
  const auto file = home_dir() / "clock";
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&ahead), sizeof ahead);
  ProcessOptions options;
  options.env["LD_PRELOAD"] = RLOCK_PRELOAD_CLOCK;
  options.env["RLOCK_TEST_CLOCK"] = file.string();
  return options;
}

}  // namespace

S3_CASE("s3: the verbs keep, show, freeze and take a lock in a bucket")
{
  const auto on = [&](Words words) { return run_on(server, std::move(words)); };
  CHECK(on({"run", "-k", "a/b", "--", "sh", "-c", "exit 3"}).code == 3);
  CHECK(has(on({"history", "a/b"}).out, "failed"));
  CHECK(on({"once", "-k", "o", "--for", "1h", "--", "echo", "ran"}).out == "ran\n");
  CHECK(on({"once", "-k", "o", "--for", "1h", "--", "echo", "ran"}).out.empty());
  (void)succeeded(on({"acquire", "-k", "k", "--lease", "60s"}));
  CHECK(on({"run", "-n", "-k", "k", "--", "true"}).code == 75);
  CHECK(has(on({"list"}).out, "k "));
  CHECK(on({"force-unlock", "-k", "k", "--now", "--yes"}).code == 0);
  CHECK(on({"status", "k"}).code == 1);
  CHECK(on({"freeze", "k", "--for", "60s", "--reason", "works"}).code == 0);
  CHECK(has(on({"status", "k"}).out, "works"));
  CHECK(on({"thaw", "k"}).code == 0);
  CHECK(server.lock_names() == std::vector<std::string>{"a/b", "k", "o"});
}

S3_CASE(
    "s3: a store that ignores the conditions of a write is refused with 78 by the first acquire, and failed by doctor")
{
  CHECK(has(run_on(server, {"doctor"}).out, "ok       conditions"));
  server.ignore_conditions();
  expect_end(run_on(server, {"doctor"}), 1, {out_has("fail     conditions    it ignores If-None-Match")});
  const std::string elsewhere = server.url("locks/other", "");  // nobody has found it fit there
  expect_end(run_at(elsewhere, {"run", "-k", "k", "--", "true"}), 78, {err_has("it ignores If-None-Match")});
}

S3_CASE("s3: a job whose commit has lost its answer runs once, and the lock is free after it")
{
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  server.lose_next_answer();
  const auto ran = home_dir() / "ran";
  const Finished run =
      run_on(server, {"run", "--wait-server", "20s", "-k", "k", "--", "sh", "-c", "echo x >>" + ran.string()});
  CHECK_MESSAGE(run.code == 0, run.err);
  CHECK(text_of(ran) == "x\n");
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 0);
}

S3_CASE("s3: a client that was stopped between its read and its write changes nothing, whatever came between")
{
  const BootClock clock;
  const auto stopped = server.open_backend(clock);
  const auto other = server.open_backend(clock);
  const record::LogChange no_log;
  const record::Change change{.bytes = "new", .face = {}, .log = no_log, .messages = {}};
  const auto commit = [&](record::Backend& backend, const record::Snapshot& state) {
    return must(backend.write_if("k", state.version, change, soon()));
  };
  const auto is_conflict = [](const record::Commit& done) { return std::holds_alternative<record::Conflict>(done); };
  const auto seen = must(stopped->read("k", soon()));  // there is none
  CHECK_FALSE(is_conflict(commit(*other, must(other->read("k", soon())))));
  CHECK(is_conflict(commit(*stopped, seen)));
  const auto again = must(stopped->read("k", soon()));
  CHECK_FALSE(is_conflict(commit(*other, must(other->read("k", soon())))));  // the same bytes
  CHECK(is_conflict(commit(*stopped, again)));
  CHECK(must(other->read("k", soon())).version != again.version);
}

S3_CASE("s3: a lease counts from a second before its request, because the store tells whole seconds")
{
  const BootClock clock;
  const auto store = record::store_on(server.open_backend(clock), clock);
  const LockSpec spec{
      .name = must(LockName::parse("k")), .kind = Plain{}, .ttl = 30s, .who = {.host = "h", .pid = 1}, .once = {}};
  SystemRng rng;
  const Instant before = clock.now();
  const auto attempt = must(store->acquire(spec, Owner::fresh(rng, 1), {}, soon()));
  CHECK(std::get<Granted>(attempt).lease.from < before);
  CHECK(std::get<Granted>(attempt).lease.length == 30s);
}

S3_CASE("s3: the duration that a keeper tells begins with the grant, not with the lease")
{
  const std::string url = server.url("locks/cron", "clock-skew=10s");  // its leases begin 11 s before their grants
  const auto told = home_dir() / "told";
  Process script({"sleep", "60"});
  const Finished taken =
      succeeded(run_at(url, {"acquire", "-k", "k", "--ttl", "60s", "--pid", std::to_string(script.pid()), "--notify",
                             "echo $RLOCK_DURATION_MS >" + told.string()}));
  (void)succeeded(run_at(url, {"release", "-k", "k", "--token", first_line(taken.out)}));
  wait_until([&] { return text_of(told).ends_with('\n'); }, "the keeper tells the duration", 10s);
  CHECK(std::stoi(text_of(told)) < 10'000);
}

S3_CASE("s3: the clocks of clients decide nothing, and one that the store refuses is told with 69")
{
  const auto go = home_dir() / "go";
  Process holder = start_at(server.url(), with_job({"run", "--ttl", "15s", "-k", "k"}, shell(until_exists(go))),
                            with_clock_ahead(10min));
  wait_until([&] { return is_held(server); }, "the lock is held");
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 75);
  create(go);
  CHECK(holder.wait() == success);
  CHECK(run_on(server, {"run", "-n", "-k", "k", "--", "true"}).code == 0);
  expect_end(run_at(server.url(), {"run", "-k", "k", "--", "true"}, with_clock_ahead(1h)), 69,
             {err_has("this host's clock is wrong")});
}

S3_CASE("s3: a waiter gets the lock within a few seconds of its release")
{
  const auto go = home_dir() / "go";
  Process holder = start_on(server, with_job({"run", "-k", "k"}, shell(until_exists(go))));
  wait_until([&] { return is_held(server); }, "the lock is held");
  Process waiter = start_on(server, {"run", "-k", "k", "--", "true"});
  await_place(server.url(), 1);
  create(go);
  CHECK(holder.wait() == success);
  CHECK(waiter.wait(10s) == success);
}

S3_CASE("s3: what is not there and what is not rlock's is told with the exit code of its kind")
{
  server.put("k", "somebody's");
  expect_end(run_on(server, {"run", "-k", "k", "--", "true"}), 78, {err_has("is no record of this version of rlock")});
  expect_end(run_at(server.url("no-such-bucket", ""), {"run", "-k", "k", "--", "true"}), 69, {err_has("NoSuchBucket")});
  std::string anonymous = server.url();
  anonymous.erase(anonymous.find("test:secret@"), 12);
  expect_end(run_at(anonymous, {"run", "-k", "k", "--", "true"}, {.env = {{"HOME", "/nonexistent"}}}), 77,
             {err_has("AWS_ACCESS_KEY_ID")});
  CHECK(run_on(server, {"run", "-k", std::string(500, '/'), "--", "true"}).code == 78);
}
