// SPDX-License-Identifier: Apache-2.0
// Many clients that wait for one lock on several servers, in virtual time: an attempt that overlaps another one is a tie,
// after which both pause.
#include "stores/quorum/quorum.h"
#include "support/seed.h"
#include "support/seeded_rng.h"
#include "support/test.h"

#include <memory>

using namespace rlock::test;

namespace {

struct Contender {
  explicit Contender(Rng& rng) : backoff(rng) {}

  Backoff backoff;
  Millis next{0};  // when its pause or its attempt is over
  bool is_asking = false;
  bool is_tied = false;
  bool finds_it_held = false;
};

class Contest {
 public:
  Contest(std::size_t clients, Millis attempt, std::uint64_t seed) : m_rng(seed), m_attempt(attempt)
  {
    for (std::size_t i = 0; i < clients; ++i) {
      m_waiting.push_back(std::make_unique<Contender>(m_rng));
      m_waiting.back()->next = m_waiting.back()->backoff.draw();
    }
  }

  // How many are left after that time.
  std::size_t left_after(Millis end)
  {
    while (!m_waiting.empty()) {
      const auto first = std::min_element(m_waiting.begin(), m_waiting.end(),
                                          [](const auto& a, const auto& b) { return a->next < b->next; });
      m_now = (*first)->next;
      if (m_now > end) {
        break;
      }
      if (!(*first)->is_asking) {
        begin(**first);
      } else if (has_won(**first)) {
        m_held_until = m_now + job;
        m_waiting.erase(first);
      }
    }
    return m_waiting.size();
  }

 private:
  void begin(Contender& client)
  {
    client.finds_it_held = m_now < m_held_until;
    client.is_tied = false;
    for (const auto& other : m_waiting) {
      if (other->is_asking && !client.finds_it_held) {
        client.is_tied = other->is_tied = true;
      }
    }
    client.is_asking = true;
    client.next = m_now + m_attempt / 2 + Millis(below(m_rng, static_cast<std::uint64_t>(m_attempt.count())));
  }
  // Ends an attempt.
  bool has_won(Contender& client)
  {
    client.is_asking = false;
    if (client.finds_it_held) {
      client.backoff.settled();
      client.next = std::max(m_now, m_held_until) + client.backoff.draw();
    } else if (client.is_tied) {
      client.backoff.split_vote(m_attempt);
      client.next = m_now + client.backoff.draw();
    } else {
      return true;
    }
    return false;
  }

  static constexpr Millis job{50};
  test::SeededRng m_rng;
  Millis m_attempt;
  Millis m_now{0};
  Millis m_held_until{0};
  std::vector<std::unique_ptr<Contender>> m_waiting;
};

}  // namespace

TEST_CASE("quorum: two dozen clients that wait for one lock are all served, however slow the servers are")
{
  struct Row {
    Millis attempt;
    Millis within;
  };
  for (const Row& row : {Row{2ms, 5s}, Row{20ms, 30s}, Row{100ms, 3min}, Row{500ms, 10min}}) {
    CAPTURE(row.attempt.count());
    Contest contest(24, row.attempt, test::seed());
    CHECK(contest.left_after(row.within) == 0);
  }
}
