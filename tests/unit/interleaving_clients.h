// SPDX-License-Identifier: Apache-2.0
// Clients of the store in interleaving_world.h, which take, renew and release one lock, and count when two of them believe to hold it.
// Where holds end with presences, an operator revokes some.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>
#include "engine/script_store.h"
#include "lock/lease_budget.h"
#include "unit/interleaving_world.h"

namespace rlock::test {

struct Client {
  std::unique_ptr<ScriptStore> store;
  LockKind kind;
  std::optional<Owner> owner = std::nullopt;
  std::int64_t valid_until = 0;  // as the client believes
  bool is_busy = false;
};

class Clients {
 public:
  Clients(World& world, int kind)
      : m_world(world),
        m_clock(world),
        m_operators_clock(world, world.mistake == Mistake::impatient_operator ? 10 : 1),
        m_kind(kind),
        m_owners(world.rng.next())
  {
    constexpr int number = 5;
    for (int i = 0; i < number; ++i) {
      m_all.push_back({.store = store(m_clock), .kind = Plain{}});
    }
    m_operator = store(m_operators_clock);
    world.others = [this] { act(); };
  }

  // One client makes one request.
  void act()
  {
    Client& client = m_all[static_cast<std::size_t>(m_world.pick(static_cast<int>(m_all.size())))];
    if (client.is_busy) {
      return;
    }
    if (m_world.has_presences && m_world.pick(6) == 0) {
      revoke();
      return;
    }
    client.is_busy = true;
    if (client.valid_until > m_world.now_us) {
      m_world.pick(2) == 0 ? renew(client) : release(client);
    } else if (m_world.pick(4) != 0 || !client.owner) {
      acquire(client);
    } else {
      release(client);
    }
    client.is_busy = false;
  }

  int grants = 0;
  int violations = 0;

 private:
  std::unique_ptr<ScriptStore> store(const Clock& clock)
  {
    constexpr std::array<std::int64_t, 4> wrong{0, -30'000'000, 10'000'000, 3'600'000'000};
    const std::int64_t ahead = m_world.has_presences ? wrong[static_cast<std::size_t>(m_world.pick(4))] : 0;
    auto host = std::make_unique<RecordHost>(std::make_unique<WorldBackend>(m_world, ahead), clock,
                                             std::make_unique<SeededRng>(m_world.rng.next()));
    return std::make_unique<ScriptStore>(std::move(host), clock);
  }
  // force-unlock goes on until its holder is another one.
  void revoke()
  {
    if (m_is_revoking) {
      return;
    }
    m_is_revoking = true;
    const Client& any = m_all[static_cast<std::size_t>(m_world.pick(static_cast<int>(m_all.size())))];
    if (!m_target && any.owner) {
      m_target = {.name = *LockName::parse("k"),
                  .kind = any.kind,
                  .owner = *any.owner,
                  .by = "op",
                  .stands_for = Millis{10'000}};
    }
    if (m_target) {
      const CallLimits soon{.deadline = m_operators_clock.now() + std::chrono::seconds(50), .stop = StopToken::never()};
      const auto answer = m_operator->force(ForceStep::revoke, ForceCall(*m_target), soon);
      if (answer && !std::holds_alternative<ForceHeld>(*answer)) {
        m_target.reset();
      }
    }
    m_is_revoking = false;
  }
  LockKind any_kind()
  {
    switch (m_kind) {
      case 0: return Plain{};
      case 1: return m_world.pick(2) == 0 ? LockKind(Reader{}) : LockKind(Writer{});
      default: return Permits{2};
    }
  }
  LockSpec request(const Client& client)
  {
    return {.name = *LockName::parse("k"),
            .kind = client.kind,
            .ttl = Millis{m_world.pick(2) == 0 ? 300 : 2000},
            .who = {.host = "h", .pid = 1, .automatic = m_world.has_presences && m_world.pick(2) == 0},
            .once = {}};
  }
  CallLimits limit() { return {.deadline = m_clock.now() + std::chrono::seconds(5), .stop = StopToken::never()}; }

  void acquire(Client& client)
  {
    if (!client.owner) {
      client.owner = Owner::fresh(m_owners, 1);
      client.kind = any_kind();
    }
    const LockSpec wanted = request(client);
    const auto answer = client.store->acquire(wanted, *client.owner, {.queues = m_world.pick(2) == 0}, limit());
    if (const auto* grant = answer ? std::get_if<Granted>(&*answer) : nullptr) {
      ++grants;
      believe(client, grant->lease);
    }
  }
  void renew(Client& client)
  {
    const auto answer = client.store->renew(request(client), *client.owner, {}, limit());
    if (!answer) {
      return;
    }
    if (const auto* renewed = std::get_if<Renewed>(&*answer)) {
      believe(client, *renewed->lease);
    } else {
      client.valid_until = 0;
      client.owner.reset();
    }
  }
  void release(Client& client)
  {
    client.valid_until = 0;  // the job is dead before the release
    (void)client.store->release(request(client), Hold{*client.owner}, kept(), limit());
    client.owner.reset();  // an owner that was released is never used again
  }
  ReleaseOptions kept() { return {.keep = Millis{m_world.has_presences && m_world.pick(4) == 0 ? 200 : 0}}; }
  void believe(Client& client, const LeaseTerm& lease)
  {
    const auto until =
        std::chrono::duration_cast<std::chrono::microseconds>(LeaseBudget(lease).valid_until().time_since_epoch());
    client.valid_until = std::max(client.valid_until, static_cast<std::int64_t>(until.count()));
    int alone = 0;
    int shared = 0;
    for (const Client& each : m_all) {
      if (each.valid_until > m_world.now_us) {
        (std::holds_alternative<Reader>(each.kind) || m_kind == 2 ? shared : alone) += 1;
      }
    }
    const bool is_bad = m_kind == 2 ? shared > 2 : alone > 1 || (alone > 0 && shared > 0);
    violations += is_bad ? 1 : 0;
  }

  World& m_world;
  WorldClock m_clock;
  WorldClock m_operators_clock;
  int m_kind;
  SeededRng m_owners;
  std::vector<Client> m_all;
  std::unique_ptr<ScriptStore> m_operator;
  std::optional<ForceCall> m_target;
  bool m_is_revoking = false;
};

struct Found {
  int grants = 0;
  int conflicts = 0;
  int violations = 0;
};

inline Found run_worlds(Mistake mistake, int rounds, int first = 0, HoldsEnd how = HoldsEnd::by_time)
{
  Found found;
  constexpr int kinds = 3;
  constexpr int steps = 100;
  for (int kind = 0; kind < kinds; ++kind) {
    for (int round = first; round < first + rounds; ++round) {
      World world(seed() + static_cast<std::uint64_t>(round), mistake, how);
      Clients clients(world, kind);
      for (int step = 0; step < steps; ++step) {
        clients.act();
        world.now_us += world.pick(20'000);
      }
      found.grants += clients.grants;
      found.conflicts += world.conflicts;
      found.violations += clients.violations;
    }
  }
  return found;
}

}  // namespace rlock::test
