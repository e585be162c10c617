// SPDX-License-Identifier: Apache-2.0
// One server of a database. It crashes, stands still, ends all connections, and loses its rows.
#include "judge/topologies.h"
#include "support/database_topology.h"
#include "support/redis_fixture.h"

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <thread>

namespace rlock::judge {
namespace {

class DatabaseServers final : public Servers {
 public:
  explicit DatabaseServers(const test::DatabaseRow& database)
      : m_name(database.name), m_store(test::database_topology(database, {}))
  {
  }
  [[nodiscard]] Words options() const override { return {"-S", m_store->url()}; }

  void ask_each(const std::function<void(const Ask&)>& visit) override
  {
    visit([this](const Words& command) {
      auto answer = m_store->answer(command);
      return answer ? *std::move(answer)
                    : Result<Reply>(Error{ErrorCode::internal, m_name + " has no " + command.front()});
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
      throw std::runtime_error(m_name + " does not answer");
    }
  }

 private:
  std::string m_name;
  std::shared_ptr<test::Topology> m_store;
};

}  // namespace

std::unique_ptr<Servers> make_database_servers(std::string_view name)
{
  const auto* const row = std::ranges::find(test::databases, name, &test::DatabaseRow::name);
  return row == test::databases.end() ? nullptr : std::make_unique<DatabaseServers>(*row);
}

}  // namespace rlock::judge
