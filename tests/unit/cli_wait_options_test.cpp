// SPDX-License-Identifier: Apache-2.0
#include "cli/options/run.h"

#include <doctest/doctest.h>

namespace rlock::cli {

TEST_CASE("wait options: for ever, for a time or not at all")
{
  const auto meant = [](bool no_wait, Text wait) {
    return resolve_wait_options({.no_wait = no_wait, .wait = std::move(wait), .wait_server = {}});
  };
  CHECK_FALSE(meant(false, {})->lock);
  CHECK(meant(true, {})->lock == Millis{0});
  CHECK(meant(false, "0")->lock == Millis{0});
  CHECK(meant(true, "0")->lock == Millis{0});
  CHECK(meant(false, "1m30s")->lock == Millis{90'000});
  CHECK(meant(true, "1").error().text == "--no-wait and --wait exclude each other (try -w 10s alone)");
  CHECK(meant(false, "").error().text == "--wait: '' is not a duration (try --wait 10s)");
  CHECK(meant(false, "-1").error().code == ErrorCode::usage);
}

TEST_CASE("wait options: for a server not at all, or for a time that is independent of the lock's")
{
  const auto meant = [](bool no_wait, Text wait_server) {
    return resolve_wait_options({.no_wait = no_wait, .wait = {}, .wait_server = std::move(wait_server)});
  };
  CHECK(meant(false, {})->server == Millis{0});
  CHECK(meant(true, "10m")->server == Millis{600'000});
  CHECK(meant(true, "10m")->lock == Millis{0});
  CHECK(meant(false, "0")->server == Millis{0});
  CHECK(meant(false, "soon").error().text == "--wait-server: 'soon' is not a duration (try --wait-server 10m)");
}

}  // namespace rlock::cli
