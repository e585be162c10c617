// SPDX-License-Identifier: Apache-2.0
#include "judge/options.h"

#include <doctest/doctest.h>

using namespace rlock::judge;

TEST_CASE("judge: the command line")
{
  const auto options = parse_options({"--minutes", "0.5", "--seed", "7", "--on", "cluster", "--rate", "5"}, 1);
  REQUIRE(options);
  CHECK(options->time == rlock::Millis(30'000));
  CHECK(options->seed == 7);
  CHECK(options->topology == "cluster");
  CHECK(options->repeat_command("judge") == "judge --minutes 0.5 --seed 7 --on cluster --rate 5 --server-pause 4");
  CHECK_FALSE(parse_options({"--minutes"}, 1));
  CHECK_FALSE(parse_options({"--minutes", "soon"}, 1));
  CHECK_FALSE(parse_options({"--hours", "1"}, 1));
}

TEST_CASE("judge: a fault that no server has is unknown, and is not passed over")
{
  const auto chosen = [](const std::string& list) { return *parse_options({"--faults", list}, 1); };
  CHECK(chosen("processes,operators,flushall").unknown_fault({"flushall"}).empty());
  CHECK(chosen("servers").unknown_fault({}).empty());
  CHECK(chosen("flushall,slot-move").unknown_fault({"flushall"}) == "slot-move");
  CHECK(chosen("server").unknown_fault({"flushall"}) == "server");
}

TEST_CASE("judge: forms of jobs")
{
  const auto chosen = [](const std::string& list) { return *parse_options({"--jobs", list}, 1); };
  CHECK(parse_options({}, 1)->wants(JobForm::frozen));
  CHECK(chosen("timeout,setsid-wait").wants(JobForm::setsid_wait));
  CHECK_FALSE(chosen("timeout,setsid-wait").wants(JobForm::direct));
  CHECK(chosen("timeout,setsid-wait").unknown_job().empty());
  CHECK(chosen("timeout,setsid").unknown_job() == "setsid");
  CHECK(chosen("timeout").repeat_command("judge").ends_with(" --jobs timeout"));
}
