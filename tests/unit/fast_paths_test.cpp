// SPDX-License-Identifier: Apache-2.0
// The frequent cases at the top of a script end as its other cases would: the same random calls, with the frequent cases and without
// them, give the same answers, send the same messages and leave the same keys. And the first part of a script, which the record engine
// runs alone, answers as the whole script.
#include "engine/lock_keys.h"
#include "engine/script_call.h"
#include "engine/script_interpreter.h"
#include "lua/scripts.h"
#include "support/seed.h"
#include "support/seeded_rng.h"
#include "support/test.h"

#include <array>
#include <map>
#include <set>

using namespace rlock::test;
using namespace rlock::record;

namespace {

const std::array<std::string, 4> owners{"11111111-1111-4111-8111-111111111111:1",
                                        "22222222-2222-4222-8222-222222222222:2",
                                        "33333333-3333-4333-8333-333333333333:3", "a name of 16 ch."};

std::string replaced(std::string text, const std::string& part, const std::string& other)
{
  const auto at = text.find(part);
  REQUIRE_MESSAGE(at != std::string::npos, part);
  REQUIRE_MESSAGE(text.find(part, at + 1) == std::string::npos, part);
  return text.replace(at, part.size(), other);
}

// The script without its frequent cases.
std::string slow_source(const Script& script)
{
  std::string source = script.source();
  if (script.name.ends_with("_acquire")) {
    source = replaced(source, "local is_free = WAIT_MODE", "local is_free = false and WAIT_MODE");
  } else if (script.name.ends_with("_release")) {
    source =
        replaced(source, "if OWN_SUBSCRIBERS >= 0 and MIN_HOLD == 0 and REMEMBER_SUCCESS == 0 then", "if false then");
  } else {
    source = replaced(source, "if is_usual then", "if false then");
  }
  return source;
}

std::string text_of(const Reply& value)
{
  std::string all = value.kind == Reply::Kind::nil       ? "nil"
                    : value.kind == Reply::Kind::integer ? std::to_string(value.integer)
                                                         : "'" + value.text + "'";
  for (const Reply& element : value.elements) {
    all += " " + text_of(element);
  }
  return all;
}

std::string text_of(const Entry& entry)
{
  std::string all = entry.expires ? "until " + std::to_string(*entry.expires) + ":" : "for ever:";
  if (const auto* text = std::get_if<std::string>(&entry.data)) {
    all += " " + *text;
  } else if (const auto* hash = std::get_if<Hash>(&entry.data)) {
    for (const auto& [field, value] : std::map<std::string, std::string>(hash->begin(), hash->end())) {
      all.append(" {").append(field).append(": ").append(value).append("}");
    }
  } else if (const auto* set = std::get_if<SortedSet>(&entry.data)) {
    for (const auto& [member, score] : set->scores) {
      all += " {" + member + ": " + std::to_string(score) + "}";
    }
  } else {
    for (const std::string& element : std::get<List>(entry.data)) {
      all += " {" + element + "}";
    }
  }
  return all;
}

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// The keys of a lock and what was sent to its channels. Its interpreter keeps the scripts that it has compiled.
class State {
 public:
  explicit State(const std::set<std::string>& listening) : m_lua(m_keys)
  {
    m_keys.on_publish = [this, &listening](const std::string& channel, const std::string& text) {
      m_sent += channel + ": " + text.substr(0, text.rfind(" quick")) +
                "\n";  // only the frequent cases of a release say that
      return std::int64_t{listening.contains(channel) ? 1 : 0};
    };
    m_keys.count_subscribers = [&listening](const std::string& channel) {
      return std::int64_t{listening.contains(channel) ? 1 : 0};
    };
  }

  void begin(const KeySpace::Keys& keys, std::int64_t now_us)
  {
    m_keys.replace(keys);
    m_keys.set_time(now_us);
    m_sent.clear();
  }
  ScriptInterpreter& lua() { return m_lua; }
  KeySpace& keys() { return m_keys; }
  std::string text()
  {
    std::string all;
    for (const auto& [key, entry] : m_keys.keys()) {
      all += key + " " + text_of(entry) + "\n";
    }
    return all + m_sent;
  }

 private:
  KeySpace m_keys;
  ScriptInterpreter m_lua;
  std::string m_sent;
};

class Calls {
 public:
  explicit Calls(std::uint64_t seed) : m_random(seed) {}

