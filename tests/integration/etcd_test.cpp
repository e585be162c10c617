// SPDX-License-Identifier: Apache-2.0
// Locks in etcd, by rlock as a process.
#include "support/etcd_fixture.h"
#include "support/integration.h"
#include "support/job_lines.h"
#include "support/limits.h"

using namespace rlock::test;

namespace {

std::string keys_in(const EtcdServer& server) { return server.etcdctl({"get", "--prefix", "--keys-only", "app/"}); }

}  // namespace

ETCD_CASE("etcd: no lease, presence or listener is left behind by a holder and its waiter")
{
  const auto go = home_dir() / "go";
  Process holder = start_on(server, with_job({"run", "-k", "k"}, shell(until_exists(go))));
  wait_until([&] { return is_held(server); }, "the lock is held");
  Process waiter = start_on(server, {"run", "-k", "k", "--", "true"});
  await_place(server.url(), 1);
  create(go);
  CHECK(holder.wait() == success);
  CHECK(waiter.wait() == success);
  for (const char* kind : {"app/presence/", "app/listener/", "app/message/"}) {
    wait_until([&] { return !has(keys_in(server), kind); }, std::string("nothing is left at ") + kind);
  }
  CHECK(has(server.etcdctl({"lease", "list"}), "found 0 leases"));
}

ETCD_CASE("etcd: a revoked lease ends the hold, and the next one gets the lock")
{
  Process holder = held_run(server, {"--ttl", "6s"});
  for (const std::string& line : lines_of(server.etcdctl({"lease", "list"}))) {
    if (line.size() == 16) {
      [[maybe_unused]] const std::string out = server.etcdctl({"lease", "revoke", line});
    }
  }
  CHECK(run_on(server, {"run", "-w", "10", "-k", "k", "--", "true"}).code == 0);
  CHECK(holder.wait() == exited(121));
}

TEST_CASE("etcd: a stopped node of three costs no lock")
{
  EtcdServer server({.nodes = 3});
  const auto go = home_dir() / "go";
  Process holder = start_on(
      server, {"run", "-k", "k", "--ttl", "12s", "--server-timeout", "2s", "--", "sh", "-c", until_exists(go)});
  wait_until([&] { return is_held(server); }, "the lock is held");
  const std::size_t leader = server.leader();
  server.stop_member(leader);
  const Finished second = run_on(server, {"run", "-w", "15s", "--wait-server", "15s", "-k", "k", "--", "true"});
  CHECK_MESSAGE(second.code == 75, second.err);
  CHECK(holder.running());
  create(go);
  CHECK_MESSAGE(holder.wait(30s) == success, holder.err());
  server.resume_member(leader);
}

TEST_CASE("etcd: a run that begins when the leader loses the other members is served by them")
{
  EtcdServer server({.nodes = 3, .relays_peers = true});
  CHECK(run_on(server, {"run", "-k", "k", "--", "true"}).code == 0);
  server.cut_off_member(server.leader());
  std::vector<Process> runs;
  for (int i = 0; i < 8; ++i) {
    const std::string key = "k" + std::to_string(i);
    runs.push_back(start_on(server, {"run", "-n", "--server-timeout", "9s", "-k", key, "--", "true"}));
  }
  expect_ends(runs);
}

TEST_CASE("etcd: a job goes on while the space of etcd is used up, and its release frees the lock")
{
  const EtcdServer server({.args = {"--quota-backend-bytes=16777216"}});
  const auto go = home_dir() / "go";
  Process holder = held_run(server, {"--ttl", "3s"}, {"sh", "-c", until_exists(go)});
  const BootClock clock;
  etcd::Connection connection(server.spec(server.url()), clock, std::make_unique<SystemRng>());
  etcd::Txn fill;
  fill.success.emplace_back(etcd::Put{.key = "fill", .value = std::string(1'000'000, 'x')});
  wait_until([&] { return !connection.txn(fill, soon()); }, "etcd takes no more");
  CHECK(has(connection.refusal().text, "space exceeded"));
  clock.sleep_until(clock.now() + 4s, StopToken::never());  // longer than the lease, so the job depends on renewals
  CHECK(holder.running());
  create(go);
  const Instant ended = clock.now();
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK(clock.now() - ended < 2s);
  CHECK(has(holder.err(), "released k, but the server cannot note how the job ended: "));
  CHECK(has(run_on(server, {"status", "k"}).out, "k: free"));
  CHECK(has(server.etcdctl({"lease", "list"}), "found 0 leases"));
}

