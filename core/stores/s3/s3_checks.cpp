// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_checks.h"

#include <algorithm>
#include "base/duration.h"
#include "base/text.h"
#include "engine/server_findings.h"
#include "stores/s3/s3_probe.h"

namespace rlock::s3 {
namespace {

using record::fail;
using record::ok;

constexpr int asked_dates = 10;

Finding server(const CheckedFacts& facts)
{
  return ok("version", facts.server.empty() ? "it does not say what it is" : printable(shortened(facts.server, 60)));
}

Finding conditions(const CheckedFacts& facts)
{
  return facts.wrong_conditions.empty() ? ok("conditions", "it compares on write")
                                        : fail("conditions", facts.wrong_conditions + ": two jobs may get one lock",
                                               "use a store that compares on write");
}

Finding wake_up(const CheckedFacts&)
{
  return ok("messages", "nothing wakes a waiter: the first in line asks every second");
}

Finding credentials(const CheckedFacts& facts) { return ok("credentials", "from " + facts.credentials); }

Finding encryption(const CheckedFacts& facts)
{
  return record::encryption_finding(facts.uses_tls, facts.is_this_host, "use an endpoint with https://");
}

Finding host_clocks(const CheckedFacts& facts)
{
  const std::string allowed = "clock-skew=" + show(facts.clock_skew);
  if (facts.clock_difference > facts.clock_skew) {
    return fail("dates", "the hosts of the store differ by " + show(facts.clock_difference) + ", more than " + allowed,
                "have NTP keep the hosts of the store, or raise clock-skew in the URL of all clients");
  }
  return ok("dates", std::to_string(asked_dates) + " answers agree within " + allowed);
}

Finding clocks(const CheckedFacts& facts)
{
  return record::clock_finding(facts.ahead_ms, facts.unsure_ms, "have NTP keep this host and those of the store");
}

}  // namespace

std::vector<Finding> findings_of(const CheckedFacts& facts)
{
  return record::findings_by(facts, server, credentials, conditions, wake_up, encryption, host_clocks, clocks);
}

// A host's clock, less this host's, is at least what it is if it named the second just when the answer came, and at most what it is if it
// was about to name the next one when the request was sent.
Millis least_difference(std::span<const DateSample> samples)
{
  Millis greatest_least = Millis::min(), least_greatest = Millis::max();
  for (const DateSample& each : samples) {
    greatest_least = std::max(greatest_least, each.date - each.heard);
    least_greatest = std::min(least_greatest, each.date + date_step - each.sent);
  }
  return samples.empty() ? Millis{0} : std::max(Millis{0}, greatest_least - least_greatest);
}

// Each date over a connection of its own, so that it may be that of another host.
Result<std::vector<Finding>> check_server(Connection& connection, Rng& rng, const CallLimits& limit)
{
  const ConnectionSpec& spec = connection.spec();
  CheckedFacts facts;
  ASSIGN_OR_RETURN(facts.wrong_conditions, probe_conditions(connection, rng, limit));
  std::vector<DateSample> samples;
  for (int i = 0; i < asked_dates; ++i) {
    connection.drop();
    const Millis wall_less_clock =
        Millis(wall_clock_ms()) - std::chrono::duration_cast<Millis>(connection.clock().now().time_since_epoch());
    ASSIGN_OR_RETURN(const auto answer, connection.ask({.key = ".date"}, limit));
    const auto wall = [&](Instant at) {
      return std::chrono::duration_cast<Millis>(at.time_since_epoch()) + wall_less_clock;
    };
    samples.push_back({wall(answer.sent_at), wall(answer.heard_at), Millis(answer.time_us / 1000)});
    facts.server = answer.server;
  }
  const DateSample& last = samples.back();
  facts.credentials = connection.credentials().source;
  facts.uses_tls = spec.uses_tls();
  facts.is_this_host = spec.is_this_host();
  facts.clock_skew = spec.clock_skew;
  facts.clock_difference = least_difference(samples);
  facts.ahead_ms = (last.date + date_step / 2 - last.sent).count();
  facts.unsure_ms = (last.heard - last.sent + date_step / 2).count();
  return findings_of(facts);
}

}  // namespace rlock::s3