  void sequence(int number)
  {
    m_keys.clear();
    m_listening.clear();
    m_kind = m_modes[static_cast<std::size_t>(number) % m_modes.size()];
    for (int i = 0; i < 60; ++i) {
      m_now_ms += pick(std::array{0, 0, 1, 7, 249, 1000, 11'000});
      switch (m_random.next() % 12) {
        case 0: toggle_subscriber(); break;
        case 1: disturb(); break;
        default: call();
      }
    }
  }

  // The first owner has the lock, the second waits, and the third freezes the lock. `has_foreign`: another program waits as well.
  void freeze(const LockKind& kind, bool has_foreign, bool is_dead)
  {
    const auto& [first, waiter, freezer, other] = owners;
    const LockKeys keys(m_name, kind);
    m_keys.clear();
    m_kind = kind;
    m_listening = {keys.owner_channel + waiter};
    if (!is_dead) {
      m_listening.insert(keys.owner_channel + freezer);
    }
    if (has_foreign) {
      m_listening.insert(keys.channel);
    }
    REQUIRE(mentions(ask(first, "wait"), "'granted'"));
    REQUIRE(mentions(ask(waiter, "wait"), "'busy'"));
    REQUIRE(mentions(ask(freezer, "first"), "'busy'"));
    m_now_ms += 5000;  // nobody counts as a newcomer
    REQUIRE(mentions(ask(other, "try"), "'busy'"));
    REQUIRE(mentions(give_up(first), "'released' 1"));
    if (!is_dead) {
      REQUIRE(is_holder(freezer));
      REQUIRE(mentions(ask(other, "try"), "'busy'"));
      REQUIRE(mentions(ask(waiter, "wait"), "'busy'"));
      REQUIRE(mentions(renew(freezer), "'kept'"));
      REQUIRE(is_holder(freezer));
      REQUIRE(mentions(give_up(freezer), "'released' 1"));
    }
    REQUIRE(is_holder(waiter));
  }

  std::map<std::string, int> frequent;  // by script: the calls that its first part answered
  int before_freezes = 0;               // the calls while a freeze was first in line
  int under_freezes = 0;                // the calls while a freeze had the lock

 private:
  const std::vector<LockKind> m_modes{Plain{}, Reader{}, Writer{}, Permits{2}, StringLock{}};

  template <typename List>
  auto pick(const List& list) -> typename List::value_type
  {
    return list[m_random.next() % list.size()];
  }
  bool one_in(unsigned number) { return m_random.next() % number == 0; }

  void toggle_subscriber()
  {
    const LockKeys keys(m_name, m_kind);
    const std::string channel = one_in(4) && !keys.channel.empty() ? keys.channel : keys.owner_channel + pick(owners);
    if (m_listening.erase(channel) == 0) {
      m_listening.insert(channel);
    }
  }

  // What other programs and the end of a ttl may do.
  void disturb()
  {
    const LockKeys keys(m_name, m_kind);
    KeySpace space;
    space.replace(m_keys);
    space.set_time(m_now_ms * 1000);
    const std::vector<std::string> all{keys.lock,   keys.fence,  keys.holder,   keys.queue, keys.waiters,
                                       keys.events, keys.second, keys.reserved, keys.fair};
    const std::vector<Words> commands{{"DEL", pick(all)},
                                      {"DEL", pick(all)},
                                      {"SET", pick(all), "7", "PX", "5000"},
                                      {"HSET", keys.lock, pick(owners), "1"},
                                      {"SET", keys.reserved, "1", "PX", "50"}};
    space.command(pick(commands));
    m_keys = space.keys();
  }

  std::string ask(const std::string& owner, const std::string& how)
  {
    const std::string freeze = how == "first" ? "\nfreeze=why\nautomatic=0" : "\nautomatic=1";
    return compare(scripts_of(m_kind).acquire, owner,
                   {owner, "30000", "host=h\npid=1\nlease=30000" + freeze, how, "0", "0", "unchecked"});
  }
  std::string renew(const std::string& owner) { return compare(scripts_of(m_kind).renew, owner, {"30000", owner, ""}); }
  std::string give_up(const std::string& owner)
  {
    return compare(scripts_of(m_kind).release, owner, {owner, "0", "0", "0"});
  }
  [[nodiscard]] bool is_holder(const std::string& owner) const
  {
    const auto lock = m_keys.find(LockKeys(m_name, m_kind).lock);
    return lock != m_keys.end() && mentions(text_of(lock->second), owner);
  }

  void note_freezes(const LockKeys& keys)
  {
    const auto queue = m_keys.find(keys.queue);
    const auto* waiting = queue == m_keys.end() ? nullptr : std::get_if<SortedSet>(&queue->second.data);
    before_freezes +=
        waiting != nullptr && std::ranges::any_of(waiting->scores, [](const auto& each) { return each.second < 0; })
            ? 1
            : 0;
    const auto records = m_keys.find(keys.holder);
    const bool is_frozen = records != m_keys.end() && mentions(text_of(records->second), "\nfreeze=");
    under_freezes += is_frozen && m_keys.contains(keys.lock) ? 1 : 0;
  }

  std::string holder()
  {
    const auto found = m_keys.find(LockKeys(m_name, m_kind).holder);
    const auto* records = found == m_keys.end() ? nullptr : std::get_if<Hash>(&found->second.data);
    for (const std::string& owner : owners) {
      if (records != nullptr && one_in(2) &&
          std::ranges::any_of(*records, [&](const auto& each) { return each.first == owner; })) {
        return owner;
      }
    }
    return pick(owners);
  }

  void call()
  {
    const std::string owner = one_in(2) ? holder() : pick(owners);
    const std::string hold = one_in(4) ? owner + "/nested" : owner;
    if ((std::holds_alternative<Reader>(m_kind) || std::holds_alternative<Writer>(m_kind))) {
      m_kind = one_in(2) ? LockKind{Reader{}} : LockKind{Writer{}};
    }
    const bool is_usual = !one_in(4);
    const std::string ttl = std::to_string(pick(std::array{30'000, 10'000, 1000}));
    const KindScripts& scripts = scripts_of(m_kind);
    switch (m_random.next() % 8) {
      case 0:
      case 1:
      case 2: {
        const std::string how =
            pick(is_usual ? Words{"try", "wait", "wait", "first"} : Words{"again", "latest", "wait"});
        const std::string priority = how == "wait" ? pick(Words{"0", "0", "5", "-100"}) : "0";
        compare(scripts.acquire, owner,
                {how == "again" ? hold : owner, ttl,
                 pick(Words{"", "history=90000\n"}) + "host=h\npid=1\nlease=" + ttl +
                     (how == "first" ? "\nfreeze=why\nautomatic=0" : "\nautomatic=1"),
                 how, "0", is_usual ? "0" : pick(Words{"0", "4000"}), pick(Words{"unchecked", ""}),
                 pick(Words{"", "3"}), "", priority});
        break;
      }
      case 3:
      case 4:
        compare(scripts.renew, owner,
                {is_usual ? ttl : "0", pick(Words{"", hold}), is_usual ? "" : pick(Words{"confirm", "stopping"})});
        break;
      default:
        compare(scripts.release, owner,
                {hold, is_usual ? "0" : pick(Words{"-1", "1"}), is_usual ? "0" : pick(Words{"0", "3000"}),
                 is_usual ? "0" : pick(Words{"0", "5000"})});
        break;
    }
  }

  // Returns the answer.
  std::string compare(const Script& script, const std::string& owner, const Words& args)
  {
    const LockKeys keys(m_name, m_kind);
    const Words names{keys.lock,    keys.fence,    keys.holder, keys.force,  keys.events, keys.queue,
                      keys.waiters, keys.reserved, keys.fair,   keys.second, keys.done};
    Words words{owner, keys.channel, keys.owner_channel, requested_mode(m_kind), ""};
    words.insert(words.end(), args.begin(), args.end());
    CAPTURE(script.name);
    CAPTURE(text_of(Reply::list(words)));

    for (State* const state : {&m_whole, &m_slow, &m_first}) {
      state->begin(m_keys, m_now_ms * 1000);
    }
    CAPTURE(m_first.text());
    const std::string answer = text_of(*m_whole.lua().run(script, ScriptPart::whole, names, words));
    std::string& source = m_slow_sources[std::string(script.name)];
    source = source.empty() ? slow_source(script) : source;
    REQUIRE(text_of(m_slow.lua().run(source, names, words)) == answer);
    REQUIRE(m_slow.text() == m_whole.text());

    if (const auto early = m_first.lua().run(script, ScriptPart::first, names, words)) {
      REQUIRE(text_of(*early) == answer);
      REQUIRE(m_first.text() == m_whole.text());
      ++frequent[std::string(script.name)];
    }
    note_freezes(keys);
    m_keys = m_whole.keys().keys();
    return answer;
  }

  SeededRng m_random;
  const LockName m_name = *LockName::parse("k");
  LockKind m_kind;
  KeySpace::Keys m_keys;
  std::int64_t m_now_ms = 1'700'000'000'000;
  std::set<std::string> m_listening;
  State m_whole{m_listening}, m_slow{m_listening}, m_first{m_listening};
  std::map<std::string, std::string> m_slow_sources;
};

}  // namespace

TEST_CASE("fast paths: the frequent cases of a script end as its other cases would")
{
  Calls calls(seed());
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    calls.sequence(i);
  }
  for (const std::string kind : {"plain", "string", "rw", "permits"}) {
    for (const std::string verb : {"_acquire", "_renew", "_release"}) {
      CAPTURE(kind + verb);
      CHECK(calls.frequent[kind + verb] > 0);
    }
  }
  CHECK(calls.before_freezes > 0);
  CHECK(calls.under_freezes > 0);
}

TEST_CASE("fast paths: a freeze that is first in line gets the lock and keeps it, unless it is dead")
{
  Calls calls(seed());
  for (const LockKind& kind : std::vector<LockKind>{Plain{}, StringLock{}, Writer{}}) {
    for (const bool has_foreign : {false, true}) {
      for (const bool is_dead : {false, true}) {
        CAPTURE(kind_of(kind).with_article);
        CAPTURE(has_foreign);
        CAPTURE(is_dead);
        calls.freeze(kind, has_foreign && !LockKeys(*LockName::parse("k"), kind).channel.empty(), is_dead);
      }
    }
  }
}