TEST_CASE("etcd: what cannot be is refused before a request, with the reason")
{
  const auto refused = [](Words options) {
    Words all = joined({"run", "-S", "etcd://127.0.0.1:1/app"}, options);
    const Finished run = run_rlock(joined(all, {"-k", "k", "--", "true"}));
    CHECK(run.code == 64);
    return run.err;
  };
  CHECK(has(refused({"--sync", "1"}), "every write is on a majority of the members of etcd already"));
  CHECK(has(refused({"-S", "redis://127.0.0.1:1"}), "an etcd cluster is no part of a quorum"));
  CHECK(has(refused({"--cacert", "/nowhere"}), "etcd:// is without TLS (try etcds://)"));
  expect_end(run_rlock({"run", "-S", "etcd://u:hunter2@a/p?x=1", "-k", "k", "--", "true"}), 64,
             {err_has("it has no parameters")});
  expect_end(run_rlock({"run", "-S", "etcd://127.0.0.1:1", "-k", "k", "--", "true"}), 69,
             {err_has("cannot reach etcd://127.0.0.1:1: connection refused")});
}

ETCD_CASE("etcd: a user with the rights that rlock acl prints keeps locks there, and another one has none")
{
  for (const std::string& line : lines_of(run_on(server, {"acl", "--user", "deploy"}).out)) {
    std::istringstream words(line);
    Words argv;
    for (std::string word; words >> word;) {
      std::erase(word, '\'');
      argv.push_back(word);
    }
    REQUIRE(argv.front() == "etcdctl");
    argv.erase(argv.begin());
    if (argv[0] == "user" && argv[1] == "add") {
      argv.back() += ":secret";  // else etcdctl asks for the password
    }
    [[maybe_unused]] const std::string out = server.etcdctl(argv);
  }
  server.demand_login("root");
  [[maybe_unused]] const std::string out = server.etcdctl({"user", "add", "other:other"});
  const auto as = [&](const std::string& login) {
    return run_rlock({"run", "-S", server.url("app", login), "-k", "k", "--", "true"});
  };
  const Finished run = as("deploy:secret@");
  CHECK_MESSAGE(run.code == 0, run.err);
  expect_end(as("other:other@"), 77, {err_has("rlock acl prints the role that rlock needs")});
  CHECK(as("deploy:wrong@").code == 77);
}

AUTHORITY_CASE("etcd: over TLS with a client certificate")
{
  const EtcdServer server({.authority = &authority});
  const Certificate own = authority.sign("DNS:client");
  const Words options{"--cacert", authority.file(), "--cert", own.file, "--tls-key", own.key};
  const Finished run = run_on(server, joined(joined({"run"}, options), {"-k", "k", "--", "true"}));
  CHECK_MESSAGE(run.code == 0, run.err);
  expect_end(run_on(server, {"run", "--cacert", authority.file(), "-k", "k", "--", "true"}), 77,
             {err_has("wants a client certificate (give --cert and --tls-key)")});
}

ETCD_CASE("etcd: a password that is rotated while a job runs is read again from its file")
{
  const auto file = home_dir() / "password";
  std::ofstream(file) << "root\n";
  server.demand_login("root");
  const Words login{"-S", server.url("app", "root@"), "--password-file", file.string()};
  const auto go = home_dir() / "go";
  Process holder = start_rlock(
      joined(joined({"run"}, login), {"-k", "k", "--ttl", "6s", "--", "sh", "-c",
                                      "echo ready; until [ -e " + go.string() + " ]; do sleep 0.05; done"}));
  wait_until([&] { return holder.out() == "ready\n"; }, "the job runs");
  std::ofstream(file) << "rotated\n";  // read when the server has refused the old one
  Process rotation({"etcdctl", "--endpoints=http://127.0.0.1:" + std::to_string(server.port_of(0)), "--user=root:root",
                    "user", "passwd", "root", "--interactive=false"},
                   {.env = {{"ETCDCTL_API", "3"}}, .input = "rotated\n"});
  CHECK_MESSAGE(rotation.wait(30s) == success, rotation.err());
  CHECK(run_rlock({"run", "-S", server.url("app", "root:root@"), "-k", "other", "--", "true"}).code == 77);
  const auto rotated = std::chrono::steady_clock::now();
  wait_until([&] { return !holder.running() || std::chrono::steady_clock::now() - rotated > 13s; }, "two ttls pass");
  create(go);
  CHECK_MESSAGE(holder.wait() == success, holder.err());
  CHECK(run_rlock(joined(joined({"run"}, login), {"-k", "k", "-w", "5s", "--", "true"})).code == 0);
}

