// SPDX-License-Identifier: Apache-2.0
// Random interleavings of clients of the record engine: between the read and the commit of one client the others act, time
// passes, an answer is lost, or a commit arrives late. No two clients may believe that they hold the lock. The same run with a
// deliberate mistake of the store or of the engine must find the mistake.
#include "store/record/record_host.h"

#include "store/script/script_store.h"
#include "support/seed.h"
#include "support/seeded_rng.h"
#include "support/test.h"

#include <functional>

using namespace rlock::test;
using namespace rlock::record;

namespace {

enum class Mistake {
  none,
  time_after_state,    // the time of a read is later than its state
  no_comparison,       // a commit replaces any version
  version_comes_back,  // a version is used again
  remembered_decision  // every decision is made on the state that the client has read or written last
};

class World {
 public:
  World(std::uint64_t seed, Mistake made) : rng(seed), mistake(made) {}

  // Something happens between two steps of a client.
  void pass()
  {
    now_us += pick(3) == 0 ? pick(40'000) : pick(300);
    now_us += pick(20) == 0 ? pick(1'500'000) : 0;
    if (!late.empty() && pick(4) == 0) {
      const auto at = static_cast<std::ptrdiff_t>(pick(static_cast<int>(late.size())));
      const auto arrive = late[static_cast<std::size_t>(at)];
      late.erase(late.begin() + at);
      arrive();
    }
    if (depth < 3 && pick(3) == 0) {
      ++depth;
      others();
      --depth;
    }
  }
  int pick(int limit) { return static_cast<int>(below(rng, static_cast<std::uint64_t>(limit))); }

  SeededRng rng;
  Mistake mistake;
  std::int64_t now_us = 1'700'000'000'000'000;
  int depth = 0;
  std::function<void()> others;
  std::vector<std::function<void()>> late;  // commits that have not arrived yet
  std::string bytes;
  std::uint64_t version = 0;
  std::uint64_t last = 0;
  int conflicts = 0;
};

class WorldClock final : public Clock {
 public:
  explicit WorldClock(World& world) : m_world(world) {}
  [[nodiscard]] Instant now() const override { return Instant(std::chrono::microseconds(m_world.now_us)); }
  Wake sleep_until(Instant until, const StopToken&) const override
  {
    while (now() < until) {
      m_world.pass();
      m_world.now_us += 100;
    }
    return Wake::due;
  }

 private:
  World& m_world;
};

class WorldBackend final : public Backend {
 public:
  explicit WorldBackend(World& world) : m_world(world) {}

  Result<Snapshot> read(std::string_view, const CallLimits&) override
  {
    if (m_world.mistake == Mistake::remembered_decision && m_remembered) {
      Snapshot state = *m_remembered;
      state.time_us += m_world.now_us - m_remembered_at;  // too early, by the time that the answer took
      return state;
    }
    const Snapshot state = read_now();
    m_remembered = state;
    m_remembered_at = m_world.now_us;
    return state;
  }

  Result<Commit> write_if(std::string_view, const Version& version, const Change& change, const CallLimits&) override
  {
    const Result<Commit> end = try_to_write(version, change);
    const auto* const done = end ? std::get_if<Committed>(&*end) : nullptr;
    if (done != nullptr && m_remembered) {
      m_remembered->version = done->version;
      m_remembered->bytes = change.bytes;
    } else {
      m_remembered.reset();
    }
    return end;
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel>, const CallLimits&) override
  {
    return Error{ErrorCode::internal, "nobody listens"};
  }
  Result<std::vector<std::string>> events(std::string_view, const CallLimits&) override
  {
    return std::vector<std::string>{};
  }
  Result<std::vector<std::string>> list(std::string_view, Which, const CallLimits&) override
  {
    return std::vector<std::string>{};
  }
  void drop_connection() override { m_remembered.reset(); }

