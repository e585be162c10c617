// SPDX-License-Identifier: Apache-2.0
// Runs rflock, and flock(1) with the same arguments: a test that passes on both proves that they agree.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rlock::test {

class FlockFixture {
 public:
  // `lock`: the file of flock(1), or the key of rflock.
  FlockFixture(std::string program, std::string lock, std::filesystem::path dir, ProcessOptions options);

  // Runs PROGRAM options... LOCK command...
  [[nodiscard]] Process start(std::vector<std::string> options, const std::vector<std::string>& command,
                              ProcessOptions more = {}) const;
  [[nodiscard]] Finished run(std::vector<std::string> options, const std::vector<std::string>& command,
                             const ProcessOptions& more = {}) const;
  // Runs PROGRAM with exactly these words.
  [[nodiscard]] Finished run_words(std::vector<std::string> words) const;
  // Runs a bash script in which $PROGRAM and $LOCK are set.
  [[nodiscard]] Process script(const std::string& text) const;

  // Starts a holder, which has the lock at the return and ends after release_all().
  [[nodiscard]] Process hold(std::vector<std::string> options) const;
  void release_all() const;
  void end(Process& holder) const;  // releases all, and checks that the holder ends with success

  [[nodiscard]] bool is_free() const;
  [[nodiscard]] bool is_rflock() const { return m_program.ends_with("rflock"); }
  [[nodiscard]] const std::string& program() const { return m_program; }
  [[nodiscard]] const std::filesystem::path& dir() const { return m_dir; }

 private:
  [[nodiscard]] ProcessOptions with(ProcessOptions more) const;

  std::string m_program;
  std::string m_lock;
  std::filesystem::path m_dir;  // where commands run
  ProcessOptions m_options;
};

FlockFixture rflock_fixture(const RedisServer& server);

// Once with flock(1), where there is one, and once with rflock. A failure names the program.
void for_flock_and_rflock(const std::function<void(const FlockFixture&)>& body);

}  // namespace rlock::test

// One with for_flock_and_rflock.
#define FLOCK_CASE(title) FLOCK_CASE_NAMED(DOCTEST_ANONYMOUS(flock_case_), title)
#define FLOCK_CASE_NAMED(body, title)              \
  static void body(const FlockFixture& flock);     \
  TEST_CASE(title) { for_flock_and_rflock(body); } \
  static void body(const FlockFixture& flock)
