// SPDX-License-Identifier: Apache-2.0
// Rules about the other servers that a URL names: sentinels, the nodes of a cluster, and the certificates of all.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include "base/text.h"
#include "doctor/rules.h"
#include "redis/slot_map.h"

namespace rlock::doctor {
namespace {

constexpr std::chrono::days renewal_time{14};  // to renew a certificate

std::string counted(std::size_t count, const std::string& what)
{
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The first certificate that was shown and cannot be trusted; nullptr: there is none.
const CertificateLife* untrusted(const Facts& facts)
{
  const auto& all = facts.certificates;
  const auto at = std::find_if(all.begin(), all.end(), [](const CertificateLife& each) {
    return !each.left && each.left.error().code == ErrorCode::server_not_ready;
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

std::vector<std::string> masters_without_replica(const std::vector<SlotOwner>& owners)
{
  std::vector<std::string> names;
  for (const SlotOwner& owner : owners) {
    if (owner.replicas == 0) {
      names.push_back(printable(show(owner.at)));
    }
  }
  return names;
}

std::string listed(const std::vector<std::string>& names) { return joined(names, ", "); }

std::string text_of(const SentinelView& view)
{
  return view.where + (view.master ? " names " + printable(show(*view.master)) : " knows no master of that name");
}

// "1 of 16384 slots is"
std::string counted_slots(std::int64_t count)
{
  return std::to_string(count) + " of " + std::to_string(slot_count) + (count == 1 ? " slots is" : " slots are");
}

Diagnosis certificate(const Facts& facts, Millis)
{
  const std::string advice = "renew it there; rlock reads the files for TLS anew for each connection";
  if (const CertificateLife* const bad = untrusted(facts)) {
    return fail(bad->left.error().text, advice);
  }
  const CertificateLife* const first = first_to_expire(facts);
  if (first == nullptr) {
    return unknown("not asked: " + facts.certificates.front().left.error().text);
  }
  const auto days = static_cast<std::size_t>(std::max<std::int64_t>(first->left->count(), 0));
  const std::string found = "that of " + first->where + " is good for " + counted(days, "day");
  return *first->left > renewal_time ? ok(found) : warn(found, advice);
}

Diagnosis sentinels(const Facts& facts, Millis)
{
  const auto& all = facts.sentinels->views;
  for (const SentinelView& view : all) {
    if (!view.answered) {
      return fail(view.answered.error().text, "see that each sentinel of the URL runs and accepts this user");
    }
  }
  for (const SentinelView& view : all) {
    if (!view.master || view.master != all.front().master) {
      const SentinelView& first = all.front();
      return fail((&view == &first ? "" : text_of(first) + ", ") + text_of(view),
                  "let all watch the same master under the same name (SENTINEL MONITOR, SENTINEL REMOVE); wait while a "
                  "fail-over is under way");
    }
  }
  return ok(counted(all.size(), "sentinel") + (all.size() == 1 ? " names " : " name ") +
            printable(show(*all.front().master)));
}

Diagnosis fail_over(const Facts& facts, Millis)
{
  std::size_t able = 0;
  for (const SentinelView& view : facts.sentinels->views) {
    if (!view.answered || !view.master) {
      continue;
    }
    if (view.can_fail_over) {
      ++able;
    } else if (view.can_fail_over.error().code == ErrorCode::refused) {
      return not_permitted("SENTINEL CKQUORUM");
    } else {
      return fail(
          view.where + " says " + view.can_fail_over.error().text,
          "have enough sentinels run, and a quorum (SENTINEL SET) that they reach: otherwise no replica takes over "
          "from a dead master");
    }
  }
  return able == 0 ? unknown("not asked: no sentinel knows the master")
                   : ok("enough sentinels run to agree on a fail-over (CKQUORUM)");
}

Diagnosis master(const Facts& facts, Millis)
{
  const auto& masters = facts.sentinels->masters;
  for (const NamedMaster& named : masters) {
    if (named.is_master) {
      continue;
    }
    const Error& why = named.is_master.error();
    if (why.code == ErrorCode::refused) {
      return not_permitted("log in there");
    }
    return fail(why.text, "look at that server: the sentinels name it, so locks are requested there");
  }
  return masters.empty() ? unknown("not asked: no sentinel knows a master")
                         : ok(printable(show(masters.front().at)) + " says that it is a master");
}

Diagnosis cluster(const Facts& facts, Millis)
{
  const auto& info = facts.cluster->info;
  if (!info) {
    return unanswered(info.error(), "CLUSTER INFO");
  }
  const auto state = info->text("cluster_state");
  if (!state) {
    return not_told();
  }
  const auto assigned = info->number("cluster_slots_assigned").value_or(slot_count);
  if (assigned == 0) {
    return fail("no slot is assigned to a node, so no lock can be taken", slot_advice(facts));
  }
  const auto served = std::min(info->number("cluster_slots_ok").value_or(slot_count), assigned);
  const std::string missing =
      counted_slots(slot_count - served) + (assigned < slot_count ? " assigned to no node" : " served by no node");
  if (*state != "ok") {
    return fail("cluster_state is " + printable(*state) + (served < slot_count ? ": " + missing : ""),
                slot_advice(facts));
  }
  return served < slot_count ? fail(missing + ": no lock can be taken in them", slot_advice(facts))
                             : ok("all slots are served");
}

Diagnosis spares(const Facts& facts, Millis)
{
  const auto& owners = facts.cluster->owners;
  if (!owners) {
    return unanswered(owners.error(), "CLUSTER SLOTS");
  }
  if (owners->empty()) {
    return not_told();
  }
  const auto names = masters_without_replica(*owners);
  return names.empty() ? ok("each master has a replica")
                       : warn("no replica could take over from " + listed(names),
                              "give each master a replica: without one, no lock in its slots can be taken or renewed "
                              "while it is down");
}

// If each master has a replica, a slot without a node is unlikely.
Diagnosis coverage(const Facts& facts, Millis)
{
  const auto full = facts.config->text("cluster-require-full-coverage");
  if (!full) {
    return not_told();
  }
  if (*full != "yes") {
    return ok("a slot that no node serves does not stop the other slots");
  }
  const auto& owners = facts.cluster->owners;
  return owners && !owners->empty() && masters_without_replica(*owners).empty()
             ? ok("a slot that no node serves stops all slots, but each master has a replica")
             : warn("one slot that no node serves stops the locks in all slots",
                    "set cluster-require-full-coverage no on each node, or give each master a replica");
}

Diagnosis shard_pubsub(const Facts& facts, Millis)
{
  const auto allowed = facts.config->text("cluster-allow-pubsubshard-when-down");
  if (!allowed) {
    return not_told();
  }
  return *allowed == "yes" ? ok("owners hear messages also while the cluster is down")
                           : warn("no waiter can listen while the cluster is down",
                                  "set cluster-allow-pubsubshard-when-down yes on each node");
}

bool speaks_tls(const Facts& facts) { return !facts.certificates.empty(); }
bool has_sentinels(const Facts& facts) { return facts.sentinels.has_value(); }
bool is_cluster(const Facts& facts) { return facts.cluster.has_value(); }
bool is_answering_cluster(const Facts& facts) { return is_cluster(facts) && answers(facts); }

constexpr Check checks_of_group[] = {
    {"certificate", speaks_tls, Needs::nothing, certificate},
    {"sentinels", has_sentinels, Needs::nothing, sentinels},
    {"fail-over", has_sentinels, Needs::nothing, fail_over},
    {"master", has_sentinels, Needs::nothing, master},
    {"cluster", is_cluster, Needs::nothing, cluster},
    {"spares", is_answering_cluster, Needs::nothing, spares},
    {"coverage", is_answering_cluster, Needs::config, coverage},
    {"shard-pubsub", is_answering_cluster, Needs::config, shard_pubsub},
};

}  // namespace

std::string slot_advice(const Facts& facts)
{
  if (!facts.cluster || !facts.cluster->info || !facts.cluster->info->text("cluster_state")) {
    return {};
  }
  const Fields& info = *facts.cluster->info;
  const std::string node = facts.node.empty() ? "HOST:PORT" : facts.node;
  const auto assigned = info.number("cluster_slots_assigned").value_or(slot_count);
  if (assigned < slot_count) {
    return "redis-cli --cluster fix " + node + " assigns them" +
           (assigned == 0 ? "; redis-cli --cluster create HOST:PORT... does so for several new nodes" : "");
  }
  const bool is_whole =
      info.text("cluster_state") == "ok" && info.number("cluster_slots_ok").value_or(slot_count) >= slot_count;
  return is_whole ? ""
                  : "start the nodes that redis-cli --cluster check " + node + " misses, or have replicas take over";
}

std::span<const Check> group_checks() { return checks_of_group; }

}  // namespace rlock::doctor

namespace rlock {

// Rules about several servers that form a quorum.
namespace {

using doctor::Diagnosis;
using Servers = std::span<const Facts>;

std::string count_of(Servers servers) { return std::to_string(servers.size()) + " servers"; }

Diagnosis number(Servers servers)
{
  return servers.size() >= 3 && servers.size() % 2 == 1
             ? doctor::ok(count_of(servers))
             : doctor::warn(count_of(servers) + ": an odd number less by one survives as many failures",
                            "take 3 or 5 independent servers");
}

// The first two servers with the same trait.
struct Twins {
  const Facts* one;
  const Facts* other;
};

std::optional<Twins> twins_by(Servers servers, const std::function<std::optional<std::string>(const Facts&)>& trait)
{
  std::map<std::string, const Facts*> seen;
  for (const Facts& facts : servers) {
    const auto value = trait(facts);
    if (!value) {
      continue;
    }
    const auto [at, is_new] = seen.emplace(*value, &facts);
    if (!is_new) {
      return Twins{at->second, &facts};
    }
  }
  return std::nullopt;
}

std::string both(const Twins& twins) { return twins.one->server + " and " + twins.other->server; }

std::optional<std::string> info_text(const Facts& facts, std::string_view name)
{
  return facts.info ? facts.info->text(name) : std::nullopt;
}

// The diagnosis if no two servers are twins as far as they told: the reason of the first server that did not tell, else ok.
Diagnosis if_all_tell(Servers servers, std::string_view name, std::string found)
{
  for (const Facts& facts : servers) {
    const bool is_refused = !facts.info && facts.info.error().code == ErrorCode::refused;
    if (facts.failure && facts.failure->code != ErrorCode::refused) {
      return doctor::unknown("not asked: " + facts.server + " does not answer");
    }
    if (facts.failure || is_refused) {
      return doctor::not_permitted("INFO on each of them");
    }
    if (!facts.info) {
      return doctor::unknown("not asked: " + facts.info.error().text);
    }
    if (!info_text(facts, name)) {
      return doctor::not_told();
    }
  }
  return doctor::ok(std::move(found));
}

Diagnosis distinct(Servers servers)
{
  if (const auto twins = twins_by(servers, [](const Facts& facts) { return info_text(facts, "run_id"); })) {
    return doctor::fail(both(*twins) + " are the same server", "name each server once, so that it has one vote");
  }
  return if_all_tell(servers, "run_id", "no server is named twice");
}

// A replica has the replication history of its master. A server that is named twice has it too, but `distinct` says
// that.
Diagnosis unrelated(Servers servers)
{
  std::vector<Facts> each;
  std::map<std::string, bool> seen;
  for (const Facts& facts : servers) {
    if (seen.emplace(info_text(facts, "run_id").value_or(facts.server), true).second) {
      each.push_back(facts);
    }
  }
  if (const auto twins = twins_by(each, [](const Facts& facts) { return info_text(facts, "master_replid"); })) {
    return doctor::fail(both(*twins) + " share their data: one replicates the other, or both a third",
                        "end that with REPLICAOF NO ONE, or name independent servers");
  }
  return if_all_tell(servers, "master_replid", "none replicates another");
}

Diagnosis hosts(Servers servers)
{
  const auto host = [](const Facts& facts) { return facts.host.empty() ? std::nullopt : std::optional(facts.host); };
  const auto twins = twins_by(servers, host);
  return twins ? doctor::warn(both(*twins) + " are on one host (" + twins->one->host + "), and fail with it",
                              "run each on a host of its own")
               : doctor::ok("each on a host of its own, by their names");
}

constexpr std::pair<std::string_view, Diagnosis (*)(Servers)> quorum_rules[] = {
    {"quorum", number}, {"distinct", distinct}, {"unrelated", unrelated}, {"hosts", hosts}};

}  // namespace

std::vector<Finding> check_quorum(Servers servers)
{
  if (servers.size() < 2) {
    return {};
  }
  std::vector<Finding> findings;
  for (const auto& [name, rule] : quorum_rules) {
    findings.push_back(doctor::finding_of(name, rule(servers)));
  }
  return findings;
}

}  // namespace rlock
