// SPDX-License-Identifier: Apache-2.0
#include "store/quorum/quorum_store.h"

#include "store/quorum/quorum_asking.h"
#include "store/quorum/quorum_listener.h"

namespace rlock {

QuorumStore::QuorumStore(std::vector<QuorumServer> servers, QuorumPolicy policy, const Clock& clock,
                         std::unique_ptr<Rng> rng)
    : m_policy(policy), m_clock(clock), m_rng(std::move(rng)), m_backoff(std::make_shared<Backoff>(*m_rng))
{
  for (QuorumServer& server : servers) {
    m_members.push_back(std::make_unique<ServerWorker>(std::move(server)));
  }
}

QuorumStore::~QuorumStore() { rest(); }

void QuorumStore::rest()
{
  constexpr Millis look_every{1};
  const Instant over = m_clock.now() + unresponsive_grace;
  for (const auto& member : m_members) {
    member->hurry();
  }
  const auto is_idle = [](const auto& member) { return member->is_idle(); };
  while (m_clock.now() < over && !std::all_of(m_members.begin(), m_members.end(), is_idle)) {
    m_clock.sleep_until(m_clock.now() + look_every, StopToken::never());
  }
  for (const auto& member : m_members) {
    member->rest();
  }
}

Result<bool> QuorumStore::raise_fence(const LockSpec& spec, const Owner& owner, std::uint64_t fence,
                                      const CallLimits& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const auto count = [](const Answers<bool>& answers) { return tally(answers, [](bool raised) { return raised; }); };
  const auto answers = consult<bool>(
      further(spec.name, owner), limit,
      [spec, owner, fence](QuorumServer& server, const CallLimits& within) {
        return server.store->raise_fence(spec, owner, fence, within);
      },
      [&](const auto& so_far) { return decide_proof(count(so_far), quorum) != Decision::open; });
  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  return decision == Decision::unknown ? Result<bool>(no_quorum(answers, quorum))
                                       : Result<bool>(decision == Decision::carried);
}

void QuorumStore::post_release(std::size_t member, const LockSpec& spec, const Hold& hold, bool announced,
                               Millis within)
{
  const auto task = [spec, hold, announced, within, &clock = m_clock](QuorumServer& server, StopToken stop) {
    const ReleaseOptions release_options{.keep = Millis{0}, .succeeded = false, .announced = announced};
    const CallLimits limit{.deadline = clock.now() + within, .stop = stop};
    const auto released = server.store->release(spec, hold, release_options, limit);
    if (!released) {
      server.unreleased.push_back({.spec = spec, .hold = hold, .over = clock.now() + spec.ttl});
    }
    return static_cast<bool>(released);
  };
  m_members[member]->post(topic_of(spec.name, hold), ServerWorker::Word::last, task);
}

Result<Renewal> QuorumStore::renew(const LockSpec& spec, const Owner& owner, const CallLimits& limit)
{
  const auto request = [spec, owner, &clock = m_clock](QuorumServer& server, const CallLimits& within) {
    return once_told(server.store->renew(spec, owner, within), server, spec.ttl, clock, within);
  };
  return renew_by(request, spec, owner, limit);
}

Result<Renewal> QuorumStore::renew_hold(const LockSpec& spec, const Hold& hold, const CallLimits& limit)
{
  const auto request = [spec, hold, &clock = m_clock](QuorumServer& server, const CallLimits& within) {
    return once_told(server.store->renew_hold(spec, hold, within), server, spec.ttl, clock, within);
  };
  return renew_by(request, spec, hold, limit);
}

Result<Renewal> QuorumStore::renew_by(const AskForRenewal& request, const LockSpec& spec, const Hold& hold,
                                      const CallLimits& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const auto count = [](const Answers<Renewal>& answers) {
    return tally(answers, [](const Renewal& renewal) { return std::holds_alternative<Kept>(renewal); });
  };
  const auto answers = consult<Renewal>(further(spec.name, hold), limit, request, [&](const auto& so_far) {
    return decide_proof(count(so_far), quorum) != Decision::open;
  });

  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  Kept kept;
  NotOurs lost;
  for (const auto& answer : answers) {
    if (!answer || !*answer) {
      continue;
    }
    if (const auto* ours = std::get_if<Kept>(&**answer)) {
      kept.forced = ours->forced ? ours->forced : kept.forced;
    } else {
      const auto& gone = std::get<NotOurs>(**answer);
      lost.what = lost.what.empty() ? gone.what : lost.what;
      lost.forced = gone.forced ? gone.forced : lost.forced;
      lost.revoked = lost.revoked || gone.revoked;
    }
  }
  return decision == Decision::carried ? Renewal{kept} : Renewal{lost};
}

// Who goes must not leave a request behind that is still under way to a server that hangs: it is cut off, so that the word
// of the release can be sent.
Result<Release> QuorumStore::release(const LockSpec& spec, const Hold& hold, const ReleaseOptions& release_options,
                                     const CallLimits& limit)
{
  const std::size_t quorum = quorum_size(m_policy.rule, spec.mode, size());
  const auto count = [](const Answers<Release>& answers) {
    return tally(answers, [](const Release& release) { return !std::holds_alternative<NotOurs>(release); });
  };
  const auto request = [spec, hold, release_options](QuorumServer& server, const CallLimits& within) {
    return server.store->release(spec, hold, release_options, within);
  };
  const Subject subject{topic_of(spec.name, hold), ServerWorker::Word::urgent};
  const auto answers = consult_all<Release>(subject, limit, request, [&](const auto& so_far) {
    return decide_proof(count(so_far), quorum) != Decision::open;
  });

  const Decision decision = decide_proof(final_tally(count(answers)), quorum);
  if (decision == Decision::unknown) {
    return no_quorum(answers, quorum);
  }
  // Of those that say the same, StillHeld goes first: an outer hold is left wherever one says so.
  std::optional<Release> said;
  for (const auto& answer : answers) {
    if (!answer || !*answer || std::holds_alternative<NotOurs>(**answer) == (decision == Decision::carried)) {
      continue;
    }
    if (!said || std::holds_alternative<StillHeld>(**answer)) {
      said = **answer;
    }
  }
  return *said;
}

// A quorum is enough: who lets go of the lock says so on one of them at least.
Result<std::unique_ptr<Listener>> QuorumStore::listen(std::span<const LockSpec> specs, const Owner& owner,
                                                      const CallLimits& limit)
{
  using Ear = std::unique_ptr<Listener>;
  const std::size_t quorum = majority();
  const auto count = [](const Answers<Ear>& answers) { return tally(answers, [](const Ear&) { return true; }); };
  auto answers = consult<Ear>(
      Subject{"listen " + topic_of(specs.front().name, owner)}, limit,
      [all = std::vector(specs.begin(), specs.end()), owner](QuorumServer& server,
                                                             const CallLimits& within) -> Result<Ear> {
        auto ear = server.store->listen(all, owner, within);
        auto hears = ear ? Result<Done>(Done{}) : Result<Done>(ear.error());
        for (std::size_t which = 0; hears && which < all.size(); ++which) {
          hears = (*ear)->hear_releases(which, within);
        }
        return hears ? std::move(ear) : Result<Ear>(hears.error());
      },
      [&](const auto& so_far) { return decide_proof(count(so_far), quorum) != Decision::open; });

  if (decide_proof(final_tally(count(answers)), quorum) != Decision::carried) {
    return no_quorum(answers, quorum);
  }
  std::vector<Ear> ears;
  for (auto& answer : answers) {
    if (answer && *answer) {
      ears.push_back(std::move(**answer));
    }
  }
  return Ear(std::make_unique<QuorumListener>(std::move(ears), specs.size(), quorum, m_backoff));
}

}  // namespace rlock
