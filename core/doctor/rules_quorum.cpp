// SPDX-License-Identifier: Apache-2.0
// Rules about several servers that form a quorum.
#include "doctor/check.h"
#include "doctor/rules.h"

#include <functional>
#include <map>
#include <optional>

namespace rlock {
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
