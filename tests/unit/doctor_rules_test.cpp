// SPDX-License-Identifier: Apache-2.0
// The doctor's rules on facts that no server here shows.
#include "doctor/rules.h"

#include "support/clean_text.h"
#include "support/findings.h"
#include "support/test.h"

using namespace rlock::test;

namespace {

Facts told(std::string_view info)
{
  Facts facts;
  facts.info = Fields::of_info(info);
  facts.config = Fields();
  return facts;
}

std::string status_of(const Facts& facts, std::string_view check, Millis ttl = 30s)
{
  return status_in(check_server(facts, ttl), check);
}

// These round trips, and two clock samples one second apart.
Facts ticking(std::chrono::microseconds round_trip, std::int64_t server_us_a_second)
{
  Facts facts;
  const Instant start{};
  facts.clock_samples = {{start, start + round_trip, 1s},
                         {start + 1s, start + 1s + round_trip, 1s + std::chrono::microseconds(server_us_a_second)}};
  facts.local_time = 2s;
  return facts;
}

}  // namespace

TEST_CASE("doctor: versions")
{
  CHECK(status_of(told("redis_version:4.0.14\r\n"), "version") == "fail");
  CHECK(status_of(told("redis_version:5.0.7\r\n"), "version") == "fail");
  CHECK(status_of(told("redis_version:6.0.16\r\n"), "version") == "warn");
  CHECK(status_of(told("redis_version:6.2.14\r\n"), "version") == "ok");
  CHECK(status_of(told("redis_version:8.0.2\r\n"), "version") == "ok");
  CHECK(status_of(told("# Server\r\n"), "version") == "unknown");
}

TEST_CASE("doctor: what a server tells is safe to print, and no number of it overflows")
{
  const Facts facts = told(
      "redis_version:99999999999.\x1b[2J\r\nrole:slave\r\nmaster_host:\x1b]0;x\x07\r\nmaster_port:\xff\r\n"
      "maxmemory_policy:\x1b[31m\r\nmaxmemory:1\r\nused_memory:9223372036854775807\r\n");
  for (const Finding& finding : check_server(facts, 30s)) {
    CHECK_MESSAGE(is_clean(finding.found + finding.advice), finding.check);
  }
}

TEST_CASE("doctor: what a round trip may cost depends on the ttl")
{
  CHECK(status_of(ticking(1ms, 1'000'000), "round-trip", 1s) == "ok");
  CHECK(status_of(ticking(20ms, 1'000'000), "round-trip", 1s) == "warn");
  CHECK(status_of(ticking(200ms, 1'000'000), "round-trip", 1s) == "fail");
  CHECK(status_of(ticking(200ms, 1'000'000), "round-trip", 30s) == "ok");
}

TEST_CASE("doctor: a clock is judged no more sharply than it could be seen")
{
  CHECK(status_of(ticking(1ms, 1'009'000), "clock") == "ok");
  CHECK(status_of(ticking(1ms, 1'020'000), "clock") == "fail");
  CHECK(status_of(ticking(100ms, 1'020'000), "clock") == "ok");
  CHECK(status_of(ticking(1ms, 900'000), "clock") == "fail");
}

TEST_CASE("doctor: what INFO alone tells")
{
  CHECK(status_of(told("loading:1\r\n"), "loading") == "fail");
  CHECK(status_of(told("aof_last_write_status:err\r\nrdb_last_bgsave_status:ok\r\n"), "disk") == "fail");
  CHECK(status_of(told("redis_mode:sentinel\r\n"), "role") == "fail");
  CHECK(status_of(told("connected_clients:3\r\nmaxclients:10000\r\nrejected_connections:7\r\n"), "connections") ==
        "warn");
  CHECK(status_of(told("maxmemory:x\r\nmaxmemory_policy:noeviction\r\n"), "eviction") == "unknown");
  CHECK(status_of(told("uptime_in_seconds:40\r\naof_enabled:0\r\n"), "restart") == "ok");
  CHECK(status_of(told("uptime_in_seconds:4\r\naof_enabled:0\r\n"), "restart") == "warn");
}

TEST_CASE("doctor: no answer, and nothing is permitted")
{
  Facts facts;
  facts.failure = Error{ErrorCode::unreachable, "silence"};
  CHECK(check_server(facts, 30s).size() == 1);
  CHECK(status_of(facts, "reach") == "fail");
  for (const Finding& finding : check_server(Facts{}, 30s)) {
    CHECK_MESSAGE(
        (finding.status == CheckStatus::ok || !finding.advice.empty() || finding.status == CheckStatus::unknown),
        finding.check);
  }
  CHECK(status_of(Facts{}, "eviction") == "unknown");
  CHECK(status_of(Facts{}, "persistence") == "unknown");
}

TEST_CASE("doctor: what was not permitted is told apart from what was not answered")
{
  const auto about = [](const Facts& facts, std::string_view check) {
    const auto all = check_server(facts, 30s);
    const auto at = std::ranges::find(all, check, &Finding::check);
    REQUIRE(at != all.end());
    return at->found + "|" + at->advice;
  };
  Facts facts;
  facts.info = Error{ErrorCode::refused, "NOPERM"};
  CHECK(about(facts, "eviction") == "not permitted|ask a user who may INFO");
  facts.info = Error{ErrorCode::unreachable, "no answer within 5s"};
  CHECK(about(facts, "eviction") == "not asked: no answer within 5s|");
  facts.info = Fields();
  facts.config = Error{ErrorCode::refused, "NOPERM"};
  CHECK(about(facts, "persistence") == "not permitted|ask a user who may CONFIG GET");
  facts.config = Error{ErrorCode::server_not_ready, "LOADING"};
  CHECK(about(facts, "persistence") == "not asked: LOADING|");
}

TEST_CASE("doctor: access without a password")
{
  CHECK(status_of(Facts{}, "access") == "unknown");
  Facts facts;
  facts.anonymous = Anonymous::refused;
  CHECK(status_of(facts, "access") == "ok");
  facts.anonymous = Anonymous::may_delete;
  CHECK(status_of(facts, "access") == "warn");

  facts.asked_on_its_host = true;
  CHECK(status_of(facts, "access") == "unknown");  // CONFIG GET is not permitted
  struct Row {
    std::string version, port, tls_port, bind, protected_mode, status;
  };
  for (const Row& row : std::initializer_list<Row>{
           {"7.0.15", "6379", "0", "127.0.0.1 -::1", "no", "ok"},
           {"7.0.15", "6379", "0", "0.0.0.0", "no", "warn"},
           {"7.0.15", "6379", "0", "127.0.0.1 10.0.0.5", "no", "warn"},
           {"7.0.15", "6379", "0", "* -::*", "yes", "ok"},
           {"7.0.15", "0", "0", "* -::*", "no", "ok"},
           {"7.0.15", "0", "6380", "* -::*", "no", "warn"},
           {"6.2.14", "6379", "0", "0.0.0.0", "yes", "warn"},
           {"6.2.14", "6379", "0", "", "yes", "ok"},
           {"6.2.14", "6379", "0", "", "no", "warn"},
       }) {
    CAPTURE(row.version + " " + row.port + " " + row.tls_port + " " + row.bind + " " + row.protected_mode);
    facts.info = Fields();
    facts.info->set("redis_version", row.version);
    facts.config = Fields();
    Fields& config = *facts.config;
    config.set("port", row.port);
    config.set("tls-port", row.tls_port);
    config.set("bind", row.bind);
    config.set("protected-mode", row.protected_mode);
    CHECK(status_of(facts, "access") == row.status);
  }
}
