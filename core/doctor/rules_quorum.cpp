// SPDX-License-Identifier: Apache-2.0
// What several servers are to each other.
#include "doctor/rules.h"
#include "doctor/verdict.h"

#include <functional>
#include <map>
#include <optional>

namespace rlock {
namespace {

using doctor::Verdict;
using Servers = std::span<const Facts>;

std::string count_of(Servers servers) { return std::to_string(servers.size()) + " servers"; }

Verdict not_told() { return doctor::not_permitted("INFO on each of them"); }

Verdict number(Servers servers)
{
  return servers.size() >= 3 && servers.size() % 2 == 1
             ? doctor::ok(count_of(servers))
             : doctor::warn(count_of(servers) + ": one that fails more than an odd number would need",
                            "take 3 or 5 independent servers");
}

// The first two of which the same is told.
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

bool all_tell(Servers servers, std::string_view name)
{
  for (const Facts& facts : servers) {
    if (!info_text(facts, name)) {
      return false;
    }
  }
  return true;
}

Verdict distinct(Servers servers)
{
  if (const auto twins = twins_by(servers, [](const Facts& facts) { return info_text(facts, "run_id"); })) {
    return doctor::fail(both(*twins) + " are the same one", "name each server once: its vote counts for one");
  }
  return all_tell(servers, "run_id") ? doctor::ok("no server is named twice") : not_told();
}

// Who copies another has the history of that one. The same server twice has it too, but that is said already.
Verdict unrelated(Servers servers)
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
                        "end that with REPLICAOF NO ONE, or name servers that know nothing of each other");
  }
  return all_tell(servers, "master_replid") ? doctor::ok("none replicates another") : not_told();
}

Verdict hosts(Servers servers)
{
  const auto host = [](const Facts& facts) { return facts.host.empty() ? std::nullopt : std::optional(facts.host); };
  const auto twins = twins_by(servers, host);
  return twins ? doctor::warn(both(*twins) + " are on one host (" + twins->one->host + "), and fail with it",
                              "have each on a host of its own")
               : doctor::ok("each on a host of its own, by their names");
}

}  // namespace

std::vector<Finding> rules_together(Servers servers)
{
  if (servers.size() < 2) {
    return {};
  }
  constexpr std::pair<std::string_view, Verdict (*)(Servers)> rules[] = {
      {"quorum", number}, {"distinct", distinct}, {"unrelated", unrelated}, {"hosts", hosts}};
  std::vector<Finding> findings;
  for (const auto& [name, rule] : rules) {
    auto verdict = rule(servers);
    findings.push_back({name, verdict.status, std::move(verdict.found), std::move(verdict.advice)});
  }
  return findings;
}

}  // namespace rlock
