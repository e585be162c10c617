// SPDX-License-Identifier: Apache-2.0
// A store that deletes old rows after every commit that may do so.
#pragma once

#include "base/clock.h"
#include "engine/record_backend.h"

#include <functional>

#include <doctest/doctest.h>

namespace rlock::test {

// Answers a number below the others, so that each commit is one that cleans.
class AlwaysCleaning final : public Rng {
 public:
  std::uint64_t next() override { return 0; }
};

// `has_old`: makes the row of the lock `old` one that may be deleted; whether it is there.
inline void expect_cleaning_by_releases_alone(record::Backend& backend, const Clock& clock,
                                              const std::function<bool()>& has_old)
{
  const auto commit = [&](const char* name, const record::Face& face) {
    const CallLimits limit{.deadline = clock.now() + Millis(10'000), .stop = StopToken::never()};
    REQUIRE(backend.read(name, limit));
    const record::LogChange no_log;
    const auto done = backend.write_if(name, "", {.bytes = "x", .face = face, .log = no_log, .messages = {}}, limit);
    REQUIRE_MESSAGE(done, done.error().text);
    REQUIRE(std::holds_alternative<record::Committed>(*done));
  };
  const record::Face held{.holder = "someone", .until_us = 4'000'000'000'000'000, .forget_us = 4'000'000'000'000'000};
  commit("old", held);
  REQUIRE(has_old());
  commit("granted", held);
  CHECK(has_old());
  commit("released", {.holder = "", .until_us = 0, .forget_us = 4'000'000'000'000'000});
  CHECK_FALSE(has_old());
}

}  // namespace rlock::test
