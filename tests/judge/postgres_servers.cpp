// SPDX-License-Identifier: Apache-2.0
// One PostgreSQL server. It crashes, stands still, ends all connections, and loses its rows.
#include "judge/topologies.h"
#include "support/postgres_topology.h"
#include "support/redis_fixture.h"

#include <csignal>
#include <stdexcept>
#include <thread>

namespace rlock::judge {
namespace {

class PostgresServers final : public Servers {
 public:
  [[nodiscard]] Words options() const override { return {"-S", m_store->url()}; }

  void ask_each(const std::function<void(const Ask&)>& visit) override
  {
    visit([this](const Words& command) {
      auto answer = m_store->answer(command);
      return answer ? *std::move(answer)
                    : Result<Reply>(Error{ErrorCode::internal, "PostgreSQL has no " + command.front()});
    });
  }

  std::vector<ServerFault> faults(const Words&) override
  {
    return {
        {.name = "crash",
         .excuse = Excuse::none,
         .act =
             [this](Rng& rng) {
               m_store->signal_store(SIGKILL);
               std::this_thread::sleep_for(Millis(below(rng, 1500)));
               m_store->restart_store();
               return Hit{.done = true};
             }},
        {.name = "pause",
         .excuse = Excuse::none,
         .act =
             [this](Rng& rng) {
               m_store->signal_store(SIGSTOP);
               std::this_thread::sleep_for(Millis(100 + below(rng, 4000)));
               m_store->signal_store(SIGCONT);
               return Hit{.done = true};
             }},
        {.name = "connections-ended",
         .excuse = Excuse::none,
         .act =
             [this](Rng&) {
               return Hit{.done = bool(*m_store->answer({"CLIENT", "KILL"}))};
             }},
        {.name = "rows-deleted",
         .excuse = Excuse::data_loss,
         .act = [this](Rng&) { return Hit{.done = bool(*m_store->answer({"FLUSHALL"}))}; }},
    };
  }

  void settle() override
  {
    m_store->signal_store(SIGCONT);
    const auto there = m_store->answer({"PING"});
    if (!there || !*there) {
      m_store->restart_store();
    }
    const auto now = m_store->answer({"PING"});
    if (!now || !*now) {
      throw std::runtime_error("PostgreSQL does not answer");
    }
  }

 private:
  std::shared_ptr<test::Topology> m_store = test::postgres_topology({});
};

}  // namespace

std::unique_ptr<Servers> make_postgres_servers() { return std::make_unique<PostgresServers>(); }

}  // namespace rlock::judge
