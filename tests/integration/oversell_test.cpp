// SPDX-License-Identifier: Apache-2.0
// The classic example: twenty tickets, sixty buyers, each reads, waits and writes.
#include "support/crowd.h"
#include "support/integration.h"
#include "support/seed.h"

#include <random>

using namespace rlock::test;

namespace {

const int tickets = crowd_of(20);
const int buyers = 3 * tickets;

// The ledger: the number of tickets left, then a line for each buyer. One rename is the purchase, so a killed buyer has
// either bought or not.
class TicketOffice {
 public:
  TicketOffice() : m_dir(make_temp_dir("tickets")) { std::ofstream(ledger()) << tickets << "\n"; }

  [[nodiscard]] std::vector<std::string> purchase() const
  {
    return {"sh", "-c",
            "cd " + m_dir.string() +
                "; read n < ledger; rest=$(tail -n +2 ledger); sleep 0.02; "
                "[ \"$n\" -gt 0 ] || exit 0; "
                "{ echo $((n-1)); [ -z \"$rest\" ] || echo \"$rest\"; echo $$; } > new.$$; "
                "mv new.$$ ledger; echo bought"};
  }
  [[nodiscard]] int left() const
  {
    int count = -1;
    std::ifstream(ledger()) >> count;
    return count;
  }
  [[nodiscard]] int sold() const
  {
    std::ifstream file(ledger());
    int lines = -1;  // the first line is the number of tickets left
    for (std::string line; std::getline(file, line);) {
      ++lines;
    }
    return lines;
  }

 private:
  [[nodiscard]] std::filesystem::path ledger() const { return m_dir / "ledger"; }
  std::filesystem::path m_dir;
};

// How many of the crowd have a ticket.
int happy(const std::vector<Process>& crowd)
{
  return static_cast<int>(
      std::count_if(crowd.begin(), crowd.end(), [](const Process& buyer) { return buyer.out() == "bought\n"; }));
}

// `ttl`: of a killed buyer, the others may have to wait for as long. Of one that lives, a lease of the default length lasts while sixty
// processes start at once.
std::vector<std::string> under_lock(const RedisServer& server, const std::vector<std::string>& job,
                                    const std::string& ttl = "30s")
{
  return rlock_argv(with_job({"run", "-S", server.url(), "-k", "tickets", "--ttl", ttl}, job));
}

}  // namespace

TEST_SUITE_BEGIN("topology");

TEST_CASE("oversell: under the lock exactly twenty of sixty buyers get a ticket")
{
  const RedisServer server;
  const TicketOffice office;
  std::vector<Process> crowd;
  for (int i = 0; i < buyers; ++i) {
    crowd.emplace_back(under_lock(server, office.purchase()));
  }
  expect_ends(crowd, 60s);
  CHECK(happy(crowd) == tickets);
  CHECK(office.sold() == tickets);
  CHECK(office.left() == 0);
}

TEST_CASE("oversell: the control, without the lock, sells more than there is")
{
  const TicketOffice office;
  std::vector<Process> crowd;
  for (int i = 0; i < buyers; ++i) {
    crowd.emplace_back(office.purchase());
  }
  for (Process& buyer : crowd) {
    buyer.wait(60s);
  }
  CHECK(happy(crowd) > tickets);
}

TEST_CASE("oversell: with a third of the buyers killed at random every ticket is sold once")
{
  const RedisServer server;
  const TicketOffice office;
  std::mt19937_64 random(seed());
  std::vector<Process> crowd;
  for (int i = 0; i < buyers; ++i) {
    crowd.emplace_back(under_lock(server, office.purchase(), "2s"));
  }
  for (std::size_t i = 0; i < crowd.size(); i += 3) {
    std::this_thread::sleep_for(Millis(random() % 60));  // a random moment
    crowd[i].signal(SIGKILL);
  }
  for (Process& buyer : crowd) {
    buyer.wait(100s);
  }
  CHECK(office.sold() == tickets);
  CHECK(office.left() == 0);
  CHECK(happy(crowd) <= tickets);
}

TEST_SUITE_END();
