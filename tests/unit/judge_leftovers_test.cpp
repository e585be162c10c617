// SPDX-License-Identifier: Apache-2.0
// What the judge says of the keys that a storm has left, on a server with the replies of the test.
#include "judge/leftovers.h"
#include "support/test.h"

using namespace rlock::test;
using namespace rlock::judge;

namespace {

constexpr const char* now_s = "1000";

class KeysOfServer final : public Servers {
 public:
  std::map<std::string, std::int64_t> ttls;        // of all keys
  std::map<std::string, std::string> last_expiry;  // of a sorted set, in ms
  bool is_away = false;

  [[nodiscard]] Words options() const override { return {}; }
  void ask_each(const std::function<void(const Ask&)>& visit) override
  {
    visit([this](const Words& command) { return answer(command); });
  }
  std::vector<ServerFault> faults(const Words&) override { return {}; }
  void settle() override {}

 private:
  [[nodiscard]] Result<Reply> answer(const Words& command) const
  {
    if (is_away) {
      return Error{ErrorCode::unreachable, "away"};
    }
    if (command[0] == "SCAN") {
      Words names;
      for (const auto& [name, ttl] : ttls) {
        names.push_back(name);
      }
      return Reply::array({Reply::of("0"), Reply::list(names)});
    }
    if (command[0] == "PTTL") {
      return Reply::of(ttls.contains(command[1]) ? ttls.at(command[1]) : -2);
    }
    if (command[0] == "TIME") {
      return Reply::list({now_s, "500000"});
    }
    return last_expiry.contains(command[1]) ? Reply::list({"permit", last_expiry.at(command[1])}) : Reply::list({});
  }
};

std::string shown(const Violations& violations)
{
  std::string all;
  for (const Violation& violation : violations) {
    all += std::string(violation.promise) + ": " + violation.text + "\n";
  }
  return all;
}

const Words locks{"plain-1", "permits-1"};

}  // namespace

TEST_CASE("judge: a key without a ttl is told, except the number of permits and their expiries")
{
  KeysOfServer servers;
  servers.ttls = {{"plain-1", 500},
                  {"permits-1", -1},
                  {"{permits-1}:timeout", -1},
                  {"rlock:holder-permits:{permits-1}", -1},
                  {"rlock:events:{plain-1}", -1}};
  CHECK(shown(check_ttls(servers)) ==
        "every key has a ttl: rlock:events:{plain-1} has none\n"
        "every key has a ttl: rlock:holder-permits:{permits-1} has none\n");
}

TEST_CASE("judge: a server that does not tell its keys is no server whose keys have a ttl")
{
  KeysOfServer servers;
  servers.is_away = true;
  CHECK(check_ttls(servers).size() == 1);
}

TEST_CASE("judge: a lock that is still held when all leases are over is told, and so is a permit")
{
  KeysOfServer servers;
  servers.ttls = {{"permits-1", -1}};
  servers.last_expiry = {{"{permits-1}:timeout", "1000499"}};
  CHECK(shown(check_locks_are_free(servers, locks)).empty());
  servers.ttls["plain-1"] = 700;
  servers.last_expiry = {{"{permits-1}:timeout", "1000800"}};
  CHECK(shown(check_locks_are_free(servers, locks)) ==
        "no lock is left: plain-1 is held for 700 ms\n"
        "no lock is left: permits-1 is held for 300 ms\n");
}
