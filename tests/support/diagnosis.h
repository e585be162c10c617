// SPDX-License-Identifier: Apache-2.0
// What `rlock doctor --json` says, by check.
#pragma once

#include "support/redis_fixture.h"
#include "support/shop.h"

#include <map>
#include <string>

#include <nlohmann/json.hpp>

namespace rlock::test {

struct Diagnosis {
  int code;
  std::string out;
  std::map<std::string, nlohmann::json> findings;  // of several servers the last one's

  [[nodiscard]] std::string status(const std::string& check) const;  // "missing" where nothing is said of it
  [[nodiscard]] std::string found(const std::string& check) const { return findings.at(check).at("found"); }
};

// Checks that each finding has what it has to have.
Diagnosis diagnosis(const Finished& ended);
Diagnosis examined(const std::string& url, Words options = {});

// What the doctor says beside "ok", as "check=status" words.
std::string complaints(const Diagnosis& told);

// Options of a server of which the doctor has nothing to say.
RedisOptions fit(Words more = {});

}  // namespace rlock::test
