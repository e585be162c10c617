// SPDX-License-Identifier: Apache-2.0
// What a proof is worth that is younger than the state on which the engine decides.
#include "store/record/presence_keeper.h"

#include "lock/abilities.h"
#include "store/record/record_host.h"
#include "store/script/script_store.h"
#include "support/forwarding_backend.h"
#include "support/memory_backend.h"
#include "support/seeded_rng.h"
#include "support/stepped_clock.h"
#include "support/test.h"

#include <functional>

using namespace rlock::test;
using namespace rlock::record;
using namespace std::chrono_literals;

namespace {

// Of a store in memory; something happens between a read and the proof after it.
class LateProofs final : public ForwardingPresences {
 public:
  LateProofs(Presences& presences, std::function<void()>& before_proof)
      : ForwardingPresences(presences), m_before_proof(before_proof)
  {
  }
  Result<Proof> prove(const PresenceId& id, const CallLimits& limit) override
  {
    if (const auto happens = std::exchange(m_before_proof, nullptr)) {
      happens();
    }
    return ForwardingPresences::prove(id, limit);
  }

 private:
  std::function<void()>& m_before_proof;
};

class LateBackend final : public ForwardingBackend {
 public:
  LateBackend(std::unique_ptr<Backend> backend, std::function<void()>& before_proof)
      : ForwardingBackend(std::move(backend)), m_presences(*ForwardingBackend::presences(), before_proof)
  {
  }
  Presences* presences() override { return &m_presences; }

 private:
  LateProofs m_presences;
};

// A holder whose lease of a second and a half is half a second old, and an operator.
class RevokedBeforeProof {
 public:
  RevokedBeforeProof()
  {
    REQUIRE(std::holds_alternative<Granted>(*holder.acquire(wanted, owner, {}, limit())));
    clock.add(500ms);
    before_proof = [this] {
      REQUIRE(holds_after_revocation());
      clock.add(300ms);
    };
  }
  bool holds_after_revocation()
  {
    const ForceCall call{.name = wanted.name, .kind = wanted.kind, .owner = owner, .by = "op", .stands_for = 10s};
    const auto answer = operating.force_unlock()->force(ForceStep::revoke, call, limit());
    REQUIRE_MESSAGE(answer, answer.error().text);
    return std::holds_alternative<ForceHeld>(*answer);
  }
  // When the operator finds the lock free.
  Instant freed_at()
  {
    while (holds_after_revocation()) {
      clock.add(10ms);
    }
    return clock.now();
  }
  [[nodiscard]] CallLimits limit() const { return {.deadline = clock.now() + 5s, .stop = StopToken::never()}; }

  SteppedClock clock;
  const std::string name = "late-proof-" + std::to_string(++number);
  std::function<void()> before_proof;
  const Owner owner = Owner::of("11111111-2222-3333-4444-555555555555:1");
  const LockRequest wanted{.name = *LockName::parse("k"),
                           .kind = Plain{},
                           .ttl = 1510ms,  // of which the store makes a longer one, so that nothing changes
                           .who = {.host = "h", .pid = 1, .automatic = true},
                           .once = {}};
  ScriptStore holder{host(std::make_unique<LateBackend>(session_backend(name, clock), before_proof)), clock};
  ScriptStore operating{host(session_backend(name, clock)), clock};

 private:
  std::unique_ptr<RecordHost> host(std::unique_ptr<Backend> backend) const
  {
    return std::make_unique<RecordHost>(std::move(backend), clock, std::make_unique<SeededRng>(1));
  }
  static inline int number = 0;
};

}  // namespace

TEST_CASE("presence keeper: a hold that is revoked between the read and the proof is not believed in for longer")
{
  RevokedBeforeProof store;
  const auto again = store.holder.acquire(store.wanted, store.owner, {}, store.limit());
  REQUIRE_MESSAGE(again, again.error().text);
  CHECK_FALSE(store.before_proof);  // it was proven
  const auto* granted = std::get_if<Granted>(&*again);
  const Instant believed_until = granted != nullptr ? granted->lease.from + granted->lease.length : store.clock.now();
  CHECK(store.freed_at() >= believed_until);
}

TEST_CASE("presence keeper: a nested hold is not granted in a hold that is revoked between the read and the proof")
{
  RevokedBeforeProof store;
  SeededRng rng(2);
  const Hold nested = Hold::nested_in(store.owner, rng, 1);
  const auto before_proof = std::exchange(store.before_proof, nullptr);
  REQUIRE(std::holds_alternative<Granted>(*store.holder.reenter(store.wanted, nested, store.limit())));
  store.clock.add(500ms);
  store.before_proof = before_proof;
  const auto again = store.holder.reenter(store.wanted, nested, store.limit());  // the first answer was lost
  REQUIRE_MESSAGE(again, again.error().text);
  CHECK_FALSE(store.before_proof);
  const auto* granted = std::get_if<Granted>(&*again);
  const Instant believed_until = granted != nullptr ? granted->lease.from + granted->lease.length : store.clock.now();
  CHECK(store.freed_at() >= believed_until);
}
