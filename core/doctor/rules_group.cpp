// SPDX-License-Identifier: Apache-2.0
// Rules about who leads to a server, and who shares its keys.
#include "base/text.h"
#include "doctor/verdict.h"

#include <algorithm>

namespace rlock::doctor {
namespace {

constexpr std::chrono::days soon{14};  // to renew a certificate

std::string of(std::size_t count, const std::string& what)
{
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The first that was shown and is not to be trusted; nullptr: none.
const CertificateLife* no_good(const Facts& facts)
{
  const auto& all = facts.certificates;
  const auto at = std::find_if(all.begin(), all.end(), [](const CertificateLife& each) {
    return !each.left && each.left.error().fault == ErrorCode::unfit;
  });
  return at == all.end() ? nullptr : &*at;
}

const CertificateLife* first_to_expire(const Facts& facts)
{
  const CertificateLife* first = nullptr;
  for (const CertificateLife& each : facts.certificates) {
    if (each.left && (first == nullptr || *each.left < *first->left)) {
      first = &each;
    }
  }
  return first;
}

// Those that have no replica.
std::vector<std::string> alone(const std::vector<SlotOwner>& owners)
{
  std::vector<std::string> names;
  for (const SlotOwner& owner : owners) {
    if (owner.replicas == 0) {
      names.push_back(printable(show(owner.at)));
    }
  }
  return names;
}

std::string listed(const std::vector<std::string>& names)
{
  std::string all;
  for (const std::string& name : names) {
    all += (all.empty() ? "" : ", ") + name;
  }
  return all;
}

std::string said_by(const SentinelSaid& said)
{
  return said.where + (said.master ? " names " + printable(show(*said.master)) : " knows no master of that name");
}

}  // namespace

Verdict certificate(const Facts& facts, Millis)
{
  const std::string advice = "renew it there; rlock reads the files for TLS anew for each connection";
  if (const CertificateLife* const bad = no_good(facts)) {
    return fail(bad->left.error().text, advice);
  }
  const CertificateLife* const first = first_to_expire(facts);
  if (first == nullptr) {
    return {Health::unknown, "not asked: " + facts.certificates.front().left.error().text, {}};
  }
  const auto days = static_cast<std::size_t>(std::max<std::int64_t>(first->left->count(), 0));
  const std::string found = "that of " + first->where + " is good for " + of(days, "day");
  return *first->left > soon ? ok(found) : warn(found, advice);
}

Verdict sentinels(const Facts& facts, Millis)
{
  const auto& all = facts.sentinels->said;
  for (const SentinelSaid& said : all) {
    if (!said.heard) {
      return fail(said.heard.error().text, "see that each one named in the URL runs, and lets this user in");
    }
  }
  for (const SentinelSaid& said : all) {
    if (!said.master || said.master != all.front().master) {
      const SentinelSaid& first = all.front();
      return fail((&said == &first ? "" : said_by(first) + ", ") + said_by(said),
                  "let all watch the same master under the same name (SENTINEL MONITOR, SENTINEL REMOVE); during a "
                  "fail-over wait");
    }
  }
  return ok(of(all.size(), "sentinel") + (all.size() == 1 ? " names " : " name ") +
            printable(show(*all.front().master)));
}

Verdict fail_over(const Facts& facts, Millis)
{
  std::size_t told = 0;
  for (const SentinelSaid& said : facts.sentinels->said) {
    if (!said.heard || !said.master) {
      continue;
    }
    if (said.fail_over) {
      ++told;
    } else if (said.fail_over.error().fault == ErrorCode::refused) {
      return not_permitted("SENTINEL CKQUORUM");
    } else {
      return fail(said.where + " says " + said.fail_over.error().text,
                  "have enough sentinels run, and a quorum (SENTINEL SET) that they reach: else nobody takes over from "
                  "a dead master");
    }
  }
  return told == 0 ? Verdict{Health::unknown, "not asked: no sentinel knows the master", {}}
                   : ok("enough sentinels live to agree on one (CKQUORUM)");
}

Verdict master(const Facts& facts, Millis)
{
  const auto& masters = facts.sentinels->masters;
  for (const NamedMaster& named : masters) {
    if (named.is_one) {
      continue;
    }
    const Error& why = named.is_one.error();
    if (why.fault == ErrorCode::refused) {
      return not_permitted("log in there");
    }
    return fail(why.text, "look at that server; sentinels name it, so locks are asked for there");
  }
  return masters.empty() ? Verdict{Health::unknown, "not asked: no sentinel knows one", {}}
                         : ok(printable(show(masters.front().at)) + " says itself that it is one");
}

Verdict cluster(const Facts& facts, Millis)
{
  if (!facts.cluster->info) {
    return not_permitted("CLUSTER INFO");
  }
  const auto state = facts.cluster->info->text("cluster_state");
  if (!state) {
    return untold();
  }
  if (facts.cluster->info->number("cluster_slots_assigned") == 0) {
    return fail("no slot is assigned to a node, so no lock can be taken",
                "assign the slots: redis-cli --cluster create HOST:PORT... for a new cluster, redis-cli --cluster fix "
                "for an old one");
  }
  const std::string advice = "see CLUSTER NODES there, and redis-cli --cluster check";
  const auto served = facts.cluster->info->number("cluster_slots_ok").value_or(16384);
  const std::string missing = std::to_string(16384 - served) + " of 16384 slots are served by nobody";
  if (*state != "ok") {
    return fail("cluster_state is " + printable(*state) + (served < 16384 ? ": " + missing : ""), advice);
  }
  return served < 16384 ? fail(missing + ": no lock can be taken in them", advice) : ok("all slots are served");
}

Verdict spares(const Facts& facts, Millis)
{
  const auto& owners = facts.cluster->owners;
  if (!owners) {
    return not_permitted("CLUSTER SLOTS");
  }
  if (owners->empty()) {
    return untold();
  }
  const auto names = alone(*owners);
  return names.empty()
             ? ok("each master has a replica")
             : warn("no replica that could take over: " + listed(names),
                    "give each master one: without it no lock in its slots can be taken or renewed while it is gone");
}

// Where each master has a replica, a slot that nobody serves is not to be expected.
Verdict coverage(const Facts& facts, Millis)
{
  const auto full = facts.config->text("cluster-require-full-coverage");
  if (!full) {
    return untold();
  }
  if (*full != "yes") {
    return ok("a slot that nobody serves leaves the others alone");
  }
  const auto& owners = facts.cluster->owners;
  return owners && !owners->empty() && alone(*owners).empty()
             ? ok("a slot that nobody serves stops all, but each master has a replica")
             : warn("one slot that nobody serves stops the locks in all of them",
                    "set cluster-require-full-coverage no on each node, or give each master a replica");
}

Verdict shard_pubsub(const Facts& facts, Millis)
{
  const auto allowed = facts.config->text("cluster-allow-pubsubshard-when-down");
  if (!allowed) {
    return untold();
  }
  return *allowed == "yes" ? ok("owners are spoken to also while the cluster is down")
                           : warn("nobody can listen for its turn while the cluster is down",
                                  "set cluster-allow-pubsubshard-when-down yes on each node");
}

}  // namespace rlock::doctor
