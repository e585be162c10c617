// SPDX-License-Identifier: Apache-2.0
// A runtime directory for `local:`. Ends the servers that rlock has started in it.
#pragma once

#include "support/process.h"

#include <filesystem>
#include <set>

namespace rlock::test {

class RuntimeDir {
 public:
  RuntimeDir();
  ~RuntimeDir();
  RuntimeDir(const RuntimeDir&) = delete;
  RuntimeDir& operator=(const RuntimeDir&) = delete;

  // All directories of one test case share RLOCK_LOCAL_NAME (clean_environment), as the directories of one user share the uid.
  [[nodiscard]] ProcessOptions options() const { return {.env = {{"XDG_RUNTIME_DIR", m_dir.string()}}}; }
  [[nodiscard]] std::filesystem::path home() const;
  [[nodiscard]] std::filesystem::path socket() const { return home() / "redis.sock"; }

  // The server processes of the socket in this directory, even if the socket was removed.
  [[nodiscard]] std::set<pid_t> servers() const;
  // The processes of rlock that end an unused server of this directory.
  [[nodiscard]] std::set<pid_t> watchers() const;
  // Sends KILL to the servers and waits for their end.
  void kill_servers() const;

 private:
  std::filesystem::path m_dir;
};

}  // namespace rlock::test

#define LOCAL_CASE(title) CASE_WITH(rlock::test::RuntimeDir, dir, title)
