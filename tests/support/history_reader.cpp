// SPDX-License-Identifier: Apache-2.0
#include "support/history_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>

namespace rlock::test {

std::vector<Json> history_of(const RedisServer& server, const std::string& key)
{
  const Finished told = rlock_on(server, {"history", "--json", key});
  REQUIRE_MESSAGE(told.code <= 1, told.err);
  CHECK((told.code == 1) == told.out.empty());
  return json_lines(told.out);
}

Json status_of(const RedisServer& server) { return Json::parse(rlock_on(server, {"status", "--json", "k"}).out); }

std::vector<pid_t> pids_waiting(const std::string& status)
{
  const Json lock = Json::parse(status);
  std::vector<pid_t> pids;
  std::ranges::transform(lock.at("waiting").elements(), std::back_inserter(pids), [](const Json& waiter) {
    return waiter.at("pid").is_null() ? 0 : static_cast<pid_t>(waiter.at("pid").number());
  });
  return pids;
}

std::string outcomes(const std::vector<Json>& runs)
{
  std::string text;
  for (const Json& run : runs) {
    text += (text.empty() ? "" : ", ") + (run.at("outcome").is_null() ? "?" : run.at("outcome").text()) +
            (run.at("exit_code").is_null() ? "" : " " + run.at("exit_code").dump());
  }
  return text;
}

}  // namespace rlock::test
