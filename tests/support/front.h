// SPDX-License-Identifier: Apache-2.0
// rflock, and flock(1) beside it: what is said of the one is tried on the other, which proves what was said.
#pragma once

#include "support/process.h"
#include "support/redis_fixture.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rlock::test {

class Front {
 public:
  // `lock`: the file, or the key.
  Front(std::string program, std::string lock, std::filesystem::path dir, ProcessOptions options);

  // PROGRAM options... LOCK command...
  [[nodiscard]] Process start(std::vector<std::string> options, const std::vector<std::string>& command,
                              ProcessOptions more = {}) const;
  [[nodiscard]] Finished run(std::vector<std::string> options, const std::vector<std::string>& command,
                             const ProcessOptions& more = {}) const;
  // With words of one's own throughout.
  [[nodiscard]] Finished run_words(std::vector<std::string> words) const;
  // A bash script that has PROGRAM and LOCK in $FRONT and $LOCK.
  [[nodiscard]] Process script(const std::string& text) const;

  // Has the lock when this returns; ends when `let_go` was called.
  [[nodiscard]] Process hold(std::vector<std::string> options) const;
  void release_all() const;

  [[nodiscard]] bool is_free() const;
  [[nodiscard]] bool is_ours() const { return m_program.ends_with("rflock"); }
  [[nodiscard]] const std::string& program() const { return m_program; }
  [[nodiscard]] const std::filesystem::path& dir() const { return m_dir; }

 private:
  [[nodiscard]] ProcessOptions with(ProcessOptions more) const;

  std::string m_program;
  std::string m_lock;
  std::filesystem::path m_dir;  // where commands run
  ProcessOptions m_options;
};

Front rflock_on(const RedisServer& server);

// Once with flock(1), where there is one, and once with rflock.
void for_both(const std::function<void(const Front&)>& body);

}  // namespace rlock::test
