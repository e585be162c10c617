// SPDX-License-Identifier: Apache-2.0
#include "stores/quorum/quorum.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

std::string show(rlock::Decision decision)
{
  switch (decision) {
    case rlock::Decision::open: return "open";
    case rlock::Decision::carried: return "carried";
    case rlock::Decision::refused: return "refused";
    case rlock::Decision::unknown: break;
  }
  return "unknown";
}

class Counting final : public Rng {
 public:
  std::uint64_t next() override { return ~std::uint64_t{0} - 1; }
};

}  // namespace

TEST_CASE("quorum: how many of how many")
{
  struct Row {
    std::size_t servers;
    unsigned permits;  // 0: the plain lock
    std::size_t quorum;
  };
  const Row rows[] = {{2, 0, 2}, {3, 0, 2}, {4, 0, 3}, {5, 0, 3}, {7, 0, 4},   {3, 1, 2}, {3, 2, 3},
                      {5, 1, 3}, {5, 2, 4}, {5, 3, 4}, {5, 4, 5}, {5, 100, 5}, {7, 2, 5}};
  for (const Row& row : rows) {
    CAPTURE(row.servers);
    CAPTURE(row.permits);
    const LockKind kind = row.permits == 0 ? LockKind(Plain{}) : LockKind(Permits{row.permits});
    CHECK(quorum_size(QuorumRule::majority, kind, row.servers) == row.quorum);
    CHECK(quorum_size(QuorumRule::all, kind, row.servers) == row.servers);
  }
}

TEST_CASE("quorum: no more holders than permits, whatever the numbers")
{
  for (std::size_t servers = 2; servers <= 9; ++servers) {
    for (unsigned permits = 1; permits <= 12; ++permits) {
      const std::size_t quorum = quorum_size(QuorumRule::majority, Permits{permits}, servers);
      CAPTURE(servers);
      CAPTURE(permits);
      CHECK(quorum <= servers);
      CHECK((permits + 1) * quorum > servers * permits);         // one more would need a server without a free permit
      CHECK((permits + 1) * (quorum - 1) <= servers * permits);  // and no fewer would do
    }
  }
}

TEST_CASE("quorum: when the answers are enough")
{
  struct Row {
    const char* why;
    Tally five;  // of five servers, with a quorum of three
    const char* grant;
    const char* proof;
  };
  const Row rows[] = {
      {"nothing yet", {0, 0, 0, 5}, "open", "open"},
      {"three are enough, whatever the others say", {3, 0, 0, 2}, "carried", "carried"},
      {"three against two", {3, 2, 0, 0}, "carried", "carried"},
      {"three refuse", {0, 3, 0, 2}, "refused", "refused"},
      {"one more answer may carry it", {2, 2, 0, 1}, "open", "open"},
      {"a tie: nobody has it, but everybody answered", {2, 2, 1, 0}, "refused", "unknown"},
      {"two refuse, two are down", {1, 2, 2, 0}, "refused", "unknown"},
      {"three down", {2, 0, 3, 0}, "unknown", "unknown"},
      {"three down, before the others answer", {0, 0, 3, 2}, "unknown", "unknown"},
      {"two lost and one down may still be three lost", {0, 2, 1, 2}, "open", "open"},
      {"one lost, two down: the others decide", {2, 1, 2, 0}, "refused", "unknown"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(show(decide_grant(row.five, 3)) == row.grant);
    CHECK(show(decide_proof(row.five, 3)) == row.proof);
  }
}

TEST_CASE("quorum: the pause after a tie grows with each tie, and shrinks each time that it is settled")
{
  Counting most;
  Backoff backoff(most);
  Millis before{0};
  for (int i = 0; i < 5; ++i) {
    backoff.split_vote(Millis{1});
    const Millis pause = backoff.draw();
    CHECK(pause > before);
    before = pause;
  }
  for (int i = 0; i < 20; ++i) {
    backoff.split_vote(Millis{300});
  }
  before = backoff.draw();
  CHECK(before <= Millis{30'000});
  for (int i = 0; i < 7; ++i) {
    backoff.settled();
  }
  CHECK(backoff.draw() <= Millis{4});  // one slow tie long ago does not slow down what follows
}
