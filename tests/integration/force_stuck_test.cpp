// SPDX-License-Identifier: Apache-2.0
// force-unlock of holders whose jobs take their time: several at once, and one whose job does not die of KILL.
#include "support/integration.h"
#include "support/json.h"
#include "support/tracer.h"

using namespace rlock::test;
namespace {

std::size_t holders_on(const RedisServer& server)
{
  return Json::parse(rlock_on(server, {"status", "--json", "k"}).out).at("holders").size();
}

// Jobs that get TERM and end when all have got it.
class JobsThatWaitForEachOther {
 public:
  explicit JobsThatWaitForEachOther(int count)
  {
    for (int i = 0; i < count; ++i) {
      m_all_told += (i == 0 ? "[ -e " : " && [ -e ") + told(i) + " ]";
    }
  }
  [[nodiscard]] Words job(int number) const
  {
    return {"sh", "-c", "trap ': >" + told(number) + "' TERM; until " + m_all_told + "; do sleep 0.05; done"};
  }

 private:
  [[nodiscard]] std::string told(int number) const { return (m_dir / std::to_string(number)).string(); }
  std::filesystem::path m_dir = make_temp_dir("told");
  std::string m_all_told;
};

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("force-unlock: several holders are asked at once, so their jobs end in the time of one")
{
  constexpr int count = 3;
  for (const Words& kind : {Words{"-s"}, Words{"--permits", "3"}}) {
    CAPTURE(kind.front());
    const RedisServer server;
    const JobsThatWaitForEachOther jobs(count);
    std::vector<Process> holders;
    for (int i = 0; i < count; ++i) {
      holders.push_back(start_run(server.url(), joined({"-k", "k", "--kill-after", "5m"}, kind), jobs.job(i)));
    }
    wait_until([&] { return holders_on(server) == count; }, "all hold it");
    Process forced = start_on(server, {"force-unlock", "-k", "k", "--yes"});
    CHECK(forced.wait(30s) == success);
    expect_ends(holders, 10s, exited(121));
    CHECK(holders_on(server) == 0);
  }
}

TEST_CASE("force-unlock: a job that KILL does not end is named, and the request ends with 75")
{
  const std::vector<Words> kinds{{}, {"-s"}, {"-x"}, {"--permits", "1"}, {"--format", "string"}};
  const RedisServer server;
  std::vector<Process> holders;
  std::vector<std::unique_ptr<Tracer>> tracers;
  std::vector<Process> forcing;
  const auto key = [](std::size_t number) { return "k" + std::to_string(number); };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    holders.push_back(start_run(server.url(), joined({"-k", key(i), "--ttl", "90s", "--kill-after", "100ms"}, kinds[i]),
                                {"sh", "-c", "echo $$; exec sleep 300"}));
    wait_until([&] { return holders[i].out().ends_with("\n"); }, "the job runs");
    tracers.push_back(std::make_unique<Tracer>(std::stoi(holders[i].out())));
    forcing.push_back(start_on(server, {"force-unlock", "-k", key(i), "--yes", "--grace", "2s"}));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    CAPTURE(key(i));
    CHECK(forcing[i].wait(30s) == exited(75));
    CHECK(forcing[i].out().find(key(i) + ": ") == 0);
    CHECK(has(forcing[i].out(), " has been stopping its job for "));
    CHECK(has(forcing[i].out(), "but the job does not end"));
    CHECK(has(forcing[i].out(), "--now"));
    CHECK(rlock_on(server, {"status", key(i)}).code == 0);
    CHECK(holders[i].running());
  }
  const Finished now = rlock_on(server, {"force-unlock", "-k", key(0), "--yes", "--now", "--json"});
  CHECK(now.code == 0);
  CHECK(Json::parse(now.out).at("how") == "broken");
  tracers.clear();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    CAPTURE(key(i));
    CHECK(holders[i].wait(30s) == exited(121));
    CHECK(rlock_on(server, {"status", key(i)}).code == 1);
  }
}

SERVER_CASE("force-unlock: a long --kill-after is on the server, so that the request waits for it")
{
  const Words tidies_up{"sh", "-c", "trap 'sleep 12; exit 0' TERM; echo up; while :; do sleep 0.05; done"};
  Process holder = start_run(server.url(), {"-k", "k", "--kill-after", "5m"}, tidies_up);
  wait_until([&] { return holder.out() == "up\n"; }, "the job runs");
  const std::string token = as_texts(server.command({"HKEYS", "k"})).at(0);
  CHECK(has(as_text(server.command({"HGET", "rlock:holder:{k}", token})), "\nkill_after=300000\n"));
  Process forced = start_on(server, {"force-unlock", "-k", "k", "--yes", "--grace", "200ms"});
  CHECK(forced.wait(60s) == success);
  CHECK(forced.out().find("k: released by ") == 0);
  CHECK(holder.wait() == exited(121));
}

TEST_SUITE_END();
