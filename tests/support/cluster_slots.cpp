// SPDX-License-Identifier: Apache-2.0
#include "support/cluster_slots.h"

#include "support/give_up.h"
#include "support/wait_until.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace rlock::test {
namespace {

// What a master says of its own slots.
struct OwnSlots {
  const RedisServer* node = nullptr;
  std::string id = {};
  std::int64_t epoch = 0;
  std::vector<std::pair<int, int>> ranges = {};
  std::map<std::string, std::string> migrating = {};  // slot to the id of the other node
  std::map<std::string, std::string> importing = {};
};

// "0-5460", "7", "[93->-ID]" or "[93-<-ID]"
void read_slots(const std::string& word, OwnSlots& own)
{
  const auto dash = word.find('-');
  if (word.front() != '[') {
    const int first = std::stoi(word);
    own.ranges.emplace_back(first, dash == std::string::npos ? first : std::stoi(word.substr(dash + 1)));
    return;
  }
  auto& open = word.substr(dash, 3) == "->-" ? own.migrating : own.importing;
  open[word.substr(1, dash - 1)] = word.substr(dash + 3, word.size() - dash - 4);
}

// Those of all masters.
std::vector<OwnSlots> slots_of(const std::deque<RedisServer>& nodes)
{
  std::vector<OwnSlots> all;
  for (const RedisServer& node : nodes) {
    std::istringstream lines(as_text(node.command({"CLUSTER", "NODES"})));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string word;  // ID ADDRESS FLAGS MASTER PING PONG EPOCH LINK SLOT...
      OwnSlots own{.node = &node};
      words >> own.id >> word >> word;
      if (word.find("myself,master") == std::string::npos) {
        continue;
      }
      words >> word >> word >> word >> own.epoch >> word;
      while (words >> word) {
        read_slots(word, own);
      }
      all.push_back(own);
    }
  }
  return all;
}

bool owns(const OwnSlots& own, int slot)
{
  return std::any_of(own.ranges.begin(), own.ranges.end(),
                     [&](const auto& range) { return range.first <= slot && slot <= range.second; });
}

// Of two, the one that the others will believe.
const OwnSlots* owner_of(const std::string& slot, const std::vector<OwnSlots>& all)
{
  const OwnSlots* owner = nullptr;
  for (const OwnSlots& own : all) {
    if (owns(own, std::stoi(slot)) && (owner == nullptr || own.epoch > owner->epoch)) {
      owner = &own;
    }
  }
  return owner;
}

// A node that imports a slot does not learn of a new owner, and serves nothing when the old one is gone. It refuses until it
// has heard that the new one is a master.
void tell_owner(const std::string& slot, const OwnSlots& owner, const RedisServer& to)
{
  const auto serves = [&] {
    return !to.command({"CLUSTER", "SETSLOT", slot, "NODE", owner.id}).is_error() &&
           as_text(to.command({"CLUSTER", "INFO"})).find("cluster_state:ok") != std::string::npos;
  };
  wait_until(serves, "a node serves that was told the owner of a slot", std::chrono::seconds(30));
}

// Keys that were moved are at the node that imports the slot, so the move to it goes on.
void mend_slot(const std::string& slot, const std::vector<OwnSlots>& all, const std::string& password)
{
  const OwnSlots* owner = owner_of(slot, all);
  for (const OwnSlots& target : all) {
    if (owner != nullptr && owner != &target && target.importing.contains(slot)) {
      tell_owner(slot, *owner, *target.node);
      move_slot(slot, *owner->node, *target.node, password);
      owner = &target;
    }
  }
  for (const OwnSlots& each : all) {
    cluster_must(*each.node, {"CLUSTER", "SETSLOT", slot, "STABLE"});
  }
}

}  // namespace

std::string cluster_id(const RedisServer& node) { return as_text(node.command({"CLUSTER", "MYID"})); }

void cluster_must(const RedisServer& node, const std::vector<std::string>& words)
{
  const Reply reply = node.command(words);
  if (reply.is_error()) {
    give_up(words[0] + ' ' + words[1] + " at port " + std::to_string(node.port()) + ": " + show(reply));
  }
}

void begin_to_move_slot(const std::string& slot, const RedisServer& from, const RedisServer& to)
{
  cluster_must(to, {"CLUSTER", "SETSLOT", slot, "IMPORTING", cluster_id(from)});
  cluster_must(from, {"CLUSTER", "SETSLOT", slot, "MIGRATING", cluster_id(to)});
}

// REPLACE: a key that is at both nodes since a MIGRATE was cut off counts as it is at the source, which serves it.
void move_slot(const std::string& slot, const RedisServer& from, const RedisServer& to, const std::string& password)
{
  begin_to_move_slot(slot, from, to);
  for (;;) {
    const auto keys = as_texts(from.command({"CLUSTER", "GETKEYSINSLOT", slot, "100"}));
    if (keys.empty()) {
      break;
    }
    std::vector<std::string> words{"MIGRATE", "127.0.0.1", std::to_string(to.port()), "", "0", "10000", "REPLACE"};
    if (!password.empty()) {
      words.insert(words.end(), {"AUTH", password});
    }
    words.emplace_back("KEYS");
    words.insert(words.end(), keys.begin(), keys.end());
    cluster_must(from, words);
  }
  const std::string id = cluster_id(to);
  cluster_must(to, {"CLUSTER", "SETSLOT", slot, "NODE", id});
  cluster_must(from, {"CLUSTER", "SETSLOT", slot, "NODE", id});
}

void mend_slots(const std::deque<RedisServer>& nodes, const std::string& password)
{
  const std::vector<OwnSlots> all = slots_of(nodes);
  std::set<std::string> open;
  for (const OwnSlots& own : all) {
    for (const auto& slots : {own.migrating, own.importing}) {
      for (const auto& [slot, other] : slots) {
        open.insert(slot);
      }
    }
  }
  for (const std::string& slot : open) {
    mend_slot(slot, all, password);
  }
}

}  // namespace rlock::test
