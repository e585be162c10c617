// SPDX-License-Identifier: Apache-2.0
#include "judge/servers.h"

#include "support/redis_fixture.h"

#include <algorithm>
#include <array>

namespace rlock::judge {
namespace {

class OneServer final : public Servers {
 public:
  [[nodiscard]] Words options() const override { return {"-S", m_server.url()}; }

  void ask_each(const std::function<void(const Ask&)>& visit) override
  {
    visit([this](const Words& command) { return m_server.try_command(command); });
  }

  std::vector<ServerFault> faults(const Words& keys) override
  {
    const auto remove = [this, keys](Rng& rng) {
      const std::string& key = keys[below(rng, keys.size())];
      const auto reply = m_server.try_command({"DEL", key});
      return Hit{.done = reply && reply->integer == 1, .key = key};
    };
    return {{.name = "del", .excuse = Excuse::data_loss, .act = remove}};
  }

  void settle() override {}

 private:
  test::RedisServer m_server;
};

struct Row {
  std::string_view name;
  std::unique_ptr<Servers> (*make)();
};

template <typename Made>
std::unique_ptr<Servers> make()
{
  return std::make_unique<Made>();
}

constexpr std::array topologies{Row{"unix", make<OneServer>}};

}  // namespace

std::vector<std::string_view> topology_names()
{
  std::vector<std::string_view> names;
  for (const Row& row : topologies) {
    names.push_back(row.name);
  }
  return names;
}

std::unique_ptr<Servers> make_servers(std::string_view topology)
{
  const auto* const row =
      std::find_if(topologies.begin(), topologies.end(), [&](const Row& one) { return one.name == topology; });
  return row == topologies.end() ? nullptr : row->make();
}

}  // namespace rlock::judge
