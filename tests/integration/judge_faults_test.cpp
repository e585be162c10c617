// SPDX-License-Identifier: Apache-2.0
// Each fault of the judge happens: a fault that does nothing would prove nothing.
#include "judge/servers.h"

#include "support/integration.h"
#include "support/seed.h"
#include "support/seeded_rng.h"

#include <atomic>

using namespace rlock;
using namespace rlock::judge;

namespace {

const std::string key = "stock";

// Takes and releases the lock, again and again, with a lock of its own that is always there for faults that need one.
class Load {
 public:
  explicit Load(Servers& servers) : m_servers(servers), m_thread([this] { run(); }) {}
  ~Load()
  {
    m_over = true;
    m_thread.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  void run()
  {
    while (!m_over) {
      Words words{"run", "-k", key, "-w", "1", "--ttl", "1s"};
      const Words where = m_servers.options();
      words.insert(words.end(), where.begin(), where.end());
      words.insert(words.end(), {"--", "sleep", "0.2"});
      test::ProcessOptions options;
      for (const auto& [name, value] : m_servers.environment()) {
        options.env.emplace(name, value);
      }
      test::Process process(test::rlock_argv(words), options);
      process.wait(std::chrono::minutes(1));
    }
  }

  Servers& m_servers;
  std::atomic<bool> m_over = false;
  std::thread m_thread;
};

void check_all_faults(std::string_view topology)
{
  const std::unique_ptr<Servers> servers = make_servers(topology);
  REQUIRE(servers);
  test::SeededRng rng(test::seed());
  const auto all = servers->faults({key});
  const Load load(*servers);
  for (const ServerFault& fault : all) {
    CAPTURE(fault.name);
    // A fault of one of two servers, or of a key that is there most of the time, may miss.
    const auto happens = [&] { return fault.act(rng).done; };
    test::wait_until(happens, "the fault is done: " + fault.name, std::chrono::minutes(1));
    servers->settle();
    int answering = 0;
    servers->ask_each([&](const Ask& ask) { answering += ask({"SET", "{stock}:after", "1", "PX", "1000"}) ? 1 : 0; });
    CHECK(answering >= 1);
  }
}

}  // namespace

TEST_SUITE_BEGIN("judge-faults");

TEST_CASE("judge: every fault of one server happens") { check_all_faults("unix"); }
TEST_CASE("judge: every fault of a quorum happens") { check_all_faults("quorum3"); }
TEST_CASE("judge: every fault of sentinels happens") { check_all_faults("sentinel"); }
TEST_CASE("judge: every fault of a cluster happens") { check_all_faults("cluster"); }
TEST_CASE("judge: every fault of etcd happens") { check_all_faults("etcd3"); }
TEST_CASE("judge: every fault of ZooKeeper happens") { check_all_faults("zookeeper3"); }

TEST_SUITE_END();
