// SPDX-License-Identifier: Apache-2.0
// A server, and holders and waiters of ours on one lock of it, "k".
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rlock::test {

class Line {
 public:
  explicit Line(RedisOptions options = {});

  // Has the lock when this returns; runs `job` under it.
  Process hold(const std::string& ttl, std::vector<std::string> job = {"sleep", "100"});

  // Stands in line before this returns. Its job writes its number and does `work`, words of a shell.
  void come(const std::string& ttl = "30s", const std::string& work = "",
            std::vector<std::string> options = {});
  void all_listen();  // returns when they do

  [[nodiscard]] std::int64_t in_line() const;
  [[nodiscard]] pid_t holder() const;         // the process that has the lock; 0: nobody of ours
  [[nodiscard]] std::vector<int> ran() const; // whose jobs began, in their order

  // rlock on this server, with words of one's own.
  [[nodiscard]] std::vector<std::string> rlock(const std::string& verb,
                                               std::vector<std::string> words) const;

  RedisServer server;
  std::vector<Process> waiters;  // number i is the i-th that came

 private:
  std::filesystem::path m_log;
};

std::vector<int> numbers_below(int count);

}  // namespace rlock::test
