// SPDX-License-Identifier: Apache-2.0
// Runs of rlock within the jobs of other runs. Each job is a script, so that no word is quoted twice. The jobs report in files.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace rlock::test {

class NestedRunsFixture {
 public:
  NestedRunsFixture();

  // The words `sh FILE`; in the script $RLOCK is the program.
  [[nodiscard]] Words script(const std::string& name, const std::string& text) const;
  // A shell script that runs rlock in the background and writes its pid and then its exit status to files. The script ends when
  // the file NAME.go exists.
  static std::string inner(const std::string& name, const std::string& options, const Words& job);
  static std::string until_told(const std::string& name);
  // A script that reports that it runs, and runs until the file NAME.go exists.
  [[nodiscard]] Words innermost(const std::string& name) const;

  [[nodiscard]] Process start(Words options, const Words& job) const;

  void tell(const std::string& name) const;
  [[nodiscard]] bool exists(const std::string& file) const;
  void wait_for(const std::string& file) const;
  [[nodiscard]] int number_in(const std::string& file) const;
  // The variable `of` in the environment of the job `name`.
  [[nodiscard]] std::string variable(const std::string& name, const std::string& of) const;

  [[nodiscard]] std::int64_t count(const std::string& key = "k") const;  // of holds
  // Waits for the count, because some servers of a quorum learn of a hold a moment later.
  void comes_to(std::int64_t holds) const;
  [[nodiscard]] std::int64_t pttl(const std::string& key = "k") const;
  void gone_within(Millis ttl, const std::string& key = "k") const;
  [[nodiscard]] bool all_keys_end() const;

  RedisServer server;

 private:
  [[nodiscard]] std::int64_t count_by_quorum(const std::string& key) const;

  std::filesystem::path m_dir;
};

// Three nested runs on one lock. The innermost job runs when the constructor is done.
struct ThreeDeep {
  // `innermost`: the script of the innermost job; the default is NestedRunsFixture::innermost("third").
  explicit ThreeDeep(const std::string& ttl, const std::string& innermost = "");

  NestedRunsFixture fixture;
  std::optional<Process> outer;
};

}  // namespace rlock::test

#define NESTED_RUNS_CASE(title) CASE_WITH(rlock::test::NestedRunsFixture, fixture, title)
