// SPDX-License-Identifier: Apache-2.0
#include "doctor/rules.h"

#include "base/wait.h"
#include "redis/codec.h"

namespace rlock {
namespace {

using doctor::Check;
using doctor::Needs;

doctor::Diagnosis diagnosis_of(const Check& check, const Facts& facts, Millis ttl)
{
  if (check.needs != Needs::nothing && !facts.info) {
    return doctor::unanswered(facts.info.error(), "INFO");
  }
  if (check.needs == Needs::config && !facts.config) {
    return doctor::unanswered(facts.config.error(), "CONFIG GET");
  }
  return check.rule(facts, ttl);
}

doctor::Diagnosis reach(const Facts& facts)
{
  if (!facts.failure) {
    return doctor::ok("it answers at " + facts.server);
  }
  const Error& why = *facts.failure;
  switch (why.code) {
    case ErrorCode::unreachable:
      return doctor::fail(why.text, "see that it runs, and that the URL and the network are right");
    case ErrorCode::refused:
      return doctor::fail(why.text,
                          is_missing_rule(why) ? doctor::rules_advice(facts) : "give this user's name and password");
    case ErrorCode::config: return doctor::fail(why.text, "-S names another server");
    default: return doctor::fail(why.text, "ask again when the server is fit");
  }
}

// The Error of a store may say at its end, in parentheses, what to do.
doctor::Diagnosis reach_store(const Facts& facts)
{
  doctor::Diagnosis diagnosis = reach(facts);
  const auto begin = diagnosis.found.rfind(" (");
  if (facts.failure && diagnosis.found.ends_with(')') && !diagnosis.found.ends_with(raise_timeout) &&
      begin != std::string::npos) {
    diagnosis.advice = diagnosis.found.substr(begin + 2, diagnosis.found.size() - begin - 3);
    diagnosis.found.resize(begin);
  }
  return diagnosis;
}

}  // namespace

std::vector<Finding> check_server(const Facts& facts, Millis ttl)
{
  std::vector<Finding> findings{doctor::finding_of("reach", reach(facts))};
  for (const auto& checks :
       {doctor::access_checks(), doctor::memory_checks(), doctor::limit_checks(), doctor::group_checks()}) {
    for (const Check& check : checks) {
      if (check.applies(facts)) {
        findings.push_back(doctor::finding_of(check.name, diagnosis_of(check, facts, ttl)));
      }
    }
  }
  return findings;
}

std::vector<Finding> check_store(const Facts& facts, const std::vector<Finding>& of_store)
{
  std::vector<Finding> findings{doctor::finding_of("reach", reach_store(facts))};
  if (facts.failure) {
    return findings;
  }
  findings.push_back(doctor::finding_of("lock", doctor::trial(facts.probe, doctor::unfit_for_locks)));
  for (const Finding& each : of_store) {
    findings.push_back(doctor::finding_of(each.check, {each.status, each.found, each.advice}));
  }
  return findings;
}

}  // namespace rlock
