// SPDX-License-Identifier: Apache-2.0
// A file system that stands still now and then: a process that writes to it waits in the kernel, and KILL does not end it
// (state D), as below a file server that does not answer. A file system of its own in a file, mounted by loop. One thread.
#pragma once

#include "base/clock.h"
#include "judge/records.h"
#include "support/process.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rlock::judge {

class FrozenFiles {
 public:
  // In `dir`. nullptr: this machine cannot do it, and why.
  static std::unique_ptr<FrozenFiles> make(const std::filesystem::path& dir, std::string& why_not);
  ~FrozenFiles();  // goes on, and unmounts
  FrozenFiles(const FrozenFiles&) = delete;
  FrozenFiles& operator=(const FrozenFiles&) = delete;

  [[nodiscard]] const std::filesystem::path& directory() const { return m_directory; }

  // Call it often: freezes for some seconds, and goes on for some seconds, by turns. A process of its own ends each freeze, so it is
  // over also when this process is killed.
  void go_on(Instant now, Rng& rng);

  // It freezes no more, and returns when it goes on.
  void end();

  // Until now.
  [[nodiscard]] std::vector<Stall> freezes() const;

 private:
  explicit FrozenFiles(std::filesystem::path directory) : m_directory(std::move(directory)) {}

  struct Freeze {
    Instant from;
    test::Process process;
  };
  const std::filesystem::path m_directory;
  std::optional<Freeze> m_freeze;
  std::vector<Stall> m_freezes;
  Instant m_next{};
  BootClock m_clock;
};

// Mounts of this process and of its children are seen by no other process and end with them. Call it before any thread is started.
// false: not permitted.
bool mount_for_oneself();

}  // namespace rlock::judge
