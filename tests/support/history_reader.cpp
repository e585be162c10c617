// SPDX-License-Identifier: Apache-2.0
#include "support/history_reader.h"

#include <doctest/doctest.h>

#include <sstream>

namespace rlock::test {

using nlohmann::json;

std::vector<json> json_lines(const std::string& text)
{
  std::vector<json> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    all.push_back(json::parse(line));
  }
  return all;
}

std::vector<json> history_of(const RedisServer& server, const std::string& key)
{
  const Finished told = rlock_on(server, {"history", "--json", key});
  REQUIRE_MESSAGE(told.code <= 1, told.err);
  CHECK((told.code == 1) == told.out.empty());
  return json_lines(told.out);
}

json status_of(const RedisServer& server) { return json::parse(rlock_on(server, {"status", "--json", "k"}).out); }

std::vector<pid_t> pids_waiting(const std::string& status)
{
  const json lock = json::parse(status);
  std::vector<pid_t> pids;
  std::ranges::transform(lock.at("waiting"), std::back_inserter(pids), [](const json& waiter) {
    return waiter.at("pid").is_null() ? 0 : waiter.at("pid").get<pid_t>();
  });
  return pids;
}

std::string outcomes(const std::vector<json>& runs)
{
  std::string text;
  for (const json& run : runs) {
    text += (text.empty() ? "" : ", ") + (run.at("outcome").is_null() ? "?" : run.at("outcome").get<std::string>()) +
            (run.at("exit_code").is_null() ? "" : " " + run.at("exit_code").dump());
  }
  return text;
}

}  // namespace rlock::test
