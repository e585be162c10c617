// SPDX-License-Identifier: Apache-2.0
// What a proof is worth that is younger than the state on which the engine decides.
#include "engine/presence_stage.h"

#include "engine/record_host.h"
#include "engine/script_store.h"
#include "support/forwarding_backend.h"
#include "support/memory_backend.h"
#include "support/seeded_rng.h"
#include "support/stepped_clock.h"
#include "support/test.h"

#include <functional>

using namespace rlock::test;
using namespace rlock::record;

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

// Something happens between a read and the question which presences are gone.
class LateQuestions final : public ForwardingPresences {
 public:
  LateQuestions(Presences& presences, std::function<void()>& before_question)
      : ForwardingPresences(presences), m_before_question(before_question)
  {
  }
  Result<std::vector<PresenceId>> gone(std::span<const PresenceId> ids, const CallLimits& limit) override
  {
    if (const auto happens = std::exchange(m_before_question, nullptr)) {
      happens();
    }
    return ForwardingPresences::gone(ids, limit);
  }

 private:
  std::function<void()>& m_before_question;
};

class LateLook final : public ForwardingBackend {
 public:
  LateLook(std::unique_ptr<Backend> backend, std::function<void()>& before_question)
      : ForwardingBackend(std::move(backend)), m_presences(*ForwardingBackend::presences(), before_question)
  {
  }
  Presences* presences() override { return &m_presences; }

 private:
  LateQuestions m_presences;
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
    const auto answer = operating.force(ForceStep::revoke, call, limit());
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
  const LockSpec wanted{.name = *LockName::parse("k"),
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

TEST_CASE("presence stage: a hold that is revoked between the read and the proof is not believed in for longer")
{
  RevokedBeforeProof store;
  const auto again = store.holder.acquire(store.wanted, store.owner, {}, store.limit());
  REQUIRE_MESSAGE(again, again.error().text);
  CHECK_FALSE(store.before_proof);  // it was proven
  const auto* granted = std::get_if<Granted>(&*again);
  const Instant believed_until = granted != nullptr ? granted->lease.from + granted->lease.length : store.clock.now();
  CHECK(store.freed_at() >= believed_until);
}

TEST_CASE("presence stage: a nested hold is not granted in a hold that is revoked between the read and the proof")
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

TEST_CASE("presence stage: a lock that changes hands between the read and the question for its holder is no free one")
{
  const BootClock clock;
  const CallLimits limit{.deadline = clock.now() + 10s, .stop = StopToken::never()};
  std::function<void()> before_question;
  const auto store_with = [&](std::unique_ptr<Backend> backend) {
    return ScriptStore(std::make_unique<RecordHost>(std::move(backend), clock, std::make_unique<SeededRng>(1)), clock);
  };
  const auto backend = [&] { return session_backend("late-look", clock); };
  ScriptStore clients = store_with(backend());
  ScriptStore looking = store_with(std::make_unique<LateLook>(backend(), before_question));
  const LockSpec wanted{.name = *LockName::parse("k"),
                        .kind = Plain{},
                        .ttl = 30s,
                        .who = {.host = "h", .pid = 1, .automatic = true},
                        .once = {}};
  const Owner first = Owner::of("11111111-2222-3333-4444-555555555555:1");
  const Owner second = Owner::of("11111111-2222-3333-4444-666666666666:1");
  REQUIRE(std::holds_alternative<Granted>(*clients.acquire(wanted, first, {}, limit)));
  before_question = [&] {
    REQUIRE(clients.release(wanted, Hold(first), {}, limit));
    REQUIRE(std::holds_alternative<Granted>(*clients.acquire(wanted, second, {}, limit)));
  };
  const auto seen = looking.inspect(wanted.name, limit);
  REQUIRE_MESSAGE(seen, seen.error().text);
  CHECK_FALSE(before_question);  // it was asked
  REQUIRE(seen->holders.size() == 1);
  CHECK(seen->holders.front().owner == second);
}
