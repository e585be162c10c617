// SPDX-License-Identifier: Apache-2.0
// A store for the record engine in one thread, in which something happens between the steps of each request: other clients act, time
// passes, an answer is lost, or a commit arrives late. Where holds end with presences, the clocks of clients are wrong, and
// members are cut off.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "engine/record_host.h"
#include "support/bare_backend.h"
#include "support/seed.h"
#include "support/seeded_rng.h"
#include "support/test.h"

namespace rlock::test {

using namespace rlock::record;

enum class Mistake {
  none,
  time_after_state,     // the time of a read is later than its state
  no_comparison,        // a commit replaces any version
  version_comes_back,   // a version is used again
  remembered_decision,  // every decision is made on the state that the client has read or written last
  // of a store with presences
  ping_is_proof,        // a keep-alive that a member which is cut off has answered counts as a renewal
  counted_from_answer,  // a lease counts from its answer
  gone_before_record,   // which presences are gone was asked before the record was read
  impatient_operator    // a revoked hold is ended long before its last proof has run out
};

enum class HoldsEnd { by_time, with_presences };

class World {
 public:
  World(std::uint64_t seed, Mistake made, HoldsEnd how = HoldsEnd::by_time)
      : rng(seed), mistake(made), has_presences(how == HoldsEnd::with_presences)
  {
  }

  // Something happens between two steps of a client.
  void pass()
  {
    now_us += pick(3) == 0 ? pick(40'000) : pick(300);
    now_us += pick(20) == 0 ? pick(1'500'000) : 0;
    if (has_presences && pick(200) == 0) {
      cut_until_us = now_us + pick(4'000'000);
    }
    if (!late.empty() && pick(4) == 0) {
      const auto at = static_cast<std::ptrdiff_t>(pick(static_cast<int>(late.size())));
      const auto arrive = late[static_cast<std::size_t>(at)];
      late.erase(late.begin() + at);
      arrive();
    }
    if (depth < 3 && pick(has_presences ? 8 : 3) == 0) {  // a request has more steps there
      ++depth;
      others();
      --depth;
    }
  }
  int pick(int limit) { return static_cast<int>(below(rng, static_cast<std::uint64_t>(limit))); }

  // Whether the presence exists. Gone is final.
  bool lives(const PresenceId& id)
  {
    std::erase_if(presences, [this](const auto& each) { return each.second.ends_us <= now_us; });
    return presences.contains(id);
  }

  SeededRng rng;
  Mistake mistake;
  bool has_presences;
  struct Life {
    std::int64_t ends_us;
    std::int64_t length_us;
  };
  std::map<PresenceId, Life> presences;
  int last_presence = 0;
  std::int64_t cut_until_us = 0;  // until then the first member is cut off from the others, and answers keep-alives
  static constexpr std::int64_t start_us = 1'700'000'000'000'000;
  std::int64_t now_us = start_us;
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
  explicit WorldClock(World& world, int speed = 1) : m_world(world), m_speed(speed) {}
  [[nodiscard]] Instant now() const override
  {
    return Instant(std::chrono::microseconds(World::start_us + (m_world.now_us - World::start_us) * m_speed));
  }
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
  int m_speed;
};

class WorldPresences final : public Presences {
 public:
  explicit WorldPresences(World& world) : m_world(world), m_member(world.pick(3)) {}

  Result<Presence> make(Millis lease, Keeping, const CallLimits&) override
  {
    const std::int64_t from = m_world.now_us;
    m_world.pass();
    const PresenceId id = std::to_string(++m_world.last_presence);
    const std::int64_t length = lease.count() * 1000;
    m_world.presences[id] = {.ends_us = m_world.now_us + length, .length_us = length};
    m_world.pass();
    return is_lost() ? Result<Presence>(Error{ErrorCode::unreachable, "the answer is lost"})
                     : Presence{.id = id, .lease = term(from, length)};
  }

  Result<Proof> prove(const PresenceId& id, const CallLimits&) override
  {
    const std::int64_t from = m_world.now_us;
    m_world.pass();
    if (m_member == 0 && m_world.now_us < m_world.cut_until_us) {
      const auto life = m_world.presences.find(id);
      const bool is_believed = m_world.mistake == Mistake::ping_is_proof && life != m_world.presences.end();
      m_member = is_believed ? m_member : 1;
      return is_believed ? Result(Proof{term(from, life->second.length_us)})
                         : Error{ErrorCode::unreachable, "the member answers keep-alives alone"};
    }
    if (!m_world.lives(id)) {
      return Proof{NoLonger{}};
    }
    World::Life& life = m_world.presences[id];
    const std::int64_t length = life.length_us;
    life.ends_us = m_world.now_us + length;
    m_world.pass();
    if (is_lost()) {
      return Error{ErrorCode::unreachable, "the answer is lost"};
    }
    return Proof{term(m_world.mistake == Mistake::counted_from_answer ? m_world.now_us : from, length)};
  }