 private:
  Snapshot read_now()
  {
    m_world.pass();
    Snapshot state{.version = m_world.version == 0 ? "" : std::to_string(m_world.version),
                   .bytes = m_world.bytes,
                   .time_us = m_world.now_us,
                   .listeners = {}};
    if (m_world.mistake == Mistake::time_after_state) {
      state.time_us += m_world.pick(700'000);
    }
    m_world.pass();
    return state;
  }

  Result<Commit> try_to_write(const Version& version, const Change& change)
  {
    const auto arrive = [this, expected = version.empty() ? 0 : std::stoull(version),
                         bytes = std::string(change.bytes)] { return replace(expected, bytes); };
    m_world.pass();
    switch (m_world.pick(12)) {
      case 0:
        m_world.late.emplace_back([arrive] { (void)arrive(); });
        m_world.pass();
        return Error{ErrorCode::unreachable, "the commit is late"};
      case 1: (void)arrive(); return Error{ErrorCode::unreachable, "the answer is lost"};
      default: break;
    }
    const bool done = arrive();
    const std::string now = std::to_string(m_world.version);
    m_world.pass();
    return done ? Commit{Committed{now}} : Commit{Conflict{}};
  }
  bool replace(std::uint64_t expected, const std::string& bytes)
  {
    if (m_world.version != expected && m_world.mistake != Mistake::no_comparison) {
      ++m_world.conflicts;
      return false;
    }
    m_world.version = ++m_world.last;
    if (m_world.mistake == Mistake::version_comes_back) {
      m_world.version = 1 + m_world.last % 3;
    }
    m_world.bytes = bytes;
    return true;
  }

  World& m_world;
  std::optional<Snapshot> m_remembered;  // of what the deliberate mistake decides on
  std::int64_t m_remembered_at = 0;
};

struct Client {
  std::unique_ptr<ScriptStore> store;
  LockKind kind;
  std::optional<Owner> owner = std::nullopt;
  std::int64_t valid_until = 0;  // as the client believes
  bool is_busy = false;
};

class Clients {
 public:
  Clients(World& world, int kind) : m_world(world), m_clock(world), m_kind(kind), m_owners(world.rng.next())
  {
    constexpr int number = 5;
    for (int i = 0; i < number; ++i) {
      auto host = std::make_unique<RecordHost>(std::make_unique<WorldBackend>(world), m_clock,
                                               std::make_unique<SeededRng>(world.rng.next()));
      m_all.push_back({.store = std::make_unique<ScriptStore>(std::move(host), m_clock), .kind = Plain{}});
    }
    world.others = [this] { act(); };
  }

  // One client makes one request.
  void act()
  {
    Client& client = m_all[static_cast<std::size_t>(m_world.pick(static_cast<int>(m_all.size())))];
    if (client.is_busy) {
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
  LockKind any_kind()
  {
    switch (m_kind) {
      case 0: return Plain{};
      case 1: return m_world.pick(2) == 0 ? LockKind(Reader{}) : LockKind(Writer{});
      default: return Permits{2};
    }
  }
  LockRequest request(const Client& client)
  {
    return {.name = *LockName::parse("k"),
            .kind = client.kind,
            .ttl = Millis{m_world.pick(2) == 0 ? 300 : 2000},
            .who = {.host = "h", .pid = 1},
            .once = {}};
  }
  CallLimits limit() { return {.deadline = m_clock.now() + std::chrono::seconds(5), .stop = StopToken::never()}; }

  void acquire(Client& client)
  {
    if (!client.owner) {
      client.owner = Owner::fresh(m_owners, 1);
      client.kind = any_kind();
    }
    const LockRequest wanted = request(client);
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
    (void)client.store->release(request(client), Hold{*client.owner}, {}, limit());
    client.owner.reset();  // an owner that was released is never used again
  }
  void believe(Client& client, const LeaseTerm& lease)
  {
    const auto until =
        std::chrono::duration_cast<std::chrono::microseconds>((lease.from + lease.length).time_since_epoch());
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
  int m_kind;
  SeededRng m_owners;
  std::vector<Client> m_all;
};

struct Found {
  int grants = 0;
  int conflicts = 0;
  int violations = 0;
};

Found run_worlds(Mistake mistake, int rounds, int first = 0)
{
  Found found;
  constexpr int kinds = 3;
  constexpr int steps = 100;
  for (int kind = 0; kind < kinds; ++kind) {
    for (int round = first; round < first + rounds; ++round) {
      World world(seed() + static_cast<std::uint64_t>(round), mistake);
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

}  // namespace

TEST_CASE("record interleavings: whatever comes between, late or never, one client at a time holds the lock")
{
  const Found found = run_worlds(Mistake::none, 8);
  CHECK(found.grants > 300);
  CHECK(found.conflicts > 100);
  CHECK(found.violations == 0);
}

TEST_CASE("record interleavings: deliberate mistakes of the store and of the engine are found")
{
  for (const Mistake mistake :
       {Mistake::time_after_state, Mistake::no_comparison, Mistake::version_comes_back, Mistake::remembered_decision}) {
    CAPTURE(static_cast<int>(mistake));
    Found found;
    for (int first = 0; found.violations == 0 && first < 256; first += 2) {
      found = run_worlds(mistake, 2, first);
    }
    CHECK(found.violations > 0);
  }
}
