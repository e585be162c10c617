// SPDX-License-Identifier: Apache-2.0
// acquire, renew, release, check: a lock that a script takes by hand. Over 300 lines, because the four verbs share a
// token.
#include "support/integration.h"
#include "support/json.h"
#include "support/presences.h"
#include "support/script.h"
#include "support/skip.h"

#include <unistd.h>

using namespace rlock::test;
namespace {

const std::string not_held = "rlock: the lock x is not held under this token: ";
constexpr const char* unknown_to_quorum = "expired, deleted or released\n";  // it has no event log

// A lease of x; its token.
std::string leased(const RedisServer& server, const std::string& lease = "20s")
{
  const Finished taken = succeeded(rlock_on(server, {"acquire", "x", "--lease", lease}));
  REQUIRE(taken.err == "");
  REQUIRE(taken.out.ends_with("\n"));
  return taken.out.substr(0, taken.out.size() - 1);
}

std::int64_t pttl(const RedisServer& server) { return as_int(server.command({"PTTL", "x"})); }

}  // namespace

TEST_SUITE_BEGIN("topology");

SERVER_CASE("acquire: one lease without renewals, and no process is left")
{
  const std::string token = leased(server, "700ms");
  CHECK(as_texts(server.command({"HKEYS", "x"})) == std::vector<std::string>{token});
  CHECK(keepers(server).empty());
  CHECK(pttl(server) <= (ends_holds_with_clients() ? 2000 : 700));  // etcd has no shorter leases
  wait_until([&] { return !is_held(server, "x"); }, "the lease is over");

  expect_end(rlock_on(server, {"check", "x", "--token", token}), 1,
             {err_is(not_held + (is_quorum_topology() ? unknown_to_quorum : "expired or deleted\n"))});
}

SERVER_CASE("acquire: check and renew after a release say that the lock was released")
{
  const std::string token = leased(server, "60s");
  CHECK(rlock_on(server, {"release", "x", "--token", token}).code == 0);
  for (const Words& verb : {Words{"check"}, Words{"renew", "--lease", "10s"}}) {
    expect_end(rlock_on(server, joined(verb, {"x", "--token", token})), 1,
               {err_is(not_held + (is_quorum_topology() ? unknown_to_quorum : "it was released\n"))});
  }
}

