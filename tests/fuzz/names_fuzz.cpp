// SPDX-License-Identifier: Apache-2.0
// Names: keys, tokens, globs, slots and the rules for an ACL.
#include "engine/lock_keys.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"
#include "lock/names.h"
#include "redis/acl.h"
#include "redis/slot_map.h"

#include <array>

namespace rlock::test {
namespace {

void promise_token(std::string_view token)
{
  const Hold hold = Hold::of_token(token);
  promise(hold.token() == token, "a token that is read and printed is the same", token);
}

// All keys and channels of a lock belong to one slot of a cluster; and the lock is found by its bookkeeping.
void promise_keys(const LockName& name)
{
  const unsigned slot = slot_of(name.text());
  promise(slot < slot_count, "a slot is a slot");
  for (const LockKind& kind : {LockKind(Plain{}), LockKind(Reader{}), LockKind(Permits{2}), LockKind(StringLock{})}) {
    const LockKeys keys(name, kind);
    for (const std::string& key :
         {keys.fence, keys.holder, keys.force, keys.events, keys.queue, keys.waiters, keys.reserved, keys.second,
          keys.done, keys.taken_channel, keys.owner_channel + "8743c9c0:1"}) {
      promise(key.empty() || slot_of(key) == slot, "a key is in the slot of its lock", key);
    }
    promise(lock_beside("holder", keys.holder) == name.text(), "a lock is found by its record", keys.holder);
    promise(lock_beside("events", keys.events) == name.text(), "a lock is found by its event log", keys.events);
  }
}

void promise_rules(std::string_view glob)
{
  const std::array<std::string, 1> globs{std::string(glob)};
  auto rules = acl_rules_for(globs);
  if (!rules) {
    promise_error(rules.error());
    return;
  }
  add_cluster(*rules);
  for (const std::string& rule : rules->keys) {
    promise(rule.find_first_of(" \t\r\n") == std::string::npos, "a rule is one word", rule);
  }
}

}  // namespace

void fuzz_names(std::string_view bytes)
{
  promise_token(bytes);
  promise_rules(bytes);
  lock_beside("holder", bytes);
  const auto name = LockName::parse(bytes);
  if (name) {
    promise(name->text() == bytes, "a name is its text");
    promise_keys(*name);
  } else {
    promise_error(name.error());
  }
}

}  // namespace rlock::test
