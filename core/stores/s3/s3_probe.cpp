// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_probe.h"

#include <algorithm>
#include <chrono>
#include <vector>
#include "base/hex.h"
#include "base/text.h"

namespace rlock::s3 {
namespace {

constexpr const char* key_of_finding = ".fit";  // holds the time of the store at which it was found fit, in seconds
constexpr std::chrono::hours finding_life{24};
constexpr std::size_t writers_at_once = 8;

Request probe_write(const std::string& key, Rng& rng, const std::string& if_match,
                    const std::string& if_none_match = {})
{
  return {.method = Request::Method::put,
          .key = key,
          .if_match = if_match,
          .if_none_match = if_none_match,
          .body = "probe " + hex_of(rng.next())};
}

// Returns what is wrong.
Result<std::string> probe_one(Connection& connection, const std::string& key, Rng& rng, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto first, connection.ask(probe_write(key, rng, "", "*"), limit));
  if (first.kind != Answer::Kind::done || first.etag.empty()) {
    return std::string("it makes no object with If-None-Match");
  }
  ASSIGN_OR_RETURN(const auto second, connection.ask(probe_write(key, rng, "", "*"), limit));
  if (second.kind == Answer::Kind::done) {
    return std::string("it ignores If-None-Match: *");
  }
  const std::string other_etag = "\"0123456789abcdef0123456789abcdef\"";
  ASSIGN_OR_RETURN(const auto third, connection.ask(probe_write(key, rng, other_etag), limit));
  if (third.kind == Answer::Kind::done) {
    return std::string("it ignores If-Match");
  }
  std::vector<Request> crowd;
  for (std::size_t i = 0; i < writers_at_once; ++i) {
    crowd.push_back(probe_write(key, rng, first.etag));
  }
  std::size_t winners = 0;
  for (const auto& each : connection.ask_all(crowd, limit)) {
    if (!each) {
      return each.error();
    }
    winners += each->kind == Answer::Kind::done ? 1 : 0;
  }
  return winners == 1 ? std::string()
                      : "of " + std::to_string(writers_at_once) + " writes at once that replace one state, " +
                            std::to_string(winners) + " succeeded";
}

}  // namespace

Result<std::string> probe_conditions(Connection& connection, Rng& rng, const CallLimits& limit)
{
  const std::string key = ".probe-" + hex_of(rng.next());
  auto found = probe_one(connection, key, rng, limit);
  [[maybe_unused]] const auto removed = connection.ask({.method = Request::Method::remove, .key = key}, limit);
  return found;
}

Result<Done> check_conditions(Connection& connection, Rng& rng, const CallLimits& limit)
{
  ASSIGN_OR_RETURN(const auto known, connection.ask({.key = key_of_finding}, limit));
  const std::int64_t now_s = known.time_us / 1'000'000;
  const std::int64_t found_s = leading_number(known.body);
  if (known.kind == Answer::Kind::done && now_s - found_s < std::chrono::seconds(finding_life).count()) {
    return Done{};
  }
  ASSIGN_OR_RETURN(const auto wrong, probe_conditions(connection, rng, limit));
  if (!wrong.empty()) {
    return Error{ErrorCode::config, connection.where() + " keeps no locks: " + wrong +
                                        ", so two jobs would get one lock (use a store that compares on write)"};
  }
  RETURN_IF_ERROR(
      connection.ask({.method = Request::Method::put, .key = key_of_finding, .body = std::to_string(now_s)}, limit));
  return Done{};
}

}  // namespace rlock::s3