TEST_CASE("etcd acl: a key, or a beginning of keys, adds what --format etcd needs, and another glob is refused")
{
  const auto printed = [](const Words& keys) {
    return run_rlock(joined({"acl", "-S", "etcd://127.0.0.1:1/app", "--user", "deploy"}, keys));
  };
  const auto grant = [](const std::string& role, const std::string& prefix) {
    return "etcdctl role grant-permission '" + role + "' readwrite --prefix=true '" + prefix + "'\n";
  };
  CHECK_FALSE(has(printed({}).out, "'stock/'"));
  CHECK(has(printed({"-k", "stock"}).out, grant("rlock:app:stock", "stock/")));
  CHECK(has(printed({"--prefix", "app:", "stock", "nightly"}).out,
            grant("rlock:app:app:stock:app:nightly", "app:nightly/")));
  CHECK(has(printed({"app:*"}).out, grant("rlock:app:app:*", "app:")));
  CHECK(printed({"a*b"}).code == 64);
  CHECK(has(printed({"a*b"}).err, "a role of etcd is for a lock, or for a beginning"));
}

TEST_CASE("etcd acl: users with other keys have other roles, and a certificate needs no password")
{
  const auto printed = [](const std::string& url) { return run_rlock({"acl", "-S", url, "--user", "deploy"}).out; };
  const auto role = [](const std::string& name) {
    return "etcdctl role add " + name + "\netcdctl role grant-permission " + name + " readwrite --prefix=true ";
  };
  CHECK_MESSAGE(has(printed("etcd://e1"), role("rlock") + "'rlock/"), printed("etcd://e1"));
  CHECK(has(printed("etcd://e1/app"), role("'rlock:app'") + "'app/"));
  CHECK(has(printed("etcd://e1/app"), "etcdctl user grant-role 'deploy' 'rlock:app'\n"));
  CHECK_FALSE(has(printed("etcd://e1/app"), "--no-password"));
  CHECK(has(printed("etcds://e1/app"), "--no-password"));
}

ETCD_CASE("etcd: --ttl below the shortest lease is told by -v and by doctor")
{
  expect_end(run_on(server, {"run", "-v", "--ttl", "1s", "-k", "k", "--", "true"}), 0,
             {err_has("the server gives a lease of 2s where --ttl is 1s")});
  CHECK_FALSE(has(run_on(server, {"run", "-v", "-k", "k", "--", "true"}).err, "gives a lease"));
  const Finished doctor = run_on(server, {"doctor", "--ttl", "1s"});
  CHECK_MESSAGE(has(doctor.out, "warn     lease         a lease of 2s where --ttl is 1s: the shortest"), doctor.out);
  CHECK_FALSE(has(run_on(server, {"doctor"}).out, "warn     lease"));
  CHECK(server.lock_names() == std::vector<std::string>{"k"});  // nothing of the doctor
}

TEST_CASE("etcd: the record of a lock stays below --max-request-bytes, and what does not is an error that names it")
{
  const EtcdServer server({.args = {"--max-request-bytes=6000"}});
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    (void)succeeded(
        run_rlock({"run", "-S", server.url(), "-k", "k", "--", "sh", "-c", "true " + std::string(300, 'x')}));
  }
  const BootClock clock;
  const auto backend = server.open_backend(clock);
  const rlock::CallLimits limit{.deadline = clock.now() + 10s, .stop = rlock::StopToken::never()};
  const auto state = backend->read("k", limit);
  REQUIRE(state);
  const std::string bytes(8000, 'x');
  const auto refused =
      backend->write_if("k", state->version, {.bytes = bytes, .face = {}, .log = {}, .messages = {}}, limit);
  REQUIRE(refused);
  const auto* const too_large = std::get_if<rlock::record::TooLarge>(&*refused);
  REQUIRE(too_large != nullptr);
  CHECK_MESSAGE(has(too_large->why.text, "raise --max-request-bytes"), too_large->why.text);
  CHECK_MESSAGE(has(too_large->why.text, "a request of 8"), too_large->why.text);
}
