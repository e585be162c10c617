// SPDX-License-Identifier: Apache-2.0
#include "doctor/eviction.h"

#include <algorithm>
#include <array>
#include <string_view>
#include "base/defaults.h"
#include "doctor/facts.h"
#include "doctor/rules.h"
#include "stores/redis_transport.h"

namespace rlock {
namespace {

constexpr Millis answer_time{1000};

std::optional<Finding> eviction_of(const ServerSpec& server, const Endpoint& endpoint, const Clock& clock)
{
  const auto transport = open_transport(endpoint, local_options(server, endpoint), clock, StopToken::never());
  if (!transport) {
    return std::nullopt;
  }
  constexpr std::array<std::string_view, 2> question{"INFO", "memory"};
  const auto answer =
      (*transport)
          ->call("", question,
                 {.deadline = clock.now() + std::min(server.timeout, answer_time), .stop = StopToken::never()});
  if (!answer) {
    return std::nullopt;
  }
  Facts facts;
  facts.info = Fields::of_info(answer->text);
  std::vector<Finding> findings = check_server(facts, default_ttl);
  const auto found = std::ranges::find(findings, "eviction", &Finding::check);
  return found != findings.end() && found->status == CheckStatus::fail ? std::optional(std::move(*found))
                                                                       : std::nullopt;
}

}  // namespace

std::optional<std::string> eviction_warning(const ServerSpec& server, const Clock& clock)
{
  for (const Endpoint& endpoint : server.endpoints) {
    const bool may_evict = endpoint.is_redis() && !endpoint.is_private();  // rlock starts a private one with noeviction
    const auto finding = may_evict ? eviction_of(server, endpoint, clock) : std::nullopt;
    if (finding) {
      return endpoint.shown() + " may forget locks: " + finding->found + " (" + finding->advice + ")";
    }
  }
  return std::nullopt;
}

}  // namespace rlock
