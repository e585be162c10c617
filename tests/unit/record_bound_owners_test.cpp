// SPDX-License-Identifier: Apache-2.0
// What becomes of owners whose presences are gone, and whose presences are asked for.
#include "engine/bound_owners.h"

#include "engine/lock_keys.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::record;

namespace {

using rlock::LockKeys;
using rlock::LockName;

const LockName lock = *LockName::parse("k");
const LockKeys names(lock);
constexpr std::int64_t time_us = 1'000'000'000'000;

Entry lasting(decltype(Entry::data) data) { return {.data = std::move(data), .expires = time_us / 1000 + 60'000}; }

void bind(LockRecord& record, const std::string& owner)
{
  record.bindings[owner] = {{.id = "presence of " + owner, .lease_ms = 30'000, .keeping = Keeping::kept}};
}

LockRecord held_by(const std::string& owner)
{
  LockRecord record;
  record.keys[names.lock] = lasting(Hash{{owner, "1"}});
  bind(record, owner);
  return record;
}

void queue_up(LockRecord& record, const std::string& owner)
{
  auto& queue = record.keys.try_emplace(names.queue, lasting(SortedSet{})).first->second;
  auto& set = std::get<SortedSet>(queue.data);
  set.add(owner, static_cast<double>(set.order.size()) + 1);
  auto& waiters = record.keys.try_emplace(names.waiters, lasting(Hash{})).first->second;
  std::get<Hash>(waiters.data).emplace_back(owner, "info");
  bind(record, owner);
}

// "": no note.
std::string noted_deaths(const LockRecord& record)
{
  const auto waiters = record.keys.find(names.waiters);
  if (waiters != record.keys.end()) {
    for (const auto& [field, text] : std::get<Hash>(waiters->second.data)) {
      if (field == "#ended") {
        return text;
      }
    }
  }
  return "";
}

using namespace std::string_literals;

}  // namespace

TEST_CASE("bound owners: the scripts are told which holder was dead")
{
  LockRecord record = held_by("holder");
  queue_up(record, "waiter");
  const auto of_holders = end_gone(record, lock, std::array{PresenceId("presence of holder")}, time_us);
  CHECK(of_holders == std::vector{PresenceId("presence of holder")});
  CHECK(noted_deaths(record) == "\0holder\0"s);
  CHECK_FALSE(record.keys.contains(names.lock));
  CHECK_FALSE(record.bindings.contains("holder"));
}

TEST_CASE("bound owners: a dead waiter leaves the queue without a note, and so does a holder for whom nobody waits")
{
  LockRecord waited = held_by("holder");
  queue_up(waited, "dead");
  queue_up(waited, "waiter");
  CHECK(end_gone(waited, lock, std::array{PresenceId("presence of dead")}, time_us).empty());
  CHECK(noted_deaths(waited).empty());
  CHECK(std::get<SortedSet>(waited.keys.at(names.queue).data).scores.size() == 1);

  LockRecord alone = held_by("holder");
  end_gone(alone, lock, std::array{PresenceId("presence of holder")}, time_us);
  CHECK(alone.keys.empty());
}

TEST_CASE("bound owners: the scripts are told of the last sixteen dead holders")
{
  LockRecord record;
  queue_up(record, "waiter");
  for (int i = 1; i <= 20; ++i) {
    const std::string owner = "holder " + std::to_string(i);
    record.keys[names.lock] = lasting(Hash{{owner, "1"}});
    bind(record, owner);
    end_gone(record, lock, std::array{PresenceId("presence of " + owner)}, time_us);
  }
  const std::string note = noted_deaths(record);
  CHECK(std::ranges::count(note, '\0') == 17);
  CHECK(note.starts_with("\0holder 5\0"s));
  CHECK(note.ends_with("\0holder 20\0"s));
}

TEST_CASE("bound owners: holders and the first waiters are asked for, the others are not")
{
  LockRecord record = held_by("holder");
  std::vector<PresenceId> expected{"presence of holder"};
  for (std::size_t i = 0; i < 3 * asked_waiters; ++i) {
    const std::string owner = "waiter " + std::to_string(i);
    queue_up(record, owner);
    if (i < asked_waiters) {
      expected.push_back("presence of " + owner);
    }
  }
  auto asked = presences_to_ask(record, lock);
  std::ranges::sort(asked);
  std::ranges::sort(expected);
  CHECK(asked == expected);
  CHECK(presences_in(record.bindings).size() == 1 + 3 * asked_waiters);
}

TEST_CASE("bound owners: a holder that is also far back in a queue is asked for")
{
  LockRecord record = held_by("holder");
  for (std::size_t i = 0; i < asked_waiters; ++i) {
    queue_up(record, "waiter " + std::to_string(i));
  }
  queue_up(record, "holder");
  const auto asked = presences_to_ask(record, lock);
  CHECK(std::ranges::find(asked, "presence of holder") != asked.end());
}