  Result<std::vector<PresenceId>> gone(std::span<const PresenceId> ids, const CallLimits&) override
  {
    m_world.pass();
    std::vector<PresenceId> over;
    for (const PresenceId& id : ids) {
      const bool was_there = std::ranges::find(m_before_record, id) != m_before_record.end();
      if (m_world.mistake == Mistake::gone_before_record ? !was_there : !m_world.lives(id)) {
        over.push_back(id);
      }
    }
    m_world.pass();
    return over;
  }

  Result<Done> remove(const PresenceId& id, const CallLimits&) override
  {
    m_world.pass();
    m_world.presences.erase(id);
    return Done{};
  }

  void record_is_read()
  {
    m_before_record.clear();
    for (const auto& [id, life] : m_world.presences) {
      if (life.ends_us > m_world.now_us) {
        m_before_record.push_back(id);
      }
    }
  }

 private:
  static LeaseTerm term(std::int64_t from_us, std::int64_t length_us)
  {
    return {.from = Instant(std::chrono::microseconds(from_us)), .length = Millis(length_us / 1000)};
  }
  bool is_lost() { return m_world.pick(12) == 0; }

  World& m_world;
  int m_member;
  std::vector<PresenceId> m_before_record;
};

class WorldBackend final : public BareBackend {
 public:
  // `wall_ahead_us`: how wrong the client's clock is, which gives the time where there are presences.
  explicit WorldBackend(World& world, std::int64_t wall_ahead_us = 0)
      : m_world(world), m_wall_ahead_us(wall_ahead_us), m_presences(world)
  {
  }
  Presences* presences() override { return m_world.has_presences ? &m_presences : nullptr; }

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

  void drop_connection() override { m_remembered.reset(); }

 private:
  Snapshot read_now()
  {
    m_presences.record_is_read();
    m_world.pass();
    Snapshot state{.version = m_world.version == 0 ? "" : std::to_string(m_world.version),
                   .bytes = m_world.bytes,
                   .time_us = m_world.now_us + m_wall_ahead_us,
                   .listeners = {}};
    if (m_world.mistake == Mistake::time_after_state) {
      state.time_us += m_world.pick(700'000);
    }
    m_world.pass();
    return state;
  }

  Result<Commit> try_to_write(const Version& version, const Change& change)
  {
    const auto arrive = [this, expected = version.empty() ? 0 : std::stoull(version), bytes = std::string(change.bytes),
                         needed = std::vector(change.needed.begin(), change.needed.end())] {
      return replace(expected, bytes, needed);
    };
    m_world.pass();
    switch (m_world.pick(12)) {
      case 0:
        m_world.late.emplace_back([arrive] { (void)arrive(); });
        m_world.pass();
        return Error{ErrorCode::unreachable, "the commit is late"};
      case 1: (void)arrive(); return Error{ErrorCode::unreachable, "the answer is lost"};
      default: break;
    }
    const Commit done = arrive();
    m_world.pass();
    return done;
  }
  Commit replace(std::uint64_t expected, const std::string& bytes, const std::vector<PresenceId>& needed)
  {
    if (m_world.version != expected && m_world.mistake != Mistake::no_comparison) {
      ++m_world.conflicts;
      return Conflict{};
    }
    const bool all_live = std::ranges::all_of(needed, [this](const PresenceId& id) { return m_world.lives(id); });
    if (!all_live) {
      return PresenceGone{};
    }
    m_world.version = ++m_world.last;
    if (m_world.mistake == Mistake::version_comes_back) {
      m_world.version = 1 + m_world.last % 3;
    }
    m_world.bytes = bytes;
    return Committed{std::to_string(m_world.version)};
  }

  World& m_world;
  std::int64_t m_wall_ahead_us;
  WorldPresences m_presences;
  std::optional<Snapshot> m_remembered;  // of what the deliberate mistake decides on
  std::int64_t m_remembered_at = 0;
};

}  // namespace rlock::test
