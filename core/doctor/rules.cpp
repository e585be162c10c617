// SPDX-License-Identifier: Apache-2.0
#include "doctor/rules.h"

#include "doctor/verdict.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rlock {
namespace {

enum class Needs { nothing, info, config };  // config: and info

struct Check {
  std::string_view name;
  Needs needs;
  doctor::Rule rule;
};

constexpr Check checks[] = {
    {"access", Needs::nothing, doctor::access},
    {"round-trip", Needs::nothing, doctor::round_trip},
    {"clock", Needs::nothing, doctor::clock},
    {"lock", Needs::nothing, doctor::lock},
    {"messages", Needs::nothing, doctor::messages},
    {"listeners", Needs::nothing, doctor::eavesdroppers},
    {"version", Needs::info, doctor::version},
    {"role", Needs::info, doctor::role},
    {"loading", Needs::info, doctor::loading},
    {"eviction", Needs::info, doctor::eviction},
    {"evicted", Needs::info, doctor::evicted},
    {"memory", Needs::info, doctor::memory},
    {"persistence", Needs::config, doctor::persistence},
    {"disk", Needs::info, doctor::disk},
    {"restart", Needs::info, doctor::restart},
    {"replicas", Needs::info, doctor::replicas},
    {"min-replicas", Needs::config, doctor::min_replicas},
    {"connections", Needs::info, doctor::connections},
    {"idle-timeout", Needs::config, doctor::idle_timeout},
    {"slow-scripts", Needs::config, doctor::slow_scripts},
};

// Of what not every server has.
struct FurtherCheck {
  bool (*applies)(const Facts&);
  Check check;
};

bool speaks_tls(const Facts& facts) { return !facts.certificates.empty(); }
bool has_sentinels(const Facts& facts) { return facts.sentinels.has_value(); }
bool is_cluster(const Facts& facts) { return facts.cluster.has_value(); }
bool serves_as_cluster(const Facts& facts) { return is_cluster(facts) && !facts.failure; }

constexpr FurtherCheck further_checks[] = {
    {speaks_tls, {"certificate", Needs::nothing, doctor::certificate}},
    {has_sentinels, {"sentinels", Needs::nothing, doctor::sentinels}},
    {has_sentinels, {"fail-over", Needs::nothing, doctor::fail_over}},
    {has_sentinels, {"master", Needs::nothing, doctor::master}},
    {is_cluster, {"cluster", Needs::nothing, doctor::cluster}},
    {serves_as_cluster, {"spares", Needs::nothing, doctor::spares}},
    {serves_as_cluster, {"coverage", Needs::config, doctor::coverage}},
    {serves_as_cluster, {"shard-pubsub", Needs::config, doctor::shard_pubsub}},
};

doctor::Verdict verdict_of(const Check& check, const Facts& facts, Millis ttl)
{
  if (check.needs != Needs::nothing && !facts.info) {
    return doctor::not_permitted("INFO");
  }
  if (check.needs == Needs::config && !facts.config) {
    return doctor::not_permitted("CONFIG GET");
  }
  return check.rule(facts, ttl);
}

Finding unreachable(const Error& why)
{
  switch (why.fault) {
    case ErrorCode::unreachable:
      return {"reach", Health::fail, why.text, "see that it runs, and that the URL and the network are right"};
    case ErrorCode::refused: return {"reach", Health::fail, why.text, "give this user's name and password"};
    default: return {"reach", Health::fail, why.text, "ask again when it is fit"};
  }
}

}  // namespace

std::vector<Finding> judge(const Facts& facts, Millis ttl)
{
  std::vector<Finding> findings{facts.failure ? unreachable(*facts.failure)
                                              : Finding{"reach", Health::ok, "it answers at " + facts.server, {}}};
  const auto add = [&](const Check& check) {
    auto verdict = verdict_of(check, facts, ttl);
    findings.push_back({check.name, verdict.status, std::move(verdict.found), std::move(verdict.advice)});
  };
  if (!facts.failure) {
    std::for_each(std::begin(checks), std::end(checks), add);
  }
  for (const FurtherCheck& further : further_checks) {
    if (further.applies(facts)) {
      add(further.check);
    }
  }
  return findings;
}

}  // namespace rlock
