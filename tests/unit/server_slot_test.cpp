// SPDX-License-Identifier: Apache-2.0
#include "redis/slot_map.h"

#include "engine/lock_keys.h"
#include "support/test.h"

using namespace rlock::test;

TEST_CASE("slot: of the tag, if there is one with something in it, else of the whole")
{
  struct Row {
    const char* why;
    std::string_view name;
    unsigned slot;
  };
  const Row rows[] = {
      {"the check value of CRC-16/XMODEM, 0x31c3", "123456789", 0x31c3},
      {"nothing", "", 0},
      {"a plain name", "plain", 7143},
      {"tagged", "rlock:queue:{plain}", 7143},
      {"a name with a tag of its own", "a{b}c", slot_of("b")},
      {"the first tag counts", "a{b}{c}", slot_of("b")},
      {"up to the first closing brace", "{{x}}", slot_of("{x")},
      {"a closing brace before it is nothing", "x}y{b}", slot_of("b")},
  };
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK(slot_of(row.name) == row.slot);
  }
  // Without a tag the whole name counts, braces and all.
  CHECK(slot_of("{}") != slot_of(""));
  CHECK(slot_of("x{}y") != slot_of("x"));
  CHECK(slot_of("a{b") != slot_of("b"));
  CHECK(slot_of("{}{b}") != slot_of("b"));
}

TEST_CASE("slot: all keys and channels of a lock share one, whatever its kind and its name")
{
  const std::string alphabet = "ab{}:*";
  std::vector<std::string> names{"stock", "a:0", "{stock}:0", "a{b}c", "{{x}}", "x}y{b}", "a{b}{c}"};
  for (int seed = 0; seed < 6 * 6 * 6 * 6 * 6; ++seed) {  // every word of five letters
    std::string name;
    for (int rest = seed, i = 0; i < 5; ++i, rest /= 6) {
      name += alphabet[static_cast<std::size_t>(rest % 6)];
    }
    names.push_back(name);
  }
  int refused = 0;
  for (const std::string& text : names) {
    const auto name = LockName::parse(text);
    if (!name) {
      ++refused;
      continue;
    }
    for (const LockKind& kind :
         {LockKind(Plain{}), LockKind(Reader{}), LockKind(Writer{}), LockKind(Permits{2}), LockKind(StringLock{})}) {
      const LockKeys keys(*name, kind);
      const std::string reads = keys.reads + "me:rwlock_timeout:1";
      const std::string owner_channel = keys.owner_channel + "me";
      for (const std::string& key :
           {keys.fence, keys.holder, keys.force, keys.events, keys.queue, keys.waiters, keys.reserved, keys.fair,
            keys.second, keys.done, reads, keys.channel, keys.channel + ":me", keys.taken_channel, owner_channel}) {
        if (key.empty() || key == ":me") {
          continue;
        }
        const bool together = slot_of(key) == slot_of(text);
        if (!together) {
          FAIL_CHECK(text << " and " << key << " are in two slots");
        }
      }
    }
  }
  CHECK(refused > 1000);
}
