// SPDX-License-Identifier: Apache-2.0
// Rules about the access to a server, its clock, and a lock that was tried.
#include "base/defaults.h"
#include "base/duration.h"
#include "base/text.h"
#include "doctor/rules.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>

namespace rlock::doctor {
namespace {

using Micros = std::chrono::microseconds;

constexpr const char* no_trial_lock = "no lock could be tried";
constexpr const char* run_newer_server = "run Redis 6.2 or later, or Valkey";

Micros round_trip_of(const ClockSample& sample)
{
  return std::chrono::duration_cast<Micros>(sample.heard_at - sample.sent_at);
}

std::string in_ms(Micros time)
{
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f ms", static_cast<double>(time.count()) / 1000);
  return text.data();
}

bool is_bound_to_loopback(std::string_view address)
{
  return is_loopback(address.substr(address.starts_with('-') ? 1 : 0));  // '-': the address may be missing
}

// An empty `bind` means every address. Protected mode refuses other hosts as long as there is no password; before Redis
// 7 it does so only where `bind` is empty.
bool other_hosts_reach(const Fields& config, const Fields& info)
{
  if (config.number("port").value_or(0) == 0 && config.number("tls-port").value_or(0) == 0) {
    return false;
  }
  const std::string bind = config.text("bind").value_or("");
  const bool is_protected = config.text("protected-mode") == "yes" &&
                            (bind.empty() || number_of_version(info.text("redis_version").value_or("")) >= 70'000);
  std::istringstream addresses(bind);
  const bool only_loopback =
      !bind.empty() && std::all_of(std::istream_iterator<std::string>(addresses), {}, is_bound_to_loopback);
  return !is_protected && !only_loopback;
}

Diagnosis access(const Facts& facts, Millis)
{
  const std::string advice =
      "set a password for the default user, or disable that user (rlock acl prints the rules of another one)";
  const std::string open = "a client without a password may delete every lock";
  switch (facts.anonymous) {
    case Anonymous::refused: return ok("a client without a password may not delete a lock");
    case Anonymous::unknown: return unknown("a connection without a password could not be tried");
    case Anonymous::may_delete: break;
  }
  if (!facts.asked_on_its_host) {
    return warn(open, advice);
  }
  if (!facts.config || !facts.info || !facts.config->text("bind")) {
    return {CheckStatus::unknown, open + ", and CONFIG GET, which tells whether other hosts reach it, is not permitted",
            advice};
  }
  return other_hosts_reach(*facts.config, *facts.info) ? warn(open + ", and other hosts reach it", advice)
                                                       : ok("no password is needed, but only this host reaches it");
}

Diagnosis no_time() { return {CheckStatus::unknown, "not permitted", "grant +time, which every lock needs"}; }

Diagnosis round_trip(const Facts& facts, Millis ttl)
{
  if (facts.clock_samples.empty()) {
    return no_time();
  }
  std::vector<Micros> times;
  for (const ClockSample& sample : facts.clock_samples) {
    times.push_back(round_trip_of(sample));
  }
  std::sort(times.begin(), times.end());
  const Micros median = times[times.size() / 2];
  const std::string found = in_ms(median) + " at the median, " + in_ms(times.back()) + " at most";
  const std::string advice = "look at the network and the server, or take a longer --ttl than " + show(ttl);
  if (median > ttl / 10) {
    return fail(found, advice);
  }
  return median > ttl / 100 || times.back() > ttl / 10 ? warn(found, advice) : ok(found);
}

// The rate of the server's clock decides when a lease ends. Fencing numbers, and the times that people read, come from
// its time of day.
Diagnosis clock(const Facts& facts, Millis)
{
  if (facts.clock_samples.size() < 2) {
    return no_time();
  }
  const ClockSample& first = facts.clock_samples.front();
  const ClockSample& last = facts.clock_samples.back();
  const auto unsure = static_cast<double>((round_trip_of(first) + round_trip_of(last)).count());
  const auto here = static_cast<double>(std::chrono::duration_cast<Micros>(last.heard_at - first.heard_at).count());
  const auto there = static_cast<double>((last.server - first.server).count());
  if (here > 0 && std::abs(there - here) > here / 100 + unsure) {
    std::array<char, 80> text{};
    std::snprintf(text.data(), text.size(), "it went %.2f s while this host's clock went %.2f s", there / 1e6,
                  here / 1e6);
    return fail(text.data(), "correct that clock: it decides when leases end");
  }
  const Micros ahead = last.server - facts.local_time;
  const Millis apart = std::chrono::duration_cast<Millis>(std::chrono::abs(ahead));
  if (Micros(apart) > std::chrono::seconds(1) + round_trip_of(last)) {
    const auto about = std::chrono::round<std::chrono::seconds>(apart);  // the round trip is a part of it
    return warn(show_roughly(about) + (ahead > Micros(0) ? " ahead of" : " behind") + " this host's clock",
                "have NTP keep both; setting it forward would end leases early");
  }
  return ok("it goes as fast as this host's clock, " + std::to_string(apart.count()) + " ms apart");
}

Diagnosis lock(const Facts& facts, Millis)
{
  const bool is_refused = !facts.probe && facts.probe.error().code == ErrorCode::refused;
  const std::string slots = slot_advice(facts);
  return trial(facts.probe, is_refused ? rules_advice(facts) : !slots.empty() ? slots : std::string(unfit_for_locks));
}

Diagnosis messages(const Facts& facts, Millis)
{
  if (!facts.probe) {
    return unknown(no_trial_lock);
  }
  return facts.probe->heard ? ok("an owner hears the messages to it")
                            : fail("an owner does not hear the messages to it",
                                   "let PUBLISH and SUBSCRIBE through to the same server");
}

Diagnosis listeners(const Facts& facts, Millis)
{
  if (!facts.probe) {
    return unknown(no_trial_lock);
  }
  return facts.probe->global_listeners == 0
             ? ok("no client listens to the messages to every owner")
             : warn(std::to_string(facts.probe->global_listeners) +
                        " clients listen to the messages to every owner: a dead waiter seems to live",
                    "end the PSUBSCRIBE (CLIENT LIST shows psub=), or expect " + show(handover_confirmation) +
                        " for each dead waiter");
}

Diagnosis version(const Facts& facts, Millis)
{
  const auto text = facts.info->text("redis_version");
  if (!text) {
    return not_told();
  }
  const int number = number_of_version(*text);
  const std::string found = printable(*text);
  if (number < 60'000) {
    return fail(found + " does not know the commands of the scripts", run_newer_server);
  }
  return number < 60'200 ? warn(found + " has not been tried", run_newer_server) : ok(found);
}

Diagnosis role(const Facts& facts, Millis)
{
  const auto role = facts.info->text("role");
  const std::string mode = facts.info->text("redis_mode").value_or("");
  if (mode == "sentinel") {
    return fail("it is a sentinel", "name the server that it watches");
  }
  if (!role) {
    return not_told();
  }
  if (*role != "master") {
    const std::string master =
        facts.info->text("master_host").value_or("?") + ":" + facts.info->text("master_port").value_or("?");
    return fail("it is a replica of " + printable(master), "name the master");
  }
  return ok(mode == "cluster" ? "master in a cluster" : "master");
}

Diagnosis loading(const Facts& facts, Millis)
{
  const auto flag = facts.info->number("loading");
  if (!flag) {
    return not_told();
  }
  return *flag == 0 ? ok("no, it has its data") : fail("it is loading its data", "wait until it has loaded them");
}

constexpr Check checks_of_access[] = {
    {"access", answers, Needs::nothing, access},     {"round-trip", answers, Needs::nothing, round_trip},
    {"clock", answers, Needs::nothing, clock},       {"lock", answers, Needs::nothing, lock},
    {"messages", answers, Needs::nothing, messages}, {"listeners", answers, Needs::nothing, listeners},
    {"version", answers, Needs::info, version},      {"role", answers, Needs::info, role},
    {"loading", answers, Needs::info, loading},
};

}  // namespace

std::string rules_advice(const Facts& facts)
{
  return "rlock acl -k GLOB" + (facts.user.empty() ? "" : " --user " + facts.user) +
         " prints the rules; --prefix says where this user may lock";
}

Diagnosis trial(const Result<Probe>& probe, std::string_view advice)
{
  return probe ? ok("a trial lock was taken, refused to another owner, renewed and released")
               : fail(probe.error().text, std::string(advice));
}

std::span<const Check> access_checks() { return checks_of_access; }

}  // namespace rlock::doctor
