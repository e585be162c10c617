// SPDX-License-Identifier: Apache-2.0
// What the doctor found, for tests of its rules.
#pragma once

#include "lock/finding.h"
#include "support/test.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::test {

// The word of the first finding of this check; "missing": there is none.
inline std::string status_in(const std::vector<Finding>& findings, std::string_view check)
{
  constexpr std::array words{"ok", "warn", "fail", "unknown"};
  const auto found = std::ranges::find(findings, check, &Finding::check);
  return found == findings.end() ? "missing" : words[static_cast<std::size_t>(found->status)];
}

// What `findings_of` of the store makes of these facts.
template <typename Facts>
Finding finding(const Facts& facts, std::string_view check)
{
  const std::vector<Finding> findings = findings_of(facts);
  const auto found = std::ranges::find(findings, check, &Finding::check);
  REQUIRE(found != findings.end());
  return *found;
}

// There are findings, and none needs an action.
inline void check_all_ok(const std::vector<Finding>& findings)
{
  CHECK_FALSE(findings.empty());
  for (const Finding& each : findings) {
    CAPTURE(each.check);
    CHECK_MESSAGE(each.status == CheckStatus::ok, each.found);
    CHECK(each.advice.empty());
  }
}

}  // namespace rlock::test
