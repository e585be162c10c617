// SPDX-License-Identifier: Apache-2.0
#include "support/diagnosis.h"

#include <doctest/doctest.h>

namespace rlock::test {

std::string Diagnosis::status(const std::string& check) const
{
  return findings.contains(check) ? findings.at(check).at("status").text() : "missing";
}

Diagnosis diagnosis(const Finished& ended)
{
  Diagnosis told{ended.code, ended.out + ended.err, {}};
  for (const Json& finding : json_lines(ended.out)) {
    CHECK(finding.size() == 5);
    const bool bad = finding.at("status") == "warn" || finding.at("status") == "fail";
    CHECK_MESSAGE((finding.at("status") == "unknown" || finding.at("advice").is_null() != bad), finding);
    told.findings[finding.at("check")] = finding;
  }
  return told;
}

Diagnosis examined(const std::string& url, Words options)
{
  Words words{"doctor", "--json", "-S", url};
  words.insert(words.end(), options.begin(), options.end());
  return diagnosis(run_rlock(words));
}

std::string complaints(const Diagnosis& told)
{
  std::string all;
  for (const auto& [check, finding] : told.findings) {
    if (finding.at("status") != "ok") {
      all += (all.empty() ? "" : " ") + check + "=" + finding.at("status").text();
    }
  }
  return all;
}

RedisOptions fit(Words more)
{
  Words args{"--appendonly", "yes"};
  args.insert(args.end(), more.begin(), more.end());
  return {.args = args};
}

}  // namespace rlock::test
