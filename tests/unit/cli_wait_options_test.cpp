// SPDX-License-Identifier: Apache-2.0
#include "cli/options/wait_options.h"

#include <doctest/doctest.h>

namespace rlock::cli {

TEST_CASE("wait options: for ever, for a time or not at all")
{
  const auto meant = [](bool no_wait, Text wait) {
    return resolve_wait_options({.no_wait = no_wait, .wait = std::move(wait)});
  };
  CHECK_FALSE(meant(false, {})->has_value());
  CHECK(*meant(true, {}) == Millis{0});
  CHECK(*meant(false, "0") == Millis{0});
  CHECK(*meant(true, "0") == Millis{0});
  CHECK(*meant(false, "1m30s") == Millis{90'000});
  CHECK(meant(true, "1").error().text == "--no-wait and --wait exclude each other (try -w 10s alone)");
  CHECK(meant(false, "").error().text == "--wait: '' is not a duration (try --wait 10s)");
  CHECK(meant(false, "-1").error().code == ErrorCode::usage);
}

}  // namespace rlock::cli
