// SPDX-License-Identifier: Apache-2.0
// The findings of `rlock doctor --json`, by check.
#pragma once

#include "support/acl_fixture.h"
#include "support/json.h"
#include "support/redis_fixture.h"

#include <map>
#include <string>

namespace rlock::test {

struct Diagnosis {
  int code;
  std::string out;
  std::map<std::string, Json> findings;  // with several servers: those of the last server

  [[nodiscard]] std::string status(const std::string& check) const;  // "missing" when there is no such finding
  [[nodiscard]] std::string found(const std::string& check) const { return findings.at(check).at("found").text(); }
};

// Runs the doctor, and checks that each finding is complete.
Diagnosis diagnosis(const Finished& ended);
Diagnosis examined(const std::string& url, Words options = {});

// All findings but "ok", as "check=status" words.
std::string complaints(const Diagnosis& told);

// Options of a server for which the doctor has no complaint.
RedisOptions fit(Words more = {});

}  // namespace rlock::test
