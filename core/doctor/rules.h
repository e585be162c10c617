// SPDX-License-Identifier: Apache-2.0
// Decides what the facts about servers and this host mean for locks. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/system.h"
#include "base/text.h"
#include "doctor/facts.h"

namespace rlock {

// The findings about a server, in the order in which people read them. `ttl`: the ttl that the locks on this server will have.
std::vector<Finding> check_server(const Facts& facts, Millis ttl);

// The findings about a server whose store checks it itself (LockStore::check_server), and of a trial lock. Facts::info and Facts::config stay
// empty.
std::vector<Finding> check_store(const Facts& facts, const std::vector<Finding>& of_store);

// Whether several servers are independent, so that they can form a quorum. Empty for one server.
std::vector<Finding> check_quorum(std::span<const Facts> servers);

// Whether rlock can guard jobs on this host.
std::vector<Finding> check_host(const HostFacts& facts);

}  // namespace rlock

namespace rlock::doctor {

// The checks of a server. A check is a row in the table of its rules_*.cpp file: a name, when it applies, and a rule,
// which is a pure function of the facts. Private to doctor.

// A Finding without the name of its check.
struct Diagnosis {
  CheckStatus status;
  std::string found;
  std::string advice;
};

inline Diagnosis ok(std::string found) { return {CheckStatus::ok, std::move(found), {}}; }
inline Diagnosis warn(std::string found, std::string advice)
{
  return {CheckStatus::warn, std::move(found), std::move(advice)};
}
inline Diagnosis fail(std::string found, std::string advice)
{
  return {CheckStatus::fail, std::move(found), std::move(advice)};
}
inline Diagnosis unknown(std::string why) { return {CheckStatus::unknown, std::move(why), {}}; }
inline Diagnosis not_permitted(std::string_view what)
{
  return {CheckStatus::unknown, "not permitted", "ask a user who may " + std::string(what)};
}
// The diagnosis when the doctor got no answer to a question.
inline Diagnosis unanswered(const Error& why, std::string_view what)
{
  return why.code == ErrorCode::refused ? not_permitted(what) : unknown("not asked: " + why.text);
}
inline Diagnosis not_told() { return unknown("the server does not tell"); }

// The finding of a check. Makes the texts safe to print, because rules quote the server.
inline Finding finding_of(std::string_view check, const Diagnosis& diagnosis)
{
  return {check, diagnosis.status, without_controls(diagnosis.found), without_controls(diagnosis.advice)};
}

// The facts that a rule needs. If they are missing, the check is "not permitted", and the rule is not called.
enum class Needs {
  nothing,
  info,    // facts.info
  config,  // facts.info and facts.config
};

// `ttl`: the ttl that the locks on this server will have.
using Rule = Diagnosis (*)(const Facts& facts, Millis ttl);

struct Check {
  std::string_view name;
  bool (*applies)(const Facts&);
  Needs needs;
  Rule rule;
};

// The usual Check::applies.
inline bool answers(const Facts& facts) { return !facts.failure; }

inline constexpr std::string_view unfit_for_locks = "no lock can be taken there before this is mended";

// What the trial lock tells. `advice`: what to do if it failed.
Diagnosis trial(const Result<Probe>& probe, std::string_view advice);

// The advice about slots that no node serves; empty: there are none.
std::string slot_advice(const Facts& facts);

// The advice about the ACL rules that this user needs.
std::string rules_advice(const Facts& facts);

std::span<const Check> access_checks();
std::span<const Check> memory_checks();
std::span<const Check> limit_checks();
std::span<const Check> group_checks();

}  // namespace rlock::doctor
