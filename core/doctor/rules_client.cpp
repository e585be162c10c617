// SPDX-License-Identifier: Apache-2.0
// Rules about what a client meets.
#include "base/defaults.h"
#include "base/duration.h"
#include "base/text.h"
#include "doctor/verdict.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>

namespace rlock::doctor {
namespace {

using Micros = std::chrono::microseconds;

Micros took(const Tick& tick) { return std::chrono::duration_cast<Micros>(tick.answered - tick.sent); }

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

// Empty `bind`: every address. Without a password, protected mode turns other hosts away; before Redis 7 only where
// no address is configured.
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

}  // namespace

Verdict access(const Facts& facts, Millis)
{
  const std::string advice =
      "set a password for the default user, or disable that user (rlock acl prints the rules of another one)";
  const std::string open = "a client without a password may delete every lock";
  switch (facts.anonymous) {
    case Anonymous::refused: return ok("a client without a password may not delete a lock");
    case Anonymous::unknown: return {Health::unknown, "a connection without a password could not be tried", {}};
    case Anonymous::may_delete: break;
  }
  if (!facts.asked_on_its_host) {
    return warn(open, advice);
  }
  if (!facts.config || !facts.info || !facts.config->text("bind")) {
    return {Health::unknown, open + ", and CONFIG GET, which tells whether other hosts reach it, is not permitted",
            advice};
  }
  return other_hosts_reach(*facts.config, *facts.info) ? warn(open + ", and other hosts reach it", advice)
                                                       : ok("no password is needed, but only this host reaches it");
}

Verdict round_trip(const Facts& facts, Millis ttl)
{
  if (facts.ticks.empty()) {
    return {Health::unknown, "not permitted", "grant +time, which every lock needs"};
  }
  std::vector<Micros> times;
  for (const Tick& tick : facts.ticks) {
    times.push_back(took(tick));
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

// Its rate decides when a lease ends; its time of day is what fencing numbers and people's times are made of.
Verdict clock(const Facts& facts, Millis)
{
  if (facts.ticks.size() < 2) {
    return {Health::unknown, "not permitted", "grant +time, which every lock needs"};
  }
  const Tick& first = facts.ticks.front();
  const Tick& last = facts.ticks.back();
  const auto unsure = static_cast<double>((took(first) + took(last)).count());
  const auto here = static_cast<double>(std::chrono::duration_cast<Micros>(last.answered - first.answered).count());
  const auto there = static_cast<double>(last.server_us - first.server_us);
  if (here > 0 && std::abs(there - here) > here / 100 + unsure) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "it went %.2f s while ours went %.2f s", there / 1e6, here / 1e6);
    return fail(text.data(), "mend that clock: leases end when it says so");
  }
  const auto ahead = Micros(last.server_us - last.wall_us);
  const Millis apart = std::chrono::duration_cast<Millis>(std::chrono::abs(ahead));
  if (Micros(apart) > std::chrono::seconds(1) + took(last)) {
    const auto about = std::chrono::round<std::chrono::seconds>(apart);  // the answer's own way was a part of it
    return warn(show_roughly(about) + (ahead > Micros(0) ? " ahead of ours" : " behind ours"),
                "have NTP keep both; setting it forward would end leases early");
  }
  return ok("it goes as ours does, " + std::to_string(apart.count()) + " ms apart");
}

Verdict lock(const Facts& facts, Millis)
{
  if (facts.probe) {
    return ok("one of our own was taken, refused to another, renewed and released");
  }
  const Error& why = facts.probe.error();
  return fail(why.text, why.fault == ErrorCode::refused
                            ? "rlock acl -k GLOB prints the rules; --prefix says where this user may lock"
                            : "no lock can be taken there as it is");
}

Verdict messages(const Facts& facts, Millis)
{
  if (!facts.probe) {
    return {Health::unknown, "no lock could be tried", {}};
  }
  return facts.probe->heard
             ? ok("what is said to an owner is heard")
             : fail("what is said to an owner is not heard", "let PUBLISH and SUBSCRIBE through to the same server");
}

Verdict eavesdroppers(const Facts& facts, Millis)
{
  if (!facts.probe) {
    return {Health::unknown, "no lock could be tried", {}};
  }
  return facts.probe->eavesdroppers == 0
             ? ok("nobody listens to everybody")
             : warn(std::to_string(facts.probe->eavesdroppers) + " listen to every owner: a dead waiter seems to live",
                    "end the PSUBSCRIBE (CLIENT LIST shows psub=), or expect " + show(handover_confirmation) +
                        " for each dead waiter");
}

Verdict version(const Facts& facts, Millis)
{
  const auto text = facts.info->text("redis_version");
  if (!text) {
    return untold();
  }
  const int number = number_of_version(*text);
  const std::string found = printable(*text);
  if (number < 60'000) {
    return fail(found + " does not know what the scripts call", "run Redis 6.2 or later, or Valkey");
  }
  return number < 60'200 ? warn(found + " has not been tried", "run Redis 6.2 or later, or Valkey") : ok(found);
}

Verdict role(const Facts& facts, Millis)
{
  const auto role = facts.info->text("role");
  const std::string mode = facts.info->text("redis_mode").value_or("");
  if (mode == "sentinel") {
    return fail("it is a sentinel", "name the server that it watches");
  }
  if (!role) {
    return untold();
  }
  if (*role != "master") {
    const std::string master =
        facts.info->text("master_host").value_or("?") + ":" + facts.info->text("master_port").value_or("?");
    return fail("it is a replica of " + printable(master), "name the master");
  }
  return ok(mode == "cluster" ? "master in a cluster" : "master");
}

Verdict loading(const Facts& facts, Millis)
{
  const auto is = facts.info->number("loading");
  if (!is) {
    return untold();
  }
  return *is == 0 ? ok("no, it has its data") : fail("it is loading its data", "wait until it has");
}

Verdict connections(const Facts& facts, Millis)
{
  const auto now = facts.info->number("connected_clients");
  const auto most = facts.info->number("maxclients");
  const auto rejected = facts.info->number("rejected_connections").value_or(0);
  if (!now) {
    return untold();
  }
  const std::string found = std::to_string(*now) + (most ? " of " + std::to_string(*most) : "");
  const std::string advice = "raise maxclients: each waiter has two connections";
  if (most && *now * 5 >= *most * 4) {
    return warn(found, advice);
  }
  return rejected > 0 ? warn(found + ", and " + std::to_string(rejected) + " were turned away since it began", advice)
                      : ok(found);
}

Verdict idle_timeout(const Facts& facts, Millis ttl)
{
  const auto seconds = facts.config->number("timeout");
  if (!seconds) {
    return untold();
  }
  if (*seconds == 0) {
    return ok("none");
  }
  const Millis idle = std::chrono::seconds(*seconds);
  return idle > renewal_period(ttl) ? ok(show(idle))
                                    : warn(show(idle) + ": connections end between two renewals",
                                           "set timeout 0, or more than " + show(renewal_period(ttl)));
}

Verdict slow_scripts(const Facts& facts, Millis ttl)
{
  const auto ms = facts.config->text("busy-reply-threshold") ? facts.config->number("busy-reply-threshold")
                                                             : facts.config->number("lua-time-limit");
  if (!ms) {
    return untold();
  }
  return *ms > 0 && Millis(*ms) < renewal_period(ttl)
             ? ok("it says so after " + show(Millis(*ms)))
             : warn(*ms <= 0 ? "a slow script is never told of"
                             : "a slow script is told of only after " + show(Millis(*ms)),
                    "set busy-reply-threshold below " + show(renewal_period(ttl)));
}

}  // namespace rlock::doctor
