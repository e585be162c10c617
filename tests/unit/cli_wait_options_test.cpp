// SPDX-License-Identifier: Apache-2.0
#include "cli/options/take.h"
#include "unit/typed_options.h"

#include <doctest/doctest.h>

using namespace rlock;
using namespace rlock::cli;
using namespace rlock::test;

namespace {

Result<RunRequest> meant(const std::vector<std::string>& words)
{
  RunRequest request;
  OptionTable known("run");
  add_wait_options(known, request);
  ASSIGN_OR_RETURN(const auto operands, operands_of(known, words, Operands::command));
  CHECK(operands.empty());
  return request;
}

}  // namespace

TEST_CASE("wait options: for ever, for a time or not at all")
{
  CHECK_FALSE(meant({})->wait);
  CHECK(meant({"-n"})->wait == Millis{0});
  CHECK(meant({"-w", "0"})->wait == Millis{0});
  CHECK(meant({"-n", "-w", "0s"})->wait == Millis{0});
  CHECK(meant({"-w", "1m30s"})->wait == Millis{90'000});
  CHECK(meant({"-n", "-w", "1"}).error().text == "--no-wait and --wait exclude each other (try -w 10s alone)");
  CHECK(meant({"-w", ""}).error().text == "--wait: '' is not a duration (try --wait 10s)");
  CHECK(meant({"-w", "-1"}).error().code == ErrorCode::usage);
}

TEST_CASE("wait options: for a server not at all, or for a time that is independent of the lock's")
{
  CHECK(meant({})->wait_server == Millis{0});
  CHECK(meant({"-n", "--wait-server", "10m"})->wait_server == Millis{600'000});
  CHECK(meant({"-n", "--wait-server", "10m"})->wait == Millis{0});
  CHECK(meant({"--wait-server", "0"})->wait_server == Millis{0});
  CHECK(meant({"--wait-server", "soon"}).error().text ==
        "--wait-server: 'soon' is not a duration (try --wait-server 10m)");
}