SERVER_CASE("acquire, check, renew: JSON with the names that scripts rely on")
{
  const Json taken = Json::parse(rlock_on(server, {"acquire", "-k", "x", "--lease", "10s", "--json"}).out);
  CHECK(taken.at("key") == "x");
  CHECK(taken.at("fence") > 1'700'000'000'000'000);
  CHECK(taken.at("ttl_ms") == 10'000);
  CHECK(taken.at("shard").is_null());
  const std::string token = taken.at("token");

  const Finished check = rlock_on(server, {"check", "-k", "x", "--token", token, "--json"});
  CHECK(check.code == 0);
  const Json told = Json::parse(check.out);
  CHECK(told.at("ttl_ms") <= 10'000);
  CHECK(told.with("ttl_ms", 10'000) == taken);

  const Finished renew = rlock_on(server, {"renew", "-k", "x", "--token", token, "--lease", "1m", "--json"});
  CHECK(renew.code == 0);
  CHECK(Json::parse(renew.out).at("ttl_ms") > 50'000);
  CHECK(Json::parse(renew.out).at("token") == token);
  CHECK(pttl(server) > 50'000);
}

SERVER_CASE("acquire: the holder is shown as the script, not as the rlock that has ended")
{
  Process holder = script(server, R"(rlock acquire -S "$URL" x --pid $$ --label nightly && echo ready && sleep 60)");
  keeper_of(server, holder);
  const Json who = Json::parse(rlock_on(server, {"status", "x", "--json"}).out).at("holders").at(0);
  CHECK(who.at("pid") == holder.pid());
  CHECK(who.at("command").text().starts_with("bash -c 'rlock acquire"));
  CHECK(who.at("label") == "nightly");
  CHECK(who.at("auto") == true);
}

SERVER_CASE("acquire: busy is 75 or the one asked for, and makes eval fail")
{
  leased(server);
  expect_end(rlock_on(server, {"acquire", "x", "--lease", "1s", "-n"}), 75,
             {out_is(""), err_has("x is busy, held by ")});
  CHECK(rlock_on(server, {"acquire", "x", "--lease", "1s", "-w", "100ms", "-E", "9", "-q"}).err == "");
  CHECK(rlock_on(server, {"acquire", "x", "--lease", "1s", "-w", "100ms", "-E", "9"}).code == 9);

  Process careless =
      script(server, R"sh(eval "$(rlock acquire -S "$URL" x -qn --pid $$ --export)" || exit; echo ran)sh");
  expect_end(careless, exited(75), {out_is("")});
  CHECK(keepers(server).empty());
}

TEST_CASE("acquire: a key of odd bytes reaches the script as it is, in every shell")
{
  skip_on_databases("a name is text of the database's encoding");
  const RedisServer server;
  const std::string key = R"(it's a "test" $(touch no) `touch no` \ * ${HOME} é )"
                          "\xff !";
  const std::filesystem::path dir = make_temp_dir("script");
  for (const char* shell : {"bash", "sh"}) {
    CAPTURE(shell);
    Process holder = script(server, "exec " + std::string(shell) + R"( -c '
        lock=$(rlock acquire -S "$URL" -k "$KEY" --lease 10s --export) || exit; eval "$lock"
        printf "%s|%s" "$RLOCK_KEY" "$RLOCK_HELD"; rlock check && rlock renew && rlock release && rlock release')",
                            {.env = {{"KEY", key}}, .cwd = dir});
    expect_end(holder, success, {err_is(""), out_begins(key + "|")});
    CHECK(holder.out().ends_with(" " + key));
    CHECK_FALSE(std::filesystem::exists(dir / "no"));
    CHECK(as_int(server.command({"EXISTS", key})) == 0);
  }
}

SERVER_CASE("acquire: every kind of lock, and the verbs that follow find out which it is")
{
  for (const std::string kind : {"-s", "-x", "--permits=2", "--format=string"}) {
    CAPTURE(kind);
    server.command({"FLUSHALL"});  // the number of permits stays
    const std::string first =
        Json::parse(rlock_on(server, {"acquire", "x", kind, "--lease", "10s", "--json"}).out).at("token");
    CHECK(rlock_on(server, {"check", "x", "--token", first, "--json"}).code == 0);
    CHECK(rlock_on(server, {"check", "x", "--token", "somebody:1"}).code == 1);
    CHECK(rlock_on(server, {"renew", "x", "--token", first, "--lease", "1m"}).code == 0);
    CHECK(rlock_on(server, {"release", "x", "--token", first}).code == 0);
    CHECK(rlock_on(server, {"release", "x", "--token", first}).code == 0);
    CHECK(rlock_on(server, {"check", "x", "--token", first}).code == 1);

    Process holder = script(server, R"(rlock acquire -S "$URL" x )" + kind + " --pid $$ && echo ready && sleep 60");
    keeper_of(server, holder);
    CHECK(rlock_on(server, {"status", "x"}).code == 0);
    holder.signal(SIGKILL);
    wait_until([&] { return rlock_on(server, {"status", "x"}).code == 1; }, "the lock is free", 2s);
  }
}

SERVER_CASE("release: sent twice it answers the same, and a lost lock is reported as lost")
{
  const std::string token = leased(server);
  CHECK(rlock_on(server, {"release", "x", "--token", "somebody:1"}).code == 1);
  CHECK(is_held(server, "x"));
  CHECK(rlock_on(server, {"release", "x", "--token", token}).code == 0);
  CHECK_FALSE(is_held(server, "x"));
  CHECK(rlock_on(server, {"release", "x", "--token", token}).code == 0);

  const std::string lost = leased(server);
  server.command({"DEL", "x"});
  const std::string next = leased(server);
  for (const char* verb : {"release", "renew", "check"}) {
    CAPTURE(verb);
    expect_end(rlock_on(server, {verb, "x", "--token", lost}), 1,
               {out_is(""), err_begins("rlock: the lock x is not held under this token: now held by ")});
    CHECK(rlock_on(server, {verb, "-q", "x", "--token", lost}).err == "");
  }
  CHECK(as_texts(server.command({"HKEYS", "x"})) == std::vector<std::string>{next});
}

SERVER_CASE("check: inside a job it asks for the job's own lock, or for one of its ancestors'")
{
  Process job = start_on(server, {"run", "-k", "outer", "--", rlock_program(), "run", "-k", "x", "--", "sh", "-c",
                                  "$0 check && $0 check outer && $0 check --json && sleep 0.1; "
                                  "$0 check -q nothing; echo $?",
                                  rlock_program()});
  CHECK(job.wait() == success);
  CHECK(Json::parse(job.out().substr(0, job.out().find('\n'))).at("key") == "x");
  CHECK(job.out().ends_with("\n64\n"));
  CHECK(has(job.err(), "--token: there is none for nothing"));
}

SERVER_CASE("check: names the requester of a lock without a keeper, and after force-unlock who forced it")
{
  const std::string token = leased(server);
  Process force = start_on(server, {"force-unlock", "x", "--yes", "--grace", "60s", "--reason", "it is needed"});
  wait_until([&] { return as_int(server.command({"EXISTS", "rlock:force:{x}"})) == 1; }, "it is asked for");
  expect_end(rlock_on(server, {"check", "x", "--token", token}), 0,
             {err_has("force-unlock of the lock x by "), err_has("): it is needed; release it soon\n")});
  force.signal(SIGKILL);
  CHECK(rlock_on(server, {"force-unlock", "x", "--yes", "--now"}).code == 0);
  expect_end(rlock_on(server, {"check", "x", "--token", token}), 1,
             {err_has("not held under this token: force-unlocked by ")});
}

SERVER_CASE("acquire, check: no server is 69, and a key that holds something else is 78")
{
  const std::string token = leased(server);
  server.command({"RPUSH", "list", "x"});
  CHECK(rlock_on(server, {"acquire", "list", "--lease", "1s"}).code == 78);
  CHECK(rlock_on(server, {"check", "list", "--token", token}).code == 1);
  server.kill_hard();
  for (const char* verb : {"check", "renew", "release"}) {
    CHECK(rlock_on(server, {verb, "x", "--token", token}).code == 69);
  }
  CHECK(rlock_on(server, {"acquire", "x", "--pid", std::to_string(::getpid())}).code == 69);
}

SERVER_CASE("acquire: a --pid that is no process is 64, before the server is asked")
{
  Process ended({"true"});
  wait_until([&] { return !ended.running(); }, "it has ended");
  expect_end(rlock_on(server, {"acquire", "x", "--pid", std::to_string(ended.pid())}), 64,
             {err_begins("rlock: --pid: there is no process ")});
  CHECK(rlock_on(server, {"acquire", "x", "--pid", "0"}).code == 64);

  Process itself = script(server, R"(exec rlock acquire -S "$URL" x --pid $BASHPID)");
  expect_end(itself, exited(64), {err_has("$BASHPID")});
  CHECK(as_int(server.command({"DBSIZE"})) == 0);
}

TEST_CASE("acquire: a script that ends while it waits is in the queue no more")
{
  skip_on_quorum("a quorum has no queue");
  const RedisServer server;
  leased(server);
  Process waiter = script(server, R"(rlock acquire -S "$URL" x --pid $$; echo taken)");
  const auto waiting = [&] { return as_int(server.command({"ZCARD", "rlock:queue:{x}"})); };
  wait_until([&] { return waiting() == 1; }, "it waits");
  waiter.signal(SIGKILL);
  wait_until([&] { return waiting() == 0; }, "it waits no more", 2s);
  CHECK(waiter.out() == "");
}

SERVER_CASE("acquire: a caller that cannot be told the token has no lock")
{
  for (const std::string kind : {"--lease 20s", "--pid $$"}) {
    CAPTURE(kind);
    Process deaf = script(server, R"(rlock acquire -S "$URL" x )" + kind + " >/dev/full; echo $? >&2; sleep 60");
    wait_until([&] { return deaf.err().ends_with("71\n"); }, "it fails; it says " + deaf.err());
    wait_until([&] { return !is_held(server, "x"); }, "the lock is free", 1s);
  }
}

TEST_CASE("acquire: no keeper for want of descriptors is 71, and the lock is free")
{
  skip_with_address_sanitizer("the undefined-behaviour sanitizer takes two descriptors to look at an object");
  const RedisServer server;
  int kept = 0;
  int without_keeper = 0;
  for (int limit = 5; limit < 24; ++limit) {
    CAPTURE(limit);
    Process holder = script(server, "ulimit -n " + std::to_string(limit) +
                                        R"(; rlock acquire -S "$URL" x --pid $$; echo "ended $?"; exec sleep 60)");
    wait_until([&] { return has(holder.out(), "ended"); }, "acquire has ended");
    const bool taken = holder.out().ends_with("ended 0\n");
    const bool too_few = is_quorum_topology() && holder.out() == "ended 69\n";  // not enough servers could be asked
    CHECK((taken || too_few || holder.out() == "ended 71\n"));
    CHECK(is_held(server, "x") == taken);
    kept += taken ? 1 : 0;
    without_keeper += has(holder.err(), "cannot start the keeper") ? 1 : 0;
    holder.signal(SIGKILL);
    wait_until([&] { return !is_held(server, "x"); }, "the lock is free", 2s);
  }
  CHECK(kept > 0);
  CHECK(without_keeper > 0);
}

TEST_CASE("acquire: the password stays where it was, in the environment of the script")
{
  const RedisServer server({.password = test_password});
  const std::string url = "unix://:hunter2@" + server.socket_path().string();
  for (const char* variable : {"RLOCK_SERVER", "REDIS_URL"}) {
    CAPTURE(variable);
    Process holder = script(server, R"(lock=$(rlock acquire x --lease 10s --export) || exit; echo "$lock"
                                       eval "$lock"; rlock check && rlock release)",
                            {.env = {{variable, url}}});
    expect_end(holder, success, {err_is(""), out_lacks("hunter2")});
  }
}

TEST_SUITE_END();
