// SPDX-License-Identifier: Apache-2.0
// Fixed leases, and --min-hold, that are longer than the longest session of ZooKeeper: a keeper keeps them.
#include "support/integration.h"
#include "support/zookeeper_fixture.h"

using namespace rlock::test;

namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

constexpr auto session = 2s;
constexpr auto lease = 7s;  // some sessions long

// A server whose longest session is `session`.
struct ShortSessions {
  ZookeeperServer server{{.longest_session = session}};

  [[nodiscard]] Finished run(Words args) const
  {
    args.insert(args.begin() + 1, {"-S", server.url(), "-k", "k"});
    return run_rlock(args);
  }
  [[nodiscard]] Finished acquire(const std::string& length) const { return run({"acquire", "-n", "--lease", length}); }
  [[nodiscard]] bool is_free() const { return run({"run", "-n", "--", "true"}).code == 0; }
  [[nodiscard]] std::vector<pid_t> keepers() const
  {
    std::vector<pid_t> found;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
      if (text_of(entry.path() / "comm") == "rlock-keeper\n" &&
          text_of(entry.path() / "cmdline").find(server.hosts()) != std::string::npos) {
        found.push_back(std::stoi(entry.path().filename()));
      }
    }
    return found;
  }
  // It gets its name after its start.
  pid_t await_keeper() const
  {
    wait_until([&] { return keepers().size() == 1; }, "there is a keeper");
    return keepers().front();
  }
};

std::string token_in(const Finished& acquired)
{
  REQUIRE_MESSAGE(acquired.code == 0, acquired.err);
  return acquired.out.substr(0, acquired.out.find('\n'));
}

}  // namespace

#define SESSIONS_CASE(title) CASE_WITH(ShortSessions, at, title)

SESSIONS_CASE("zookeeper keeper: acquire --lease lasts for its lease, beyond the longest session, and no longer")
{
  const auto before = SteadyClock::now();
  const Finished acquired = at.acquire("7s");
  const std::string token = token_in(acquired);
  expect_has(acquired.err, {"a keeper", "ends within 2s"});
  at.await_keeper();
  while (SteadyClock::now() < before + lease - 1s) {
    const Finished check = at.run({"check", "--token", token});
    const bool is_over = SteadyClock::now() > before + lease;
    REQUIRE_MESSAGE((check.code == 0 || is_over), check.err);
  }
  wait_until([&] { return at.is_free(); }, "the lease is over");
  CHECK(SteadyClock::now() > before + lease - 100ms);
  wait_until([&] { return at.keepers().empty(); }, "the keeper has ended");
}

SESSIONS_CASE("zookeeper keeper: a release ends the lease at once, and its keeper soon")
{
  const std::string token = token_in(at.acquire("1h"));
  at.await_keeper();
  CHECK(at.run({"release", "--token", token}).code == 0);
  CHECK(at.is_free());
  wait_until([&] { return at.keepers().empty(); }, "the keeper has ended");
}

SESSIONS_CASE("zookeeper keeper: when the keeper is killed, the lock lasts for one session more")
{
  token_in(at.acquire("1h"));
  const pid_t keeper = at.await_keeper();
  CHECK_FALSE(at.is_free());
  ::kill(keeper, SIGKILL);
  wait_until([&] { return at.is_free(); }, "the session of the keeper has ended");
}

SESSIONS_CASE("zookeeper keeper: force-unlock --now ends the lease and its keeper")
{
  token_in(at.acquire("1h"));
  at.await_keeper();
  CHECK(at.run({"force-unlock", "--yes", "--now"}).code == 0);
  CHECK(at.is_free());
  wait_until([&] { return at.keepers().empty(); }, "the keeper has ended");
}

SESSIONS_CASE("zookeeper keeper: renew makes a lease that is longer than a session")
{
  const std::string token = token_in(at.acquire("1s"));
  CHECK(at.keepers().empty());
  const auto before = SteadyClock::now();
  expect_end(at.run({"renew", "--lease", "7s", "--token", token}), 0, {err_has("a keeper")});
  wait_until([&] { return at.is_free(); }, "the lease is over");
  CHECK(SteadyClock::now() > before + lease - 100ms);
}

SESSIONS_CASE("zookeeper keeper: --min-hold keeps the lock for longer than a session after the job")
{
  const auto before = SteadyClock::now();
  expect_end(at.run({"run", "-n", "-v", "--min-hold", "7s", "--", "true"}), 0, {err_has("a keeper")});
  CHECK(SteadyClock::now() < before + lease);  // it does not wait for it
  wait_until([&] { return at.is_free(); }, "the time is over");
  CHECK(SteadyClock::now() > before + lease - 100ms);
  wait_until([&] { return at.keepers().empty(); }, "the keeper has ended");
}

SESSIONS_CASE("zookeeper keeper: --min-hold within a session needs no keeper")
{
  expect_end(at.run({"run", "-n", "-v", "--min-hold", "1s", "--", "true"}), 0, {err_lacks("a keeper")});
  CHECK(at.keepers().empty());
}

SESSIONS_CASE("zookeeper keeper: a job is not run under a fixed lease that is longer than the longest session")
{
  expect_end(at.run({"run", "-n", "--lease", "1h", "--", "true"}), 78,
             {err_has("--max-runtime 1h"), err_has("gives a job is 2s")});
  CHECK(at.is_free());
  CHECK(at.keepers().empty());
}
